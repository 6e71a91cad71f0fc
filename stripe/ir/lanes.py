"""Vectors along the elements of a row, as emission makes them and costs count them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

TILE_VECTORS = 32
"""Most vectors of results that are written out where no allocation holds them: registers of the largest machines."""
SUM_COPIES = 8 * TILE_VECTORS
"""Most copies of the statements where a short sum is written out around a tile."""


class Vector(NamedTuple):
    """`lanes` elements from `first` on. The first `overlap` of them are elements of the vector before, too."""

    first: int
    lanes: int
    overlap: int = 0

    @property
    def end(self) -> int:
        return self.first + self.lanes


def row_vectors(
    low: int, high: int, lanes: int, *, first: int | None = None, overlapping: bool
) -> Iterator[Vector]:
    """The vectors of the elements [low, high): whole ones, then halves and quarters for the rest; or for a rest that
    takes several, if `overlapping`, one that begins within [first, high), from `low` on where `first` is not given."""
    first = low if first is None else first
    while low < high:
        rest = high - low
        size = 1 << (rest - 1).bit_length()
        if overlapping and rest < lanes and rest.bit_count() > 1 and high - size >= first:
            yield Vector(high - size, size, size - rest)
            return
        while lanes > rest:
            lanes //= 2
        yield Vector(low, lanes)
        low += lanes


def vectors_along(count: int, lanes: int, *, overlapping: bool = True) -> int:
    """The number of vectors of `count` elements in a row."""
    # A rest takes one if a whole vector is before it; a row shorter than a vector may take two.
    before = max(count // lanes - 1, 0)
    return before + sum(1 for _ in row_vectors(0, count - before * lanes, lanes, overlapping=overlapping))
