"""Values that differ from lane to lane.

The interpreter runs a block at many points at once, its lanes. Each iterated index with more than one value is an axis
of numpy broadcasting; `Extents` gives the number of lanes on each axis. A value of indices (an index passed in, a
coordinate, an address) is a `LaneValue`: linear in the positions on the axes where it can be, plus an array for the
part that floor and mod make of them. Bounds, distinctness and strides of the linear part need no arrays at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from operator import add
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.ir import Affine, FloorDiv

Extents: TypeAlias = tuple[int, ...]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class LaneValue:
    """offset + sum over axes of coefficient * position on the axis, + extra (as many axes, extent 1 where constant).

    Never changed; it is not declared frozen, since the interpreter makes millions of them, each in a third of the time.
    """

    offset: int
    coefficients: tuple[int, ...] = ()
    extra: IntArray | None = None

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 in all lanes, as the value is written."""
        return not self.offset and self.extra is None and not any(self.coefficients)

    def __add__(self, other: LaneValue) -> LaneValue:
        assert len(self.coefficients) == len(other.coefficients)
        if other.is_zero:
            return self
        if self.is_zero:
            return other
        coefficients = tuple(map(add, self.coefficients, other.coefficients))
        extra = self.extra if other.extra is None else other.extra
        if self.extra is not None and other.extra is not None:
            extra = self.extra + other.extra
        return LaneValue(self.offset + other.offset, coefficients, extra)

    def __mul__(self, factor: int) -> LaneValue:
        extra = None if self.extra is None else self.extra * factor
        return LaneValue(self.offset * factor, tuple([c * factor for c in self.coefficients]), extra)

    def widen(self, axes: int) -> LaneValue:
        """The same value among `axes` more axes, on which it does not depend."""
        if not axes:
            return self
        extra = None if self.extra is None else self.extra.reshape(self.extra.shape + (1,) * axes)
        return LaneValue(self.offset, self.coefficients + (0,) * axes, extra)

    def bounds(self, extents: Extents) -> tuple[int, int]:
        """An interval that holds all values; exact when there is no `extra`."""
        low = high = self.offset
        for coefficient, extent in zip(self.coefficients, extents, strict=True):
            if coefficient > 0:
                high += coefficient * (extent - 1)
            elif coefficient:
                low += coefficient * (extent - 1)
        if self.extra is not None:
            low += int(self.extra.min())
            high += int(self.extra.max())
        return low, high

    def array(self, extents: Extents) -> IntArray:
        """All values, with extent 1 on the axes that they do not depend on."""
        rank = len(extents)
        total = np.full((1,) * rank, self.offset, np.int64)
        for axis, (coefficient, extent) in enumerate(zip(self.coefficients, extents, strict=True)):
            if coefficient:
                values = np.arange(extent, dtype=np.int64) * coefficient
                total = total + values.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))
        return total if self.extra is None else total + self.extra

    def depends_on(self, axis: int) -> bool:
        return self.coefficients[axis] != 0 or (self.extra is not None and self.extra.shape[axis] > 1)

    def distinct(self, axes: Iterable[int], extents: Extents) -> bool:
        """Whether different positions on `axes` surely give different values (each stride passes all smaller ones)."""
        if self.extra is not None:
            return False
        reach = 0
        for stride, extent in sorted((abs(self.coefficients[axis]), extents[axis]) for axis in axes):
            if stride <= reach:
                return False
            reach += stride * (extent - 1)
        return True

    def at(self, lane: tuple[int, ...]) -> int:
        """The value in one lane."""
        value = self.offset + sum(c * p for c, p in zip(self.coefficients, lane, strict=True))
        if self.extra is not None:
            value += int(
                self.extra[tuple(min(p, n - 1) for p, n in zip(lane, self.extra.shape, strict=True))]
            )
        return value


@lru_cache(1 << 12)
def constant_value(value: int, rank: int) -> LaneValue:
    """`value` in all lanes. Most values of a run are a few numbers, above all zeros."""
    return LaneValue(value, (0,) * rank)


def axis_value(start: int, axis: int, rank: int) -> LaneValue:
    """start, start + 1, ... along `axis`."""
    return LaneValue(start, tuple(int(other == axis) for other in range(rank)))


def lane_numbers(extents: Extents, factor: int) -> LaneValue:
    """`factor` times the number of the lane, counted in row-major order."""
    coefficients: list[int] = []
    for extent in reversed(extents):
        coefficients.append(factor)
        factor *= extent
    return LaneValue(0, tuple(reversed(coefficients)))


def evaluate(affine: Affine, values: Mapping[str, LaneValue], extents: Extents) -> LaneValue:
    """The value of `affine` in every lane."""
    if not affine.terms:
        return constant_value(affine.offset, len(extents))
    terms: list[tuple[LaneValue, int]] = []
    for atom, coefficient in affine.terms:
        if isinstance(atom, str):
            value = values[atom]
        else:
            array = evaluate(atom.arg, values, extents).array(extents)
            array = array // atom.divisor if isinstance(atom, FloorDiv) else array % atom.modulus
            value = LaneValue(0, (0,) * len(extents), array)
        terms.append((value, coefficient))
    if len(terms) == 1 and not affine.offset and terms[0][1] == 1:
        return terms[0][0]
    return weighted_sum(affine.offset, terms, len(extents))


def weighted_sum(offset: int, terms: Iterable[tuple[LaneValue, int]], rank: int) -> LaneValue:
    """offset + sum of value * factor, over values of `rank` axes."""
    total = [0] * rank
    extra: IntArray | None = None
    for value, factor in terms:
        offset += value.offset * factor
        for axis, coefficient in enumerate(value.coefficients):
            if coefficient:
                total[axis] += coefficient * factor
        if value.extra is not None:
            more = value.extra * factor
            extra = more if extra is None else extra + more
    return LaneValue(offset, tuple(total), extra)


def first_lane(bad: BoolArray, extents: Extents) -> tuple[int, ...]:
    """The first lane in which `bad`, an array that broadcasts over the lanes, is true."""
    position = np.unravel_index(int(np.argmax(bad)), bad.shape)
    return tuple(int(p) for p in position) if extents else ()


def lane_count(extents: Extents) -> int:
    return prod(extents)
