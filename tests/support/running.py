"""Runs of two programs on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from stripe.exec.arith import Array
from stripe.exec.compare import Tolerance, compare, tolerance_for
from stripe.exec.compile import CompiledProgram
from stripe.exec.data import random_inputs
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.exec.isolation import isolated
from stripe.ir import Program
from stripe.pipeline.engines import Arrays
from stripe.verify.proof.running import SEEDS


def run_both(before: Program, after: Program, seeds: Sequence[int] = SEEDS[:2]) -> str:
    """How results differ on small integers; empty where they agree."""
    for seed in seeds:
        inputs, expected, tolerance = _expected(before, seed)
        try:
            actual = interpret(
                after, {ref.name: inputs[ref.name] for ref in after.inputs if ref.name in inputs}
            )
        except ExecutionError as error:
            return f"with seed {seed}: {error}"
        if found := compare(expected, actual, tolerance):
            return f"with seed {seed}: {'; '.join(map(str, found))}"
    return ""


@lru_cache(maxsize=8)
def _expected(program: Program, seed: int) -> tuple[Arrays, Arrays, Tolerance]:
    """Inputs and results of a program that many rewrites are compared with, and how near theirs have to be."""
    inputs = random_inputs(program, seed)
    return inputs, interpret(program, inputs), tolerance_for(program)


def run_apart(built: CompiledProgram, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The results of a run in a copy of this process: threads of OpenMP do not survive the forks of later runs."""
    return isolated(lambda: built.run(inputs))
