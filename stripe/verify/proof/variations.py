"""Elements of results that the assumptions leave open: those that other signs of zeros, other roundings, or padding
without an effect change.

Each granted assumption has variations of a run: values that it allows in the place of those of merges and products. An
element whose value follows from them is open, and a run shows no difference of two programs where their ranges meet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from stripe.exec.arith import Array
from stripe.exec.compare import EXACT, Floats, Tolerance
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.exec.variation import Variation
from stripe.ir import Agg, DType, Program
from stripe.verify.assumptions import Assumption

_SEEDS = (0, 1, 2)
_ROUNDINGS = 8
"""Roundings of the largest element of a tensor: less than what a comparison of results allows, but for dtypes of 8
bits, whose sums are as open as that in another order."""


@dataclass(frozen=True, slots=True)
class _Signs(Variation):
    """Zeros of sums, minima and maxima have the signs that `draw` gives."""

    draw: np.random.Generator | float

    @override
    def merged(self, value: Array, dtype: DType, aggs: Collection[Agg], *, finite: Array) -> Array:
        if not any(agg in aggs for agg in (Agg.ADD, Agg.MIN, Agg.MAX)):
            return value
        negative = (
            self.draw.random(value.shape) < 0.5
            if isinstance(self.draw, np.random.Generator)
            else np.full(value.shape, self.draw < 0)
        )
        zeros = np.where(negative, *(np.asarray(zero).astype(value.dtype) for zero in (-0.0, 0.0)))
        return np.where(value == 0, zeros, value)


@dataclass(frozen=True, slots=True)
class _Roundings(Variation):
    """Sums and products are a few roundings larger or smaller; what overflowed is a number, as no partial result
    overflows in another order."""

    direction: int

    @override
    def merged(self, value: Array, dtype: DType, aggs: Collection[Agg], *, finite: Array) -> Array:
        if Agg.ADD not in aggs and Agg.MUL not in aggs:
            return value
        wide: Floats = value.astype(np.float64)
        is_number = np.isfinite(wide)
        most = float(np.abs(wide[is_number]).max(initial=0.0))
        step = self.direction * _ROUNDINGS * 2.0**-dtype.mantissa * most
        return np.where(is_number, wide + step, np.where(finite, most, wide)).astype(value.dtype)


@dataclass(frozen=True, slots=True)
class _Padding(Variation):
    """A product of 0 and an infinite value or NaN is 0."""

    @override
    def product(self, value: Array, factors: Sequence[Array]) -> Array:
        some_zero = np.logical_or.reduce(np.broadcast_arrays(*(factor == 0 for factor in factors)))
        return np.where(np.isnan(value) & some_zero, np.zeros((), value.dtype), value)


def _variations(
    assumed: frozenset[Assumption], tolerance: Tolerance, inputs: Mapping[str, Array]
) -> Iterator[Variation]:
    """The variations that the granted assumptions allow. Sums that are exact have no other roundings, and infinite
    inputs overflow in each order."""
    if Assumption.ZERO_SIGN in assumed:
        yield from (_Signs(1.0), _Signs(-1.0))
        yield from (_Signs(np.random.default_rng(seed)) for seed in _SEEDS)
    finite = all(
        np.isfinite(a.astype(np.float64)).all() for a in inputs.values() if a.dtype.kind not in "iub"
    )
    if Assumption.FLOAT_ORDER in assumed and tolerance != EXACT and finite:
        yield from (_Roundings(1), _Roundings(-1))
    if Assumption.FINITE in assumed:
        yield _Padding()


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The least and the largest value of each element of an output over all variations of a run. An element that is NaN
    in some of them may be anything, one that is NaN in all of them is nothing else.
    """

    low: Floats
    high: Floats
    some_nan: Array
    all_nan: Array

    @staticmethod
    def of(values: Floats) -> ValueRange:
        """The ranges of values whose first dimension counts runs."""
        nan = np.isnan(values)
        low, high = (np.where(nan, end, values) for end in (-np.inf, np.inf))
        some, every = (np.asarray(nans) for nans in (nan.any(axis=0), nan.all(axis=0)))
        return ValueRange(low.min(axis=0), high.max(axis=0), some, every)

    def meets(self, other: ValueRange) -> Array:
        """The mask of the elements that are open in one of two runs, and may have one value in both. An element is open
        if variations change it.
        """
        is_open = np.zeros(self.low.shape, np.bool_)
        shared = (self.low <= other.high) & (other.low <= self.high)
        for one, two in ((self, other), (other, self)):
            is_open |= (one.low < one.high) & ~one.all_nan
            shared &= ~one.all_nan | two.some_nan
        return np.asarray(is_open & shared)


def value_ranges(
    program: Program,
    inputs: Mapping[str, Array],
    results: Mapping[str, Array],
    assumed: frozenset[Assumption],
    tolerance: Tolerance,
) -> dict[str, ValueRange]:
    """For each output the values that `assumed` allows in the place of `results`, those of `program` on `inputs`."""
    runs = [results]
    for variation in _variations(assumed, tolerance, inputs):
        with suppress(ExecutionError):  # another number leads to an index out of bounds
            runs.append(interpret(program, inputs, variation=variation))
    found: dict[str, ValueRange] = {}
    for name in results:
        values: Floats = np.stack([run[name].astype(np.float64) for run in runs])
        found[name] = ValueRange.of(values)
    return found
