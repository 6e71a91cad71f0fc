"""The marker `long`: cases that `make test` leaves to continuous integration, most of a grid and single ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

_LINES = (Path(__file__).parents[1] / "long_tests.txt").read_text("utf-8").splitlines()
LONG_TESTS = frozenset(line for line in _LINES if not line.startswith("#"))
"""Identifiers of single cases that take long."""


def some(cases: Iterable[Any], every: int) -> list[Any]:
    """All cases; those between every so many are left to `make test-long`."""
    return [
        case if number % every == 0 else pytest.param(case, marks=pytest.mark.long)
        for number, case in enumerate(cases)
    ]
