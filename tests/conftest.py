"""Set-up that all tests share."""

from __future__ import annotations

import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.support.tiers import LONG_TESTS

pytest_plugins = [
    "tests.support.golden",
    "tests.support.interrupts",
    "tests.support.misbehaving",
    "tests.support.sharing",
    "pytester",
]

# Where an environment forbids compiled files, each worker would rewrite all tests, and each command that a test starts
# would compile what it imports: a twentieth of the run.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Shared machines stall: a deadline would make tests flaky. The everyday run is reproducible, pytest
# --hypothesis-profile=fuzz explores.
settings.register_profile("everyday", deadline=None, derandomize=True)
settings.register_profile(
    "fuzz", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("everyday")


def pytest_configure() -> None:
    """Keep the threads of libraries from fighting with pytest's own processes over the cores."""
    os.environ.setdefault("OMP_NUM_THREADS", "2")


def pytest_collection_finish() -> None:
    """Collect garbage as seldom as the commands do, and never look at the tests themselves: a twelfth of the run."""
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_sessionfinish() -> None:
    """Leave out of the last collection, which looks for errors in destructors, all that lives until the process ends:
    three seconds in each worker."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the Hypothesis tests, so that -m property selects them, and the single cases that take long."""
    for item in items:
        if item.nodeid in LONG_TESTS:
            item.add_marker(pytest.mark.long)
        if isinstance(item, pytest.Function) and getattr(item.obj, "is_hypothesis_test", False):
            item.add_marker(pytest.mark.property)
