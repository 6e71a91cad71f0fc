"""The prover under test: every mutant of a correct rewrite that changes the meaning is reported different.

Whether it changes the meaning is decided by running it; what the proof calls equal must run equal.
"""

from __future__ import annotations

from collections import Counter

import pytest

from stripe.ir import verify_structural
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal
from stripe.verify.soundness import check_soundness
from tests.support.running import run_both
from tests.support.tiers import some
from tests.verify.mutate import mutants, surroundings
from tests.verify.pairs import Pair, pairs
from tests.verify.pass_pairs import pass_pairs

SEEDS = (0, 1, 2, 3, 4, 5)
REASSOCIATED = {("fuse_rows", "swapped sources at 0.0.0.2: ML and SL")}
"""Mutants that compute the same by an algebra that is more than the reassociation of one sum."""


@pytest.mark.parametrize("pair", some([*pairs(), *pass_pairs()], every=4), ids=lambda pair: pair.name)
def test_mutants_are_caught(pair: Pair) -> None:
    tally: Counter[str] = Counter()
    for mutant in mutants(pair.after):
        if verify_structural(mutant.program):
            tally["invalid"] += 1
            continue
        verdict = prove_equal(pair.before, mutant.program)
        assert isinstance(verdict, Equal | Different), f"{mutant}: {verdict}"
        tally[type(verdict).__name__] += 1
        differs = run_both(pair.before, mutant.program, SEEDS[:1] if isinstance(verdict, Equal) else SEEDS)
        if isinstance(verdict, Equal):
            assert not differs, f"{mutant}: {verdict}; {differs}"
            assert not check_soundness(mutant.program), str(mutant)
        elif not differs:
            assert (pair.name, str(mutant)) in REASSOCIATED, f"{mutant}: {verdict}"
    assert tally["Different"] > tally["Equal"]
    assert sum(tally.values()) >= 14


@pytest.mark.parametrize("pair", [*pairs(), *pass_pairs()], ids=lambda pair: pair.name)
def test_mutants_around_blocks_are_caught(pair: Pair) -> None:
    """Compared with the program itself, so that nothing but the entry and `main` tells the difference."""
    tally: Counter[str] = Counter()
    for mutant in surroundings(pair.after):
        if not verify_structural(mutant.program):
            verdict = prove_equal(pair.after, mutant.program)
            assert isinstance(verdict, Equal | Different), f"{mutant}: {verdict}"
            tally[type(verdict).__name__] += 1
            differs = run_both(pair.after, mutant.program, SEEDS[:1] if isinstance(verdict, Equal) else SEEDS)
            assert bool(differs) == isinstance(verdict, Different), f"{mutant}: {verdict}; {differs}"
    assert tally["Different"] > tally["Equal"]
