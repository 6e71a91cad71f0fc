"""Proofs: of each pass (`--verify exact`), and of the result (`--verify-against`). Other checks load no prover."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from typing_extensions import override

from stripe.exit_status import MISMATCH
from stripe.ir import Program, StripeError, has_addresses
from stripe.ir.errors import combine
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.fault import InternalFault
from stripe.pipeline.instrument import Instrument
from stripe.verify.assumptions import Assumption, in_order
from stripe.verify.interface import moved_tensor
from stripe.verify.policy import ANY, Policy
from stripe.verify.proof.acceptance import Acceptance, accept
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import prove_pads
from stripe.verify.proof.running import MOST_STEPS, MOST_STEPS_OF_PROVED, run_proved
from stripe.verify.proof.witness import Unknown
from stripe.verify.soundness import Finding, check_soundness


class ProofError(StripeError):
    """Two programs do not mean the same."""

    exit_status = MISMATCH


def require_sound(
    program: Program, write: Callable[[str], object], name: str = "the input", policy: Policy = ANY
) -> tuple[Assumption, ...]:
    """The assumptions that the pads of outputs need. Raises StripeError for a program that is wrong in itself: out of
    bounds, races, reads of unwritten elements. `write` gets a line for each property that cannot be decided, and for
    each assumption that the pads of outputs need; ProofError where `policy` does not accept these.
    """
    raise_findings(errors_of(check_soundness(program), write, name, policy), name)
    pads = accept(prove_pads(program), policy)
    if pads.answer == "different":
        raise StripeError(pads.text.removeprefix("error: "), where=name)
    _require(pads, write, name, "the pads of outputs: ")
    for flag in pads.assumptions:
        write(f"verify: {name}: the pads of outputs: assuming {flag}: {flag.text}\n")
    return pads.assumptions


def errors_of(
    findings: Sequence[Finding], write: Callable[[str], object], name: str, policy: Policy = ANY
) -> list[Finding]:
    """The findings that are errors; `write` gets a line for each property of the program `name` without an answer.
    Where there is no error, ProofError for one that `policy` does not accept."""
    errors = [finding for finding in findings if not finding.unknown]
    for finding in findings:
        if finding.unknown:
            unknown = Unknown(str(finding).removeprefix("unknown: "))
            _require(accept(unknown, ANY if errors else policy), write, name)
    return errors


def _require(found: Acceptance, write: Callable[[str], object], name: str, what: str = "") -> None:
    """ProofError for an answer about the program `name` alone that is not accepted; `write` gets a line for one without
    a proof."""
    if found.answer == "unknown":
        write(f"verify: {name}: {what}{'; '.join(found.text.splitlines())}\n")
    if not found.accepted:
        if found.answer == "unknown":
            reason = "the program is not proved to be right in itself"
            raise ProofError(reason, where=name, hint="without --verify-unknown fail it is taken to be")
        raise ProofError(what + "\n  ".join(found.text.splitlines()), where=name)


def raise_findings(findings: Sequence[Finding], name: str) -> None:
    """Raises StripeError with all findings about the program that users know as `name`, where there are any."""
    if findings:
        raise combine(
            StripeError(str(found).removeprefix("error: "), where=name, hint=found.hint or None)
            for found in findings
        )


def quiet(_text: str) -> None:
    """A `write` that drops its lines."""


def require_equal(
    reference: Program, name: str, program: Program, write: Callable[[str], None], policy: Policy
) -> None:
    """Proves that `program` computes what `reference` does, which users know as `name`. Raises ProofError for an answer
    that `policy` does not accept, StripeError for a reference that is wrong in itself.
    """
    require_sound(reference, write, name, policy)
    report = _Report(write, policy)
    words = ("does not compute", "is not proved to compute")
    different, unproved = (f"the program {verb} what {name} does" for verb in words)
    report.require(reference, program, name, (different, unproved))
    report.summary()


class _Report:
    """The answers of a run, and the assumptions of all of them, each with the proofs that rely on it."""

    def __init__(self, write: Callable[[str], None], policy: Policy) -> None:
        self._write = write
        self.policy = policy
        self.proved = True
        self._relying: dict[Assumption, list[str]] = {}

    @property
    def assumed(self) -> frozenset[Assumption]:
        """The assumptions of the answers up to now; those of the policy where one has no proof."""
        return frozenset(self._relying) if self.proved else self.policy.assumed

    def require(
        self,
        before: Program,
        after: Program,
        name: str,
        failures: tuple[str, str],
        *,
        of_a_pass: bool = False,
    ) -> None:
        """Writes the answer. Raises ProofError unless it is accepted; `failures` say *different* and *not proved*."""
        found = judge(before, after, self.policy, of_a_pass=of_a_pass).acceptance
        if not found.accepted:
            failure = failures[found.answer != "different"]
            raise ProofError("\n  ".join([failure, *found.text.splitlines()]))
        self.proved = self.proved and found.answer == "equal"
        self._write(f"verify: {name}: {'; '.join(found.text.splitlines())}\n")
        for flag in found.assumptions:
            self._relying.setdefault(flag, []).append(name)

    def summary(self) -> None:
        """Writes one line for each assumption; the lines of single answers stay short."""
        for flag in in_order(self._relying):
            names = ", ".join(dict.fromkeys(self._relying[flag]))
            self._write(f"verify: assuming {flag} ({names}): {flag.text}\n")


class ExactCheck(Instrument):
    """`--verify exact`: proves that a pass kept the meaning. Where the proof has no answer both programs run instead.
    At the end the result runs against the input, each buffer at the address that it has.

    The input is checked first, unless it has been: a proof says nothing about programs that are wrong in themselves.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        policy: Policy,
        name: str = "the input",
        *,
        input_checked: bool = False,
    ) -> None:
        self._write = write
        self._report = _Report(write, policy)
        self._name = name
        self._input_checked = input_checked
        self._input: Program | None = None
        self.executed = False
        """Whether the result of the passes ran against the input: programs that are too large do not."""

    @property
    def proved(self) -> bool:
        """Whether each pass up to now has a proof: the answer may be accepted without one."""
        return self._report.proved

    @override
    def begin(self, program: Program) -> None:
        if not self._input_checked:
            require_sound(program, self._write, self._name, self._report.policy)
        self._input = program

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        if after is not before:
            failures = (
                f"pass {entry.label} changed the meaning of the program",
                f"pass {entry.label} is not proved to keep the meaning of the program",
            )
            moved = None if entry.pass_.changes_interface else moved_tensor(before, after)
            if moved is not None:
                raise ProofError(
                    f"{failures[0]}\n  error: '{moved}' lies in memory in another way than before"
                )
            self._report.require(before, after, entry.name, failures, of_a_pass=True)

    @override
    def end(self, program: Program) -> None:
        self._report.summary()
        assert self._input is not None
        placed = has_addresses(program.entry)
        if program is self._input and not placed:
            return
        most = MOST_STEPS if placed else MOST_STEPS_OF_PROVED
        run = run_proved(self._input, program, self._report.assumed, most=most)
        self.executed = not run.not_run
        if placed and run.failed and (moved := run_proved(program, program, frozenset(), most=most)).failed:
            raise ProofError(
                f"with its buffers at their addresses the program computes something else\n  {moved.failed}"
            )
        if run.failed:
            raise InternalFault(
                "the passes changed the meaning of the program, though no proof of a single one says so",
                (run.failed,),
            )
        if placed:
            equal = f"ran with every buffer at its address on {run.sets} sets of data: equal"
            self._write(f"verify: addresses: {run.not_run or equal}\n")
