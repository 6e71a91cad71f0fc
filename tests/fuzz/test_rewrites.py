"""Rewrites by hand under all deciders; `make fuzz` checks two of each family in a chunk, with other sizes."""

from __future__ import annotations

import pytest

from tests.fuzz.rewrites import FAMILIES, check_rewrites


@pytest.mark.parametrize("family", FAMILIES)
def test_rewrites_are_equal_and_their_broken_twins_are_different(family: str) -> None:
    assert check_rewrites(family, 4, 0) == []
