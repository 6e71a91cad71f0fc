"""Random programs through random pass lists, then broken in one place: what the proof calls equal runs equal."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from stripe.ir import Program, StripeError, verify_structural
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal
from tests.fuzz.__main__ import draw_cases
from tests.fuzz.check import Counts, Failure, run_passes
from tests.support.running import run_both
from tests.verify.mutate import mutants

CASES = 25
MUTANTS_OF_EACH = 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_is_called_equal_runs_equal(seed: int) -> None:
    chooser = random.Random(seed)
    tally: Counter[str] = Counter()
    for case in draw_cases(CASES, 1000 + seed):
        try:
            before = case.program()
        except StripeError:
            continue
        after = run_passes(case, before, Counts())
        if isinstance(after, Failure) or run_both(before, after[0]):
            continue  # a fault of a pass, which the fuzzer reports
        valid = [mutant for mutant in mutants(after[0]) if not verify_structural(mutant.program)]
        for mutant in chooser.sample(valid, min(len(valid), MUTANTS_OF_EACH)):
            tally[_judged(before, mutant.program, f"{case}\n{mutant}")] += 1
    assert tally["different"] > 5 * (tally["unknown"] + 1)


def _judged(before: Program, after: Program, what: str) -> str:
    verdict = prove_equal(before, after)
    if isinstance(verdict, Equal):
        assert run_both(before, after, (0, 1, 2)) == "", what
        return "equal"
    return "different" if isinstance(verdict, Different) else "unknown"
