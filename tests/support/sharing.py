"""A pytest plugin: with xdist, tests that share work run in one worker.

Marks `xdist_group` say nothing under pytest 9.2 (pytest-xdist issue 1386), and a unit for each of 6,000 cases is
expensive: the time of a step of xdist's schedule grows with the units done.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_EXAMPLES = (Path(__file__).resolve().parents[2] / "examples").glob("*.tile")
_CASE = re.compile(rf"\[({'|'.join(path.stem for path in _EXAMPLES)})[-\]]")


def unit(nodeid: str) -> str:
    """The unit of work of a test: its example, the suite of onnx, else all cases of its function."""
    if example := _CASE.search(nodeid):
        return example[1]
    return "onnx" if "/test_onnx_" in nodeid else nodeid.partition("[")[0]


class SharedWork(LoadScopeScheduling):
    """A unit goes to the next worker that is free, units of many tests first."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedWork:
    """The schedule of `-n 2`."""
    return SharedWork(config, log)
