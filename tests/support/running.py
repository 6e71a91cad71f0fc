"""Runs of two programs on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stripe.exec.arith import Array
from stripe.exec.compile import CompiledProgram
from stripe.exec.data import random_inputs
from stripe.exec.isolation import isolated
from stripe.ir import Program
from stripe.verify.proof.running import SEEDS, DataSet, difference


def run_both(before: Program, after: Program, seeds: Sequence[int] = SEEDS[:2]) -> str:
    """How results differ on small integers; empty where they agree."""
    for seed in seeds:
        found = difference(before, after, DataSet(f"seed {seed}", random_inputs(before, seed)))
        if found:
            return f"with seed {seed}: {found}"
    return ""


def run_apart(built: CompiledProgram, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The results of a run in a copy of this process: threads of OpenMP do not survive the forks of later runs."""
    return isolated(lambda: built.run(inputs))
