"""Assumptions under which two programs count as equal; docs/proof.md defines each formally."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Assumption(StrEnum):
    """A refinement of results that a proof may allow, by its flag."""

    FLOAT_ORDER = "float-order"
    ZERO_SIGN = "zero-sign"
    FINITE = "finite"
    FOLDED = "folded"

    @property
    def text(self) -> str:
        """The assumption in one line."""
        return _TEXTS[self]


_TEXTS = {
    Assumption.FLOAT_ORDER: "sums and products of floats are merged in any order and grouping",
    Assumption.ZERO_SIGN: "a sum, minimum or maximum of floats that is zero may have either sign",
    Assumption.FINITE: "no padding with zeros meets an infinite value or NaN",
    Assumption.FOLDED: "floats computed without inputs have the bits that the interpreter gives them",
}

ALL = frozenset(Assumption)


def in_order(flags: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """The flags without repetition, in the order of their definition."""
    found = frozenset(flags)
    return tuple(flag for flag in Assumption if flag in found)


def parse_assumptions(text: str) -> frozenset[Assumption]:
    """The flags of `all`, `none`, or words with commas between them. Raises ValueError for a word that is no flag."""
    if text in ("all", "none"):
        return ALL if text == "all" else frozenset()
    return frozenset(Assumption(word) for word in text.split(","))
