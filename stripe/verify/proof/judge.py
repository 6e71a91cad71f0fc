"""The whole answer about a rewrite: the proof, enumeration where it has none, and both programs run on the same data.

A proof is exact about terms, and incomplete in algebra. Running therefore tells of each difference whether it shows in
results, and the user learns both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from stripe.ir import Program, walk
from stripe.ir.check.stages import has_claims
from stripe.poly import time_limit
from stripe.verify import enumeration
from stripe.verify.assumptions import Assumption, in_order
from stripe.verify.enumerated_cells import InvalidProgram
from stripe.verify.policy import ANY, Policy
from stripe.verify.proof import running
from stripe.verify.proof.acceptance import Acceptance, Answer, accept
from stripe.verify.proof.prove import OPERATIONS, SECONDS, prove_equal
from stripe.verify.proof.running import JointRun
from stripe.verify.proof.witness import Equal, Unknown, Verdict

ENUMERATED = 50_000
"""Programs with more points are not enumerated where the proof has no answer: half a second each."""


TANGLED = 20
"""How much longer a step of isl may take where floors are nested."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict and, where it is not *equal*, the run of both programs; `misplaced` has errors in what
    the second program says of a machine."""

    verdict: Verdict
    policy: Policy = ANY
    run: JointRun | None = None
    misplaced: str = ""
    of_input: tuple[Assumption, ...] = ()
    """The assumptions under which the first program is right in itself."""

    @property
    def acceptance(self) -> Acceptance:
        """Acceptance of the verdict and the run under the policy."""
        return accept(self.verdict, self.policy, self.run, self.misplaced)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions that an accepted answer relies on."""
        return in_order({*self.of_input, *self.acceptance.assumptions}) if self.accepted else ()

    @property
    def answer(self) -> Answer:
        """The answer in words: a run that differs, or an error about the machine, makes it *different* for all that."""
        return self.acceptance.answer

    @property
    def accepted(self) -> bool:
        return self.acceptance.accepted

    def __bool__(self) -> bool:
        return self.accepted

    def __repr__(self) -> str:
        """The answer; the text has the witness."""
        return f"<Judgement {self.answer}>"

    def __str__(self) -> str:
        return self.acceptance.text


def judge(
    before: Program,
    after: Program,
    policy: Policy = ANY,
    *,
    operations: int = OPERATIONS,
    of_a_pass: bool = False,
) -> Judgement:
    """Proves that `after` computes what `before` does. Where the proof has no answer small programs are enumerated;
    where the answer is not *equal* both programs run. After *equal* they run too, as far as that is quick: a difference
    would be a fault of the proof. The schedule, dependences and addresses of `after` are checked. `of_a_pass`: other
    checks look at these after each pass, and the run of a whole list; both programs run after an enumeration alone."""
    if _is_tangled(before, after):
        operations //= TANGLED
    proved = prove_equal(before, after, operations=operations)
    verdict = _enumerated(before, after, proved) if isinstance(proved, Unknown) else proved
    misplaced = ""
    if not of_a_pass and has_claims(after):
        from stripe.verify.machine.claims import check_claims

        misplaced = "\n".join(f"error: {diagnostic}" for diagnostic in check_claims(after))
    if misplaced or (verdict is proved and isinstance(verdict, Equal) and of_a_pass):
        return Judgement(verdict, policy, misplaced=misplaced)
    if isinstance(verdict, Equal):
        run = running.run_proved(before, after, frozenset(verdict.assumptions))
        return Judgement(verdict, policy, run if run.failed else None)
    return Judgement(verdict, policy, running.run_on_all(before, after, policy.assumed))


def _enumerated(before: Program, after: Program, otherwise: Unknown) -> Verdict:
    """The verdict of the enumeration; `otherwise` where it has none, or `before` does something undefined."""
    with suppress(InvalidProgram), time_limit(SECONDS):
        found = enumeration.decide(before, after, most_points=ENUMERATED)
        return otherwise if isinstance(found, Unknown) else found
    return otherwise


def _is_tangled(*programs: Program) -> bool:
    """Whether isl steps may be slow for these programs, and enumeration is fast: floors of floors, and few points."""
    if any(enumeration.points(program) > ENUMERATED for program in programs):
        return False
    affines = (
        affine
        for program in programs
        for _, block in walk(program.entry)
        for affine in (
            *(c.affine for c in block.constraints),
            *(a for r in block.refinements for a in r.access),
        )
    )
    atoms = (atom for affine in affines for atom, _ in affine.terms)
    return any(not isinstance(atom, str) and not atom.arg.is_linear for atom in atoms)
