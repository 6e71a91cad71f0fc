"""Digits of coordinates: the results of an index map as numbers in mixed radix."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeAlias

from stripe.ir.affine import Affine, Atom, FloorDiv, Mod
from stripe.ir.frozen import frozen, replace
from stripe.ir.index_map import IndexMap


@frozen
class Digit:
    """`floor(a / place) mod count` of the coordinate a in dimension `dim`; without a count the floor alone."""

    dim: int
    place: int = 1
    count: int | None = None

    def of(self, value: Affine, below: int) -> Affine:
        """The digit of a value in [0, `below`)."""
        whole = self.place * (self.count or 1)
        if self.count is not None and whole < below:
            value = value.mod(whole)
        return value.floordiv(self.place)

    def values(self, size: int) -> int:
        """The number of its values over `size` coordinates from 0 on."""
        blocks = -(-size // self.place)
        return blocks if self.count is None else min(self.count, blocks)


Placed: TypeAlias = tuple[tuple[Digit, int], ...]
"""A physical coordinate as a sum of digits with their factors, by rising factor."""


def digits_of_map(index_map: IndexMap, sizes: Sequence[int]) -> tuple[Placed, ...] | None:
    """The results of the map as numbers in mixed radix of digits of its indices, each index with all its digits; None
    for other maps.

    Each factor is above all that the digits with smaller ones make up. The highest digit of an index has no count.
    """
    results: list[Placed] = []
    for result in index_map.results:
        placed: list[tuple[Digit, int]] = []
        reach = 0
        for atom, factor in sorted(result.terms, key=lambda term: term[1]):
            digit = _digit(atom, index_map.names)
            if digit is None:
                return None
            if digit.values(sizes[digit.dim]) == 1 and len(result.terms) > 1:
                continue  # always 0
            if factor <= reach:
                return None
            placed.append((digit, factor))
            reach += factor * (digit.values(sizes[digit.dim]) - 1)
        if result.offset:
            return None
        results.append(tuple(placed))
    whole: dict[Digit, Digit] = {}
    for dim, size in enumerate(sizes):
        found = sorted({d for result in results for d, _ in result if d.dim == dim}, key=lambda d: d.place)
        if len(found) < sum(digit.dim == dim for result in results for digit, _ in result):
            return None
        reached = 1
        for digit, above in zip_longest(found, found[1:]):
            if digit.place != reached and not digit.place > reached >= size:  # the latter are always 0
                return None
            if above is None:
                whole[digit] = replace(digit, count=None)
                reached *= digit.values(size)
            elif digit.count is None and size > above.place:
                return None
            else:  # without a count nothing is above it, and what stands there is always 0
                whole[digit] = replace(digit, count=digit.count or above.place // digit.place)
                reached *= digit.count or above.place // digit.place
        if reached < size:
            return None
    return tuple(tuple((whole[digit], factor) for digit, factor in result) for result in results)


def digits_of_fold(index_map: IndexMap) -> tuple[Digit, ...]:
    """The digits of a map whose result number n is index n, or index n modulo a length, which is 0 where that is 1."""
    found = [
        _digit(result.terms[0][0], index_map.names) if result.terms else Digit(number, 1, 1)
        for number, result in enumerate(index_map.results)
    ]
    digits = tuple(digit for digit in found if digit is not None)
    assert [digit.dim for digit in digits] == list(range(len(index_map.names))), f"{index_map} is no fold"
    return digits


def _digit(atom: Atom, names: Sequence[str]) -> Digit | None:
    """The atom as a digit of one index; None for another."""
    if isinstance(atom, str):
        return Digit(names.index(atom))
    if atom.arg.offset or len(atom.arg.terms) != 1 or atom.arg.terms[0][1] != 1:
        return None
    inner = _digit(atom.arg.terms[0][0], names)
    divisor = atom.divisor if isinstance(atom, FloorDiv) else atom.modulus
    if inner is None or (inner.count is not None and inner.count % divisor):
        return None
    if isinstance(atom, Mod):
        return replace(inner, count=divisor)
    count = None if inner.count is None else inner.count // divisor
    return Digit(inner.dim, inner.place * divisor, count)
