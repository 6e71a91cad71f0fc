"""Garbage collection while programs are compiled and simulated.

Programs and reports have no cycles: reference counts free them. Python's collector, which looks for cycles after every
700 new objects, finds next to nothing there and takes a fifth of a compile.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

_PERIOD = 100_000
"""New objects between two collections."""

_lock = Lock()
_usual: list[tuple[int, int, int]] = []
"""The thresholds of the process, one entry for each user inside."""


@contextmanager
def collected_seldom() -> Generator[None]:
    """Collections are rare until all who entered have left, on all threads; then as they were before the first."""
    with _lock:
        found = _usual[0] if _usual else gc.get_threshold()
        _usual.append(found)
        if 0 < found[0] < _PERIOD:  # 0: none at all
            gc.set_threshold(_PERIOD, *found[1:])
    try:
        yield
    finally:
        with _lock:
            found = _usual.pop()
            if not _usual:
                gc.set_threshold(*found)
