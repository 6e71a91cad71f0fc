"""The whole answer about a rewrite: the proof, and where it proves no equality, both programs run on the same data.

A proof is exact about terms, and incomplete in algebra. Running therefore tells of each difference whether it shows in
results, and the user learns both.
"""

from __future__ import annotations

from dataclasses import dataclass

from stripe.ir import Program, walk
from stripe.verify.proof.prove import OPERATIONS, prove_equal
from stripe.verify.proof.witness import Different, Equal, Unknown, Verdict

SEEDS = (0, 1)
CONFIRMING = (0, 1, 2, 3, 4, 5)
"""Seeds that are tried until one shows a difference."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of the proof and, where it proves no equality, of running: `ran` describes the run, `failed` its
    difference."""

    verdict: Verdict
    ran: str = ""
    failed: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the rewrite is proved, or unknown and equal when run."""
        return not isinstance(self.verdict, Different) and not self.failed

    @property
    def proved(self) -> bool:
        return not isinstance(self.verdict, Different | Unknown)

    def __bool__(self) -> bool:
        return self.accepted

    def __str__(self) -> str:
        return "\n".join(text for text in (str(self.verdict), self.ran, self.failed) if text)


def judge(
    before: Program, after: Program, *, operations: int = OPERATIONS, seeds: tuple[int, ...] = SEEDS
) -> Judgement:
    """Proves that `after` computes what `before` does, or runs both on small-integer data where the proof has no
    answer."""
    verdict = prove_equal(before, after, operations=operations)
    placed = _misplaced(after)
    if isinstance(verdict, Equal) or placed:
        return Judgement(verdict, failed=placed)
    if isinstance(verdict, Different):
        seeds = tuple(dict.fromkeys((*seeds, *CONFIRMING)))
    failed = run_both(before, after, seeds)
    agree = "they agree, which does not confirm the difference"
    outcome = "they differ" if failed else agree if isinstance(verdict, Different) else "they agree"
    return Judgement(verdict, f"ran both programs on {len(seeds)} sets of small integers: {outcome}", failed)


def _misplaced(program: Program) -> str:
    """The errors in the addresses of buffers, which have no part in the meaning that is proved; empty when there are
    none.
    """
    if not any(ref.offset is not None for _, block in walk(program.entry) for ref in block.allocs):
        return ""
    from stripe.verify.machine.schedule import check_placement

    return "\n".join(f"error: {diagnostic}" for diagnostic in check_placement(program))


def run_both(before: Program, after: Program, seeds: tuple[int, ...] = SEEDS) -> str:
    """How the outputs differ when both programs are interpreted on the same random data; empty when they agree."""
    from stripe.exec.compare import compare, tolerance_for
    from stripe.exec.data import random_inputs
    from stripe.exec.errors import ExecutionError
    from stripe.exec.interp import interpret

    for seed in seeds:
        inputs = random_inputs(before, seed)
        expected = interpret(before, inputs)
        try:
            actual = interpret(
                after, {ref.name: inputs[ref.name] for ref in after.inputs if ref.name in inputs}
            )
        except ExecutionError as error:
            return f"with seed {seed}: {error}"
        differences = compare(expected, actual, tolerance_for(before))
        if differences:
            return f"with seed {seed}: {'; '.join(map(str, differences))}"
    return ""
