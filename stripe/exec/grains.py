"""Abstract numbers: the interval in which a number lies, and a power of two that divides it.

A float of m mantissa bits holds a value exactly while bound / step <= 2^m.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import frexp, inf, isnan, prod, trunc

import numpy as np
import numpy.typing as npt

from stripe.ir import INTRINSICS, DType
from stripe.ir.intrinsics import IntrinsicSpec


@dataclass(frozen=True, slots=True)
class Grain:
    """low <= value <= high, and value is a multiple of step (a power of two, or 0 for "of anything")."""

    low: float
    high: float
    step: float

    @staticmethod
    def within(bound: float, step: float) -> Grain:
        return Grain(-bound, bound, step)

    @property
    def bound(self) -> float:
        return max(-self.low, self.high)

    def joined(self, other: Grain) -> Grain:
        """The grain of either number."""
        return Grain(min(self.low, other.low), max(self.high, other.high), min(self.step, other.step))

    def plus(self, other: Grain, count: int) -> Grain:
        """The grain of any partial sum with up to `count` of the others."""
        low = self.low + count * min(other.low, 0.0)
        return Grain(low, self.high + count * max(other.high, 0.0), min(self.step, other.step))

    def times(self, other: Grain, count: int) -> Grain:
        """The grain of any partial product with up to `count` of the others."""
        bound = _product(max(1.0, self.bound), _power(max(1.0, other.bound), count))
        return Grain.within(bound, min(1.0, self.step) * _power(min(1.0, other.step), count))

    def rounded(self, dtype: DType) -> Grain:
        """The value after it was put into `dtype`: of no known step when a float cannot hold it, and anything when an
        integer cannot (it wraps, or saturates).
        """
        if dtype.kind == "bool":
            return TRUTH
        if not dtype.is_float:
            low, high = float(dtype.min_value), float(dtype.max_value)
            if self.low < low or self.high > high:
                return Grain(low, high, 1.0)
            return Grain(float(trunc(self.low)), float(trunc(self.high)), max(self.step, 1.0))
        wide = 1 + 2.0 ** (1 - dtype.mantissa)  # by as much may rounding move the ends
        if self.bound * wide > dtype.largest:
            return ANYTHING
        if self.step and self.bound / self.step <= 2.0**dtype.mantissa:
            return self
        return Grain(
            self.low * wide if self.low < 0 else 0.0, self.high * wide if self.high > 0 else 0.0, 0.0
        )


ANYTHING = Grain(-inf, inf, 0.0)
TRUTH = Grain(0.0, 1.0, 1.0)
NOTHING = Grain(0.0, 0.0, 1.0)


def grain_of_array(values: npt.NDArray[np.float64]) -> Grain:
    """The ends of numbers, and the largest power of two that divides them all (0 when one is not finite)."""
    if not np.isfinite(values).all():
        return ANYTHING
    step = 2.0**52
    for value in np.unique(values[values != 0]):
        while value % step and step > 2.0**-60:
            step /= 2
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    return Grain(low, high, step if step > 2.0**-60 else 0.0)


def apply(op: str, args: Sequence[Grain], dtype: DType, divisor: float | None) -> Grain:
    """The result of an intrinsic before it is put into `dtype`; `divisor` is the last operand where it is constant."""
    spec = INTRINSICS[op]
    if spec.grain == "kept":
        return Grain(*_ends(spec, args), min(arg.step for arg in args))
    if spec.grain == "whole":
        return Grain(args[0].low - 1, args[0].high + 1, max(args[0].step, 1.0))
    if op == "mul":
        first, last = args
        ends = [_product(a, b) for a in (first.low, first.high) for b in (last.low, last.high)]
        return Grain(min(ends), max(ends), first.step * last.step)
    if op == "div":
        first = args[0]
        if not dtype.is_float:
            return Grain.within(first.bound, 1.0) if dtype.min_value else Grain(0.0, first.bound, 1.0)
        if not divisor:
            return ANYTHING
        ends = [first.low / divisor, first.high / divisor]
        exact = abs(frexp(divisor)[0]) == 0.5
        return Grain(min(ends), max(ends), first.step / abs(divisor) if exact else 0.0)
    if op == "mod":
        return Grain(min(args[0].low, 0.0), max(args[0].high, 0.0), min(arg.step for arg in args))
    if op == "cond":
        return args[1].joined(args[2])
    if spec.result == "bool":
        return TRUTH
    return Grain(-inf, inf, 0.0 if dtype.is_float else 1.0)  # curves, and operations on bits


def _ends(spec: IntrinsicSpec, args: Sequence[Grain]) -> tuple[float, float]:
    """The ends of the results of an intrinsic that is monotone in each operand on either side of 0."""
    corners = product(*((arg.low, min(max(arg.low, 0.0), arg.high), arg.high) for arg in args))
    values = [float(spec.fold(*corner)) for corner in corners]
    # inf - inf
    return (-inf, inf) if any(map(isnan, values)) else (min(values), max(values))


def _product(first: float, second: float) -> float:
    return first * second if first and second else 0.0


def _power(base: float, exponent: int) -> float:
    try:
        return float(base) ** exponent  # a power of an int would be exact, and too large for what follows
    except OverflowError:
        return inf


def most_to_one(ranges: Mapping[str, int], columns: Mapping[str, Sequence[int]]) -> int:
    """Upper bound on the points of a box that lead to one element; `columns` has its coefficients of each index.

    The indices of linearly independent columns follow from the element and the other indices; those with the greatest
    product of ranges are found greedily (independent columns are a matroid).
    """
    basis: list[tuple[int, list[int]]] = []
    left = prod(ranges.values())
    for name in sorted(columns, key=lambda name: (-ranges[name], name)):
        column = list(columns[name])
        for place, other in basis:
            column = [a * other[place] - b * column[place] for a, b in zip(column, other, strict=True)]
        place = next((n for n, value in enumerate(column) if value), None)
        if place is not None:
            basis.append((place, column))
            left //= ranges[name]
    return left
