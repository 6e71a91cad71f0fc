"""`--verify exact`: the client that proves each pass. It loads the integer sets, which the others do without."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import override

from stripe.ir import Program, StripeError
from stripe.pipeline.instrument import Instrument, PassEntry
from stripe.verify.checks import check_program
from stripe.verify.fallback import judge


class ProofError(StripeError):
    """A pass changed what the program means."""

    exit_status = 3


def check_input(program: Program, write: Callable[[str], None]) -> None:
    """Raises StripeError for a program that is wrong in itself: out of bounds, races, reads of what nobody wrote.

    What cannot be decided is told by `write`.
    """
    findings = check_program(program)
    for finding in findings:
        if finding.unknown:
            write(f"verify: the input: {'; '.join(str(finding).splitlines())}\n")
    errors = [str(finding).removeprefix("error: ") for finding in findings if not finding.unknown]
    if errors:
        first, *others = (StripeError(text, where="the input") for text in errors)
        first.others = tuple(others)
        raise first


class ExactCheck(Instrument):
    """`--verify exact`: proves that a pass kept the meaning. Where the proof has no answer both programs run instead.

    The input is checked first: a proof says nothing about programs that are wrong in themselves.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    @override
    def begin(self, program: Program) -> None:
        check_input(program, self._write)

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        if after is before:
            return
        judgement = judge(before, after)
        if not judgement.accepted:
            raise ProofError(
                f"pass {entry.label} changed the meaning of the program\n{_indented(str(judgement))}"
            )
        self._write(f"verify: {entry.name}: {'; '.join(str(judgement).splitlines())}\n")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
