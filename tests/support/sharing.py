"""A pytest plugin: with xdist, tests that share work run in one worker.

Marks `xdist_group` say nothing under pytest 9.2 (pytest-xdist issue 1386), and a unit for each of 6,000 cases is
expensive: xdist looks through all units that a worker was given at each step of its schedule.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_EXAMPLES = (Path(__file__).resolve().parents[2] / "examples").glob("*.tile")
_CASE = re.compile(rf"\[({'|'.join(path.stem for path in _EXAMPLES)})[-\]]")
_FILES = re.compile(r"test_(contributing_pass|cpu_list|each_pass|library|notebook|scalars|scale|traffic)\.py")
"""Files whose tests share a fixture that takes long, or a cache."""


def unit(nodeid: str) -> str:
    """The unit of work of a test: its example, the suite of onnx, a file, else all cases of its function."""
    if example := _CASE.search(nodeid):
        return example[1]
    if file := _FILES.search(nodeid):
        return file[0]
    return "onnx" if "/test_onnx_" in nodeid else nodeid.partition("[")[0]


class SharedWork(LoadScopeScheduling):
    """A unit goes to the next worker that is free, units of many tests first."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forgets the units that are done."""
        super().mark_test_complete(node, item_index, duration)
        units = self.assigned_work[node]
        for name in [name for name, tests in units.items() if all(tests.values())]:
            del units[name]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedWork:
    """The schedule of `-n 2`."""
    return SharedWork(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Golden tests come last: a unit each, and short, so that all workers end at the same time."""
    items.sort(key=lambda item: item.nodeid.startswith("tests/golden/"))
