"""Runs of two programs on the same data."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.exec.data import random_inputs
from stripe.ir import Program
from stripe.verify.proof.running import SEEDS, DataSet, difference


def run_both(before: Program, after: Program, seeds: Sequence[int] = SEEDS[:2]) -> str:
    """How results differ on small integers; empty where they agree."""
    for seed in seeds:
        found = difference(before, after, DataSet(f"seed {seed}", random_inputs(before, seed)))
        if found:
            return f"with seed {seed}: {found}"
    return ""
