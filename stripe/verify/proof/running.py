"""Both programs run on the same data: small integers, then values at the rim of the dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stripe.exec.arith import Array
from stripe.exec.compare import LOOSE, compare, tolerance_for
from stripe.exec.data import extreme_inputs, random_inputs
from stripe.exec.errors import ExecutionError
from stripe.exec.exactness import best_magnitude, order_free
from stripe.exec.interp import interpret
from stripe.ir import Block, Program, Special
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.variations import open_values

_OTHER_SIGNS = "has zeros of other signs"
SEEDS = (0, 1, 2, 3, 4, 5)
"""Seeds of the sets of small integers."""
SEEDS_OF_PROVED = SEEDS[:2]
"""Seeds for programs that are proved equal."""
MOST_STEPS = 200_000_000
"""Points of programs that are run: half a minute of interpretation."""
MOST_STEPS_OF_PROVED = 20_000_000
"""Points of programs that are run though they are proved equal."""
STEPS_OF_A_RUN = 1_000
"""A run of a block for itself takes as long as so many points of a block that runs at once."""


def not_run(*programs: Program, most: int = MOST_STEPS) -> str:
    """The words for a program that is too large to be run; empty where none is."""
    steps = max(_steps(program.entry, 1, 1) for program in programs)
    return f"not run: too large, some {steps} points" if steps > most else ""


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
    """Inputs for a program. `breaks`: the assumption without which equal programs may differ on them."""

    name: str
    inputs: Mapping[str, Array]
    breaks: Assumption | None = None


def data_sets(program: Program, seeds: Sequence[int] = SEEDS) -> Iterator[DataSet]:
    """Small integers, on which sums of floats are exact, extremes of the integers, then of floats."""
    for seed in seeds:
        yield DataSet(f"seed {seed}", random_inputs(program, seed))
    dtypes = {ref.dtype for ref in program.inputs}
    if any(not dtype.is_float and dtype.kind != "bool" for dtype in dtypes):
        yield DataSet("extremes of the integers", extreme_inputs(program, (), integers=True))
    if any(dtype.is_float for dtype in dtypes):
        yield DataSet("zeros of both signs", extreme_inputs(program, ("0", "-0")), Assumption.ZERO_SIGN)
        yield DataSet(
            "extremes of the floats", extreme_inputs(program, ("max", "-max", "tiny", "-tiny")),
            Assumption.FLOAT_ORDER,
        )  # fmt: skip
        yield DataSet(
            "infinities and NaN", extreme_inputs(program, ("inf", "-inf", "nan")), Assumption.FINITE
        )


@dataclass(frozen=True, slots=True)
class JointRun:
    """The outcome of running two programs: the number of data sets, the first difference that counts, and the names of
    data sets whose differences an assumption allows; or the reason why they were not run. `is_open`: on no data but
    extremes of the floats they agree in all elements."""

    sets: int
    failed: str = ""
    allowed: tuple[str, ...] = ()
    not_run: str = ""
    is_open: bool = False

    @property
    def agrees(self) -> bool:
        """Whether both programs ran and the results say that they are equal."""
        return not self.not_run and not self.failed and not self.is_open

    def __str__(self) -> str:
        if self.not_run:
            return self.not_run
        if self.failed:
            return f"ran both programs on {self.sets} data sets: they differ\n{self.failed}"
        if self.is_open:
            return f"ran both programs on {self.sets} data sets: assumptions leave the results open"
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
    ran, agreed, allowed, broken = 0, False, list[str](), ""
    for data in sets:
        try:
            found = difference(before, after, data)
            # All results for such numbers are open; those of zeros are open one by one.
            is_open = data.breaks in assumed and data.breaks is not Assumption.ZERO_SIGN
            counts = found if not found or is_open else difference(before, after, data, assumed)
        except ExecutionError as error:
            broken = broken or f"not run: with {data.name}: {error}"
            continue
        ran += 1
        if counts and not is_open:
            return JointRun(len(sets), f"with {data.name}: {counts}")
        agreed |= not found and data.breaks is None
        allowed += [data.name] if found else []
    return JointRun(ran, allowed=tuple(allowed), not_run="" if ran else broken, is_open=not agreed)


def difference(
    before: Program, after: Program, data: DataSet, assumed: frozenset[Assumption] = frozenset()
) -> str:
    """How the results of two programs differ on one set of data, but for elements that `assumed` leaves open; empty
    where they agree. Buffers of `before` lie apart, those of `after` at the addresses that they have."""
    tolerance = tolerance_for(before)
    if Assumption.FLOAT_ORDER in assumed:
        most = best_magnitude(before)
        exact = all(order_free(program, most, chains=True) for program in (before, after))
        tolerance = tolerance if exact else LOOSE
    with np.errstate(all="ignore"):
        expected = interpret(before, data.inputs, arenas=False)
        given = {ref.name: data.inputs[ref.name] for ref in after.inputs if ref.name in data.inputs}
        try:
            actual = interpret(after, given)
        except ExecutionError as error:
            return str(error)
        if assumed:
            first = open_values(before, data.inputs, expected, assumed, tolerance)
            second = open_values(after, given, actual, assumed, tolerance)
            for name in first.keys() & second.keys():
                if (want := expected[name]).shape == (have := actual[name]).shape:
                    met = first[name].meets(second[name], tolerance)
                    actual[name] = np.where(met, want.astype(have.dtype), have)
        differences = compare(expected, actual, tolerance)
    if differences:
        return "; ".join(map(str, differences))
    if data.breaks is Assumption.ZERO_SIGN and Assumption.ZERO_SIGN not in assumed:
        return "; ".join(
            f"'{name}' {_OTHER_SIGNS}"
            for name, array in expected.items()
            if array.dtype.kind == "f" and (np.signbit(array) != np.signbit(actual[name]))[array == 0].any()
        )
    return ""
