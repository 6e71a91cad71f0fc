"""Elements of results that the assumptions leave open: those that other signs of zeros, other roundings, or padding
without an effect change.

Each granted assumption has variations of a run: values that it allows in the place of those of merges and products. An
element whose value follows from them is open, and a run shows no difference of two programs where their values meet. An
element that follows from a sum whose roundings are as large as itself may be anything.
Roundings reach all between the largest and the smallest value. A sign, or padding, is a choice: of two infinities none
is a number between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

import numpy as np
from typing_extensions import override

from stripe.exec.arith import Array
from stripe.exec.compare import EXACT, Floats, Tolerance, agreement
from stripe.exec.errors import ExecutionError
from stripe.exec.exactness import terms_of_sums
from stripe.exec.interp import interpret
from stripe.exec.variation import Variation
from stripe.ir import Agg, DType, Program
from stripe.verify.assumptions import Assumption

_SEEDS = (0, 1, 2)
_ROUNDINGS = 8
"""Roundings of the largest element of a tensor: less than what a comparison of results allows, but for dtypes of 8
bits, whose sums are as open as that in another order."""
_ANYTHING = (float("nan"), 0.0)
"""Numbers in the place of a sum of very many terms: their sums and products are the same in each grouping."""


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
    overflows in another order. A sum of n terms has n of them. (`terms`: by type.)"""

    direction: int
    terms: Mapping[DType, int]

    @override
    def merged(self, value: Array, dtype: DType, aggs: Collection[Agg], *, finite: Array) -> Array:
        if Agg.ADD not in aggs and Agg.MUL not in aggs:
            return value
        wide: Floats = value.astype(np.float64)
        is_number = np.isfinite(wide)
        most = float(np.abs(wide[is_number]).max(initial=0.0))
        roundings = max(_ROUNDINGS, self.terms.get(dtype, 0))
        step = self.direction * roundings * 2.0**-dtype.mantissa * most
        return np.where(is_number, wide + step, np.where(finite, most, wide)).astype(value.dtype)


@dataclass(frozen=True, slots=True)
class _Replaced(Variation):
    """Sums and products of the given types are `number`, but for infinities and NaN that no overflow makes."""

    number: float
    dtypes: frozenset[DType]

    @override
    def merged(self, value: Array, dtype: DType, aggs: Collection[Agg], *, finite: Array) -> Array:
        if dtype not in self.dtypes or (Agg.ADD not in aggs and Agg.MUL not in aggs):
            return value
        is_free = finite | np.isfinite(value.astype(np.float64))
        return np.where(is_free, np.asarray(self.number).astype(value.dtype), value)


@dataclass(frozen=True, slots=True)
class _Padding(Variation):
    """A product of 0 and an infinite value or NaN is 0."""

    @override
    def product(self, value: Array, factors: Sequence[Array]) -> Array:
        some_zero = np.logical_or.reduce(np.broadcast_arrays(*(factor == 0 for factor in factors)))
        return np.where(np.isnan(value) & some_zero, np.zeros((), value.dtype), value)


def _choices(assumed: frozenset[Assumption]) -> Iterator[Variation]:
    """The variations that choose between values: signs of zeros, and padding."""
    if Assumption.ZERO_SIGN in assumed:
        yield from (_Signs(1.0), _Signs(-1.0))
        yield from (_Signs(np.random.default_rng(seed)) for seed in _SEEDS)
    if Assumption.FINITE in assumed:
        yield _Padding()


def types_of_long_sums(*programs: Program) -> frozenset[DType]:
    """The types of floats in which some sum has so many terms that its roundings are as large as itself: in another
    order, or in parts, it may be any number."""
    sums = (pair for program in programs for pair in terms_of_sums(program).items())
    return frozenset(dtype for dtype, terms in sums if terms >= 2.0**dtype.mantissa)


def _roundings(
    program: Program, assumed: frozenset[Assumption], tolerance: Tolerance, inputs: Mapping[str, Array]
) -> Iterator[Variation]:
    """Other roundings. Sums that are exact have none, and infinite inputs overflow in each order."""
    finite = all(
        np.isfinite(a.astype(np.float64)).all() for a in inputs.values() if a.dtype.kind not in "iub"
    )
    if Assumption.FLOAT_ORDER in assumed and tolerance != EXACT and finite:
        terms = terms_of_sums(program)
        yield from (_Roundings(1, terms), _Roundings(-1, terms))


@dataclass(frozen=True, slots=True)
class _ValueRange:
    """The least and the largest value of each element of an output over some runs. An element that is NaN in some of
    them may be anything, one that is NaN in all of them is nothing else.
    """

    low: Floats
    high: Floats
    some_nan: Array
    all_nan: Array

    @staticmethod
    def of(runs: Sequence[Array]) -> _ValueRange:
        values: Floats = np.stack([run.astype(np.float64) for run in runs])
        nan = np.isnan(values)
        low, high = (np.where(nan, end, values) for end in (-np.inf, np.inf))
        some, every = (np.asarray(nans) for nans in (nan.any(axis=0), nan.all(axis=0)))
        return _ValueRange(low.min(axis=0), high.max(axis=0), some, every)

    @property
    def varies(self) -> Array:
        return np.asarray((self.low < self.high) & ~self.all_nan)

    def meets(self, other: _ValueRange) -> Array:
        """The mask of the elements that may have one value in both."""
        shared = (self.low <= other.high) & (other.low <= self.high)
        for one, two in ((self, other), (other, self)):
            shared &= ~one.all_nan | two.some_nan
        return np.asarray(shared)


def _mixed(chosen: Sequence[Array]) -> _ValueRange:
    """The range of the numbers among chosen values, but the extremes of their type, where these are three or more: the
    signs of several zeros may give others between. All else has no range."""
    rim = np.iinfo(chosen[0].dtype) if chosen[0].dtype.kind in "iu" else None
    ends = (-np.inf, np.inf) if rim is None else (float(rim.min), float(rim.max))
    values: Floats = np.stack([value.astype(np.float64) for value in chosen])
    values = np.sort(np.where((values > ends[0]) & (values < ends[1]), values, np.nan), axis=0)
    with np.errstate(invalid="ignore"):
        several = (np.diff(values, axis=0) > 0).sum(axis=0) > 1
    low, high = (np.where(several, end(values, axis=0), np.nan) for end in (np.fmin.reduce, np.fmax.reduce))
    return _ValueRange(low, high, np.zeros_like(several), np.zeros_like(several))


@dataclass(frozen=True, slots=True)
class OpenValues:
    """The values of an output that assumptions allow: those of the run without a variation and of each choice, and
    ranges of them by other roundings and by the signs of several zeros."""

    chosen: tuple[Array, ...]
    ranges: tuple[_ValueRange, _ValueRange]

    @staticmethod
    def of(chosen: Sequence[Array], rounded: Sequence[Array]) -> OpenValues:
        """Of several runs each; the first of both is the one without a variation."""
        return OpenValues(tuple(chosen), (_ValueRange.of(rounded), _mixed(chosen)))

    def meets(self, other: OpenValues, tolerance: Tolerance, bound: Array | None = None) -> Array:
        """The mask of the elements that are open in one of two runs, and may have one value in both. An element is open
        if variations change it.
        """
        is_open, shared = np.zeros((2, *self.chosen[0].shape), np.bool_)
        for mine, theirs in ((self, other), (other, self)):
            is_open |= _ValueRange.of(mine.chosen).varies | mine.ranges[0].varies
            for one, two in product(
                mine.ranges, (*theirs.ranges, *(_ValueRange.of([v]) for v in theirs.chosen))
            ):
                shared |= one.meets(two)
        for one, two in product(self.chosen, other.chosen):
            shared |= agreement(one, two, tolerance, bound)
        return np.asarray(is_open & shared)


def changed_by_sums(
    program: Program, inputs: Mapping[str, Array], results: Mapping[str, Array], dtypes: frozenset[DType]
) -> dict[str, Array]:
    """For each output the mask of the elements that change where all sums of `dtypes` are another number.

    Programs that differ in the roundings of these sums alone are equal then. So an element in which they differ changes
    in one of them."""
    changed = {name: np.zeros(array.shape, np.bool_) for name, array in results.items()}
    for run in _runs(program, inputs, (_Replaced(number, dtypes) for number in _ANYTHING)):
        for name, array in results.items():
            changed[name] |= ~agreement(array, run[name], EXACT)
    return changed


def _runs(
    program: Program, inputs: Mapping[str, Array], variations: Iterable[Variation]
) -> Iterator[Mapping[str, Array]]:
    """The results with each variation, but those that break."""
    for variation in variations:
        with suppress(ExecutionError):  # another number leads to an index out of bounds
            yield interpret(program, inputs, variation=variation)


def open_values(
    program: Program,
    inputs: Mapping[str, Array],
    results: Mapping[str, Array],
    assumed: frozenset[Assumption],
    tolerance: Tolerance,
) -> dict[str, OpenValues]:
    """For each output the values that `assumed` allows in the place of `results`, those of `program` on `inputs`."""
    chosen, rounded = (
        (results, *_runs(program, inputs, variations))
        for variations in (_choices(assumed), _roundings(program, assumed, tolerance, inputs))
    )
    return {
        name: OpenValues.of([run[name] for run in chosen], [run[name] for run in rounded]) for name in results
    }
