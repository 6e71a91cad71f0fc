"""Both programs run on the same data: small integers, then values at the rim of the dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from stripe.exec.arith import Array
from stripe.exec.compare import compare, tolerance_for
from stripe.exec.data import extreme_inputs, random_inputs
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import Block, Program, Special
from stripe.verify.assumptions import Assumption

_OTHER_SIGNS = "has zeros of other signs"
SEEDS = (0, 1, 2, 3, 4, 5)
"""Seeds of the sets of small integers."""
MOST_STEPS = 200_000_000
"""Points of programs that are run: half a minute of interpretation."""
STEPS_OF_A_RUN = 1_000
"""A run of a block for itself takes as long as so many points of a block that runs at once."""


def not_run(*programs: Program) -> str:
    """The words for a program that is too large to be run; empty where none is."""
    steps = max(_steps(program.entry, 1, 1) for program in programs)
    return f"not run: too large, some {steps} points" if steps > MOST_STEPS else ""


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


def data_sets(program: Program) -> Iterator[DataSet]:
    """Small integers, on which sums of floats are exact, extremes of the integers, then of floats."""
    for seed in SEEDS:
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
    data sets whose differences an assumption allows; or the reason why they were not run."""

    sets: int
    failed: str = ""
    allowed: tuple[str, ...] = ()
    not_run: str = ""

    def __str__(self) -> str:
        if self.not_run:
            return self.not_run
        if self.failed:
            return f"ran both programs on {self.sets} data sets: they differ\n{self.failed}"
        but = f", but on {' and '.join(self.allowed)}" if self.allowed else ""
        return f"ran both programs on {self.sets} data sets: they agree{but}"


def run_on_all(before: Program, after: Program, assumed: frozenset[Assumption]) -> JointRun:
    """Interprets both programs on all data sets, up to the first difference that no assumption allows, unless they are
    too large."""
    if too_large := not_run(before, after):
        return JointRun(0, not_run=too_large)
    allowed: list[str] = []
    sets = tuple(data_sets(before))
    for data in sets:
        found = difference(before, after, data)
        if not found:
            continue
        # Another sign of a zero may be allowed; another value never follows from zeros alone.
        sign_only = data.breaks is not Assumption.ZERO_SIGN or found.endswith(_OTHER_SIGNS)
        if data.breaks not in assumed or not sign_only:
            return JointRun(len(sets), f"with {data.name}: {found}")
        allowed.append(data.name)
    return JointRun(len(sets), allowed=tuple(allowed))


def difference(before: Program, after: Program, data: DataSet) -> str:
    """How the results of two programs differ on one set of data; empty where they agree."""
    with np.errstate(all="ignore"):
        expected = interpret(before, data.inputs)
        try:
            actual = interpret(
                after, {ref.name: data.inputs[ref.name] for ref in after.inputs if ref.name in data.inputs}
            )
        except ExecutionError as error:
            return str(error)
        differences = compare(expected, actual, tolerance_for(before))
    if differences:
        return "; ".join(map(str, differences))
    if data.breaks is Assumption.ZERO_SIGN:
        return "; ".join(
            f"'{name}' {_OTHER_SIGNS}"
            for name, array in expected.items()
            if array.dtype.kind == "f" and (np.signbit(array) != np.signbit(actual[name]))[array == 0].any()
        )
    return ""
