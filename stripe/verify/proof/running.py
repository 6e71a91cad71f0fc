"""Both programs run on the same data: small integers, then values at the rim of the dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from stripe.exec.arith import Array
from stripe.exec.compare import EXACT, LOOSE, Tolerance, compare, tolerance_for
from stripe.exec.data import extreme_inputs, random_inputs
from stripe.exec.errors import ExecutionError
from stripe.exec.exactness import best_magnitude, order_free, takes_positive
from stripe.exec.interp import interpret
from stripe.exec.precision import is_doubtful, measured_bounds
from stripe.ir import Block, Program, Special
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.variations import changed_by_sums, open_values, types_of_long_sums

_OTHER_SIGNS = "has zeros of other signs"
_ROUNDING = (Assumption.FLOAT_ORDER, Assumption.FOLDED)
"""The assumptions one of which allows other roundings."""
SEEDS = (0, 1, 2, 3, 4, 5)
"""Seeds of the sets of small integers."""
SEEDS_OF_PROVED = SEEDS[:2]
"""Seeds for programs that are proved equal."""
SEEDS_OF_FRACTIONS = SEEDS[2:4]
"""Seeds of the sets whose floats are multiples of `FRACTION`, where sums are exact on these too, or on no data."""
FRACTION = 0.25
SEEDS_OF_SIGNS = SEEDS[4:]
"""Seeds of the sets with negative numbers also where the program takes logarithms, roots or quotients."""
MOST_STEPS = 200_000_000
"""Points of programs that are run: half a minute of interpretation."""
MOST_STEPS_OF_PROVED = 20_000_000
"""Points of programs that are run though they are proved equal."""
STEPS_OF_A_RUN = 1_000
"""A run of a block for itself takes as long as so many points of a block that runs at once."""
MOST_BYTES = 2_000_000_000
"""Memory of a run."""
BYTES_OF_AN_ELEMENT = 32
"""Memory for an element of an input or output beside its own: numbers are drawn, and results compared, in 64 bits."""


def not_run(*programs: Program, most: int = MOST_STEPS) -> str:
    """The words for a program that is too large to be run; empty where none is."""
    steps = max(_steps(program.entry, 1, 1) + _given(program) for program in programs)
    if steps > most:
        return f"not run: too large, some {steps} points"
    memory = max(map(_bytes, programs))
    return f"not run: too large, some {memory} bytes" if memory > MOST_BYTES else ""


def _bytes(program: Program) -> int:
    """An estimate of the memory that a run takes: whole buffers, each element with a mark that it is written."""
    buffers = (*program.entry.allocs, *program.main.allocs)
    whole = sum(ref.elements * (ref.dtype.bytes + 1) for ref in buffers)
    return whole + BYTES_OF_AN_ELEMENT * _given(program)


def _given(program: Program) -> int:
    """The elements of inputs and outputs: to draw or compare one takes as long as a point."""
    return sum(ref.elements for ref in (*program.inputs, *program.outputs))


def _steps(block: Block, points: int, runs: int) -> int:
    """An estimate of the work of an interpretation: blocks with addresses inside run their points one by one, and a
    special touches all elements of its operands."""
    points *= block.points
    if any(ref.offset is not None for ref in block.allocs):
        runs *= block.points
    inner = sum(_steps(child, points, runs) for child in block.blocks)
    for special in (statement for statement in block.statements if isinstance(statement, Special)):
        inner += points * sum(block.ref(name).elements for name in (*special.inputs, *special.outputs))
    return points * len(block.statements) + STEPS_OF_A_RUN * runs + inner


@dataclass(frozen=True, slots=True)
class DataSet:
    """Inputs for a program, drawn anew for each run. `breaks`: the assumption without which equal programs may differ
    on them. Floats are multiples of `step`; with `signs` also of numbers that should be positive."""

    name: str
    draw: Callable[[], Mapping[str, Array]]
    breaks: Assumption | None = None
    step: float = 1.0
    signs: bool = False


def data_sets(program: Program, seeds: Sequence[int] = SEEDS) -> Iterator[DataSet]:
    """Small integers and fractions, on which sums of floats are exact, extremes of the integers, then of floats."""
    most = best_magnitude(program)
    fractions = not order_free(program, most) or order_free(program, most, chains=True, step=FRACTION)
    for seed in seeds:
        step = FRACTION if fractions and seed in SEEDS_OF_FRACTIONS else 1.0
        signs = seed in SEEDS_OF_SIGNS and takes_positive(program)
        draw = partial(random_inputs, program, seed, step=step, signs=signs)
        yield DataSet(f"seed {seed}", draw, step=step, signs=signs)
    dtypes = {ref.dtype for ref in program.inputs}
    if any(not dtype.is_float and dtype.kind != "bool" for dtype in dtypes):
        yield DataSet("extremes of the integers", partial(extreme_inputs, program, (), integers=True))
    if any(dtype.is_float for dtype in dtypes):
        for name, words, breaks in (
            ("zeros of both signs", ("0", "-0"), Assumption.ZERO_SIGN),
            ("extremes of the floats", ("max", "-max", "tiny", "-tiny"), Assumption.FLOAT_ORDER),
            ("infinities and NaN", ("inf", "-inf", "nan"), Assumption.FINITE),
        ):
            yield DataSet(name, partial(extreme_inputs, program, words), breaks)


@dataclass(frozen=True, slots=True)
class JointRun:
    """The outcome of running two programs: the number of data sets, the first difference that counts, and the names of
    data sets whose differences an assumption allows; or the reason why they were not run. `is_open`: on no data but
    extremes of the floats they agree in all elements. `rounded`: they agree up to roundings, which no granted
    assumption allows."""

    sets: int
    failed: str = ""
    allowed: tuple[str, ...] = ()
    not_run: str = ""
    is_open: bool = False
    rounded: bool = False

    @property
    def agrees(self) -> bool:
        """Whether both programs ran and the results say that they are equal."""
        return not self.not_run and not self.failed and not self.is_open and not self.rounded

    def __str__(self) -> str:
        if self.not_run:
            return self.not_run
        if self.failed:
            return f"ran both programs on {self.sets} data sets: they differ\n{self.failed}"
        if self.is_open:
            return f"ran both programs on {self.sets} data sets: assumptions leave the results open"
        if self.rounded:
            return f"ran both programs on {self.sets} data sets: they agree up to roundings, which are not granted"
        but = f", but on {' and '.join(self.allowed)}" if self.allowed else ""
        return f"ran both programs on {self.sets} data sets: they agree{but}"


def run_on_all(before: Program, after: Program, assumed: frozenset[Assumption]) -> JointRun:
    """Interprets both programs on all data sets, up to the first difference that no assumption allows, unless they are
    too large."""
    if too_large := not_run(before, after):
        return JointRun(0, not_run=too_large)
    return _run_on(before, after, tuple(data_sets(before)), assumed)


def run_proved(
    before: Program, after: Program, assumed: frozenset[Assumption], *, most: int = MOST_STEPS_OF_PROVED
) -> JointRun:
    """A second opinion on programs that are proved equal: interprets both, if they have no more than `most` points, on
    the data on which what `assumed` allows makes no difference."""
    if too_large := not_run(before, after, most=most):
        return JointRun(0, not_run=too_large)
    sets = tuple(data for data in data_sets(before, SEEDS_OF_PROVED) if data.breaks not in assumed)
    return _run_on(before, after, sets, assumed)


def _run_on(
    before: Program, after: Program, sets: Sequence[DataSet], assumed: frozenset[Assumption]
) -> JointRun:
    """The outcome on `sets`, without those on which `before` breaks: there is nothing to compare with."""
    ran, told, agreed, rounded, allowed, broken = 0, False, False, False, list[str](), ""
    for data in sets:
        try:
            results = _Results.of(before, after, data)
            found = results.difference()
            # All results for such numbers are open; those of zeros are open one by one.
            allowed_here = data.breaks in assumed and data.breaks is not Assumption.ZERO_SIGN
            counts = found if not found or allowed_here else results.difference(assumed)
        except ExecutionError as error:
            broken = broken or f"not run: with {data.name}: {error}"
            continue
        ran += 1
        told |= results.tell
        if counts and not allowed_here:
            return JointRun(len(sets), f"with {data.name}: {counts}")
        agreed |= not found and data.breaks is None
        rounded |= not found and assumed.isdisjoint(_ROUNDING) and not results.same
        allowed += [data.name] if found else []
    if ran and not told:
        broken = f"ran both programs on {ran} data sets: all elements of a result are NaN"
    return JointRun(
        ran, allowed=tuple(allowed), not_run="" if told else broken, is_open=not agreed, rounded=rounded
    )


def difference(
    before: Program, after: Program, data: DataSet, assumed: frozenset[Assumption] = frozenset()
) -> str:
    """How the results of two programs differ on one set of data, but for elements that `assumed` leaves open; empty
    where they agree. Buffers of `before` lie apart, those of `after` at the addresses that they have."""
    return _Results.of(before, after, data).difference(assumed)


@dataclass(frozen=True, slots=True)
class _Results:
    """The inputs and results of two programs; the second has an error instead where it breaks."""

    programs: tuple[Program, Program]
    inputs: tuple[Mapping[str, Array], Mapping[str, Array]]
    expected: Mapping[str, Array]
    actual: Mapping[str, Array]
    error: str
    data: DataSet

    @staticmethod
    def of(before: Program, after: Program, data: DataSet) -> _Results:
        """Raises ExecutionError where `before` breaks."""
        inputs = data.draw()
        given = {ref.name: inputs[ref.name] for ref in after.inputs if ref.name in inputs}
        actual, broken = dict[str, Array](), ""
        with np.errstate(all="ignore"):
            expected = interpret(before, inputs, arenas=False)
            try:
                actual = interpret(after, given)
            except ExecutionError as error:
                broken = str(error)
        return _Results((before, after), (inputs, given), expected, actual, broken, data)

    @property
    def tell(self) -> bool:
        """Whether no result is NaN in all elements, which is so whatever the program computes."""
        found = (self.expected[name] for name in self._floats)
        return not any(array.size and np.isnan(array).all() for array in found)

    @property
    def _floats(self) -> set[str]:
        """The outputs of floats."""
        return {ref.name for ref in self.programs[0].outputs if ref.dtype.is_float}

    @property
    def same(self) -> bool:
        """Whether all results have the same bits, but for the signs of zeros."""
        return not compare(self.expected, self.actual, EXACT)

    def difference(self, assumed: frozenset[Assumption] = frozenset()) -> str:
        """The differences beyond the tolerance and what `assumed` leaves open."""
        if self.error:
            return self.error
        tolerance = self._tolerance(assumed)
        with np.errstate(all="ignore"):
            actual = self._without_long_sums(assumed, tolerance)
            if self.data.signs and Assumption.FINITE in assumed:
                actual = self._replaced(actual, lambda name: ~self._finite(name))
            bounds = self._bounds(actual, tolerance)
            differences = compare(self.expected, actual, tolerance, bounds)
            if differences and assumed:
                actual = self._closed(actual, assumed, tolerance, bounds)
                differences = compare(self.expected, actual, tolerance, bounds)
        if differences:
            return "; ".join(map(str, differences))
        if self.data.breaks is Assumption.ZERO_SIGN and Assumption.ZERO_SIGN not in assumed:
            return "; ".join(
                f"'{name}' {_OTHER_SIGNS}"
                for name, array in self.expected.items()
                if name in self._floats and (np.signbit(array) != np.signbit(actual[name]))[array == 0].any()
            )
        return ""

    def _bounds(self, actual: Mapping[str, Array], tolerance: Tolerance) -> Mapping[str, Array]:
        """Bounds of elements that agree by the size of the largest one alone."""
        if self.data.breaks is not None or not is_doubtful(self.expected, actual, tolerance):
            return {}
        return measured_bounds(self.programs[0], self.inputs[0], self.expected, tolerance)

    def _tolerance(self, assumed: frozenset[Assumption]) -> Tolerance:
        before, step = self.programs[0], self.data.step
        if Assumption.FLOAT_ORDER not in assumed:
            return tolerance_for(before)
        most = best_magnitude(before)
        exact = all(order_free(program, most, chains=True, step=step) for program in self.programs)
        return tolerance_for(before) if exact else LOOSE

    def _without_long_sums(self, assumed: frozenset[Assumption], tolerance: Tolerance) -> Mapping[str, Array]:
        """The results of the second program, with those of the first where elements follow from sums of so many terms
        that their roundings may be anything."""
        inexact = Assumption.FLOAT_ORDER in assumed and tolerance != EXACT
        if not inexact or not (dtypes := types_of_long_sums(*self.programs)):
            return self.actual
        first, second = (
            changed_by_sums(program, given, results, dtypes) for program, given, results in self._sides()
        )
        return self._replaced(self.actual, lambda name: first[name] | second[name])

    def _closed(
        self,
        actual: Mapping[str, Array],
        assumed: frozenset[Assumption],
        tolerance: Tolerance,
        bounds: Mapping[str, Array],
    ) -> Mapping[str, Array]:
        """The results `actual` of the second program, with those of the first where elements are open."""
        first, second = (
            open_values(program, given, results, assumed, tolerance)
            for program, given, results in self._sides()
        )
        return self._replaced(
            actual, lambda name: first[name].meets(second[name], tolerance, bounds.get(name))
        )

    def _finite(self, name: str) -> Array:
        """The mask of the elements of an output that are numbers in both results."""
        if name not in self._floats:
            return np.ones(self.expected[name].shape, np.bool_)
        return np.asarray(np.isfinite(self.expected[name]) & np.isfinite(self.actual[name]))

    def _sides(self) -> Iterator[tuple[Program, Mapping[str, Array], Mapping[str, Array]]]:
        """Each program with its inputs and results."""
        return zip(self.programs, self.inputs, (self.expected, self.actual), strict=True)

    def _replaced(self, actual: Mapping[str, Array], mask: Callable[[str], Array]) -> dict[str, Array]:
        """The results `actual` of the second program, with those of the first under a mask."""
        replaced = dict(actual)
        for name in self.expected.keys() & actual.keys():
            if (want := self.expected[name]).shape == (have := actual[name]).shape:
                replaced[name] = np.where(mask(name), want.astype(have.dtype), have)
        return replaced
