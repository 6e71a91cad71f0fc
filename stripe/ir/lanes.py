"""Vectors along the elements of a loop, as emission makes them and costs count them."""

from __future__ import annotations

_MOST_LANES = 256
"""Most elements of a vector: more are no vector of a machine."""


def lanes_of(lanes: object) -> int:
    """Elements of a vector, by the value of the tag that a pass gave a block: a power of two; 0 where none has."""
    if not isinstance(lanes, int) or isinstance(lanes, bool) or lanes < 1:
        return 0
    return 1 << (min(lanes, _MOST_LANES).bit_length() - 1)


def vectors_along(count: int, lanes: int) -> int:
    """Vectors that hold `count` elements in a row: whole ones, and for a rest one of the halves, quarters and so on, or
    one that begins within the vector before."""
    whole, rest = divmod(count, lanes)
    return whole + min(rest.bit_count(), 1 if whole else 2)
