"""Proofs: of each pass (`--verify exact`), and of the result (`--verify-against`). Other checks load no prover."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import override

from stripe.ir import Program, StripeError
from stripe.pipeline.instrument import Instrument, PassEntry
from stripe.verify.program import check_program
from stripe.verify.proof.judge import Judgement, judge


class ProofError(StripeError):
    """Two programs do not mean the same."""

    exit_status = 3


def check_input(program: Program, write: Callable[[str], None], name: str = "the input") -> None:
    """Raises StripeError for a program that is wrong in itself: out of bounds, races, reads of what nobody wrote.

    What cannot be decided is told by `write`.
    """
    findings = check_program(program)
    for finding in findings:
        if finding.unknown:
            write(f"verify: {name}: {'; '.join(str(finding).splitlines())}\n")
    errors = [str(finding).removeprefix("error: ") for finding in findings if not finding.unknown]
    if errors:
        first, *others = (StripeError(text, where=name) for text in errors)
        first.others = tuple(others)
        raise first


def check_against(reference: Program, name: str, program: Program, write: Callable[[str], None]) -> None:
    """Proves that `program` computes what `reference` does, which users know as `name`; where the proof has no answer
    both run instead. Raises ProofError when they differ, StripeError for a reference that is wrong in itself.
    """
    check_input(reference, write, name)
    _require(judge(reference, program), name, f"the program does not compute what {name} does", write)


def _require(judgement: Judgement, name: str, failure: str, write: Callable[[str], None]) -> None:
    if not judgement.accepted:
        raise ProofError(f"{failure}\n{_indented(str(judgement))}")
    write(f"verify: {name}: {'; '.join(str(judgement).splitlines())}\n")


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
        failure = f"pass {entry.label} changed the meaning of the program"
        _require(judge(before, after), entry.name, failure, self._write)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
