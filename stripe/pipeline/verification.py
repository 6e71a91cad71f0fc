"""Clients that check each pass: structure, printed form, and (with `--verify exact`) meaning."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import override

from stripe.ir import Program, Stage, StripeError, parse_program, print_program, verify_structural
from stripe.pipeline.instrument import Instrument, InternalFault, PassEntry
from stripe.verify.checks import check_program
from stripe.verify.fallback import judge

_SHOWN = 10


class StructureCheck(Instrument):
    """After each pass the program is valid at the stage that it has reached. If not, the pass is at fault."""

    def __init__(self) -> None:
        self._stage = Stage.TILED

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        ensured = entry.pass_.ensures
        reached = max(self._stage, entry.pass_.requires, ensured or Stage.TILED)
        if after is before and reached == self._stage:
            return
        self._stage = reached
        found = verify_structural(after, reached)
        if found:
            more = [f"… and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
            raise InternalFault(
                f"pass {entry.label} produced invalid IR",
                (*(str(diagnostic) for diagnostic in found[:_SHOWN]), *more),
            )


class RoundTripCheck(Instrument):
    """`--verify-roundtrip`: what a pass produces prints to text that parses back to an equal program."""

    @override
    def begin(self, program: Program) -> None:
        _round_trip(program, "the input")

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        if after is not before:
            _round_trip(after, f"the result of pass {entry.label}")


def _round_trip(program: Program, what: str) -> None:
    text = print_program(program)
    try:
        again = parse_program(text, "<printed>")
    except StripeError as error:
        raise InternalFault(
            f"{what} prints to text that does not parse", tuple(str(error).splitlines())
        ) from None
    if again != program:
        raise InternalFault(
            f"{what} prints to text that parses to another program", _first_difference(program, again)
        )


def _first_difference(program: Program, again: Program) -> tuple[str, ...]:
    """The first line in which the two print differently; when all print alike, that is said."""
    for first, second in zip(
        print_program(program).splitlines(), print_program(again).splitlines(), strict=False
    ):
        if first != second:
            return (f"printed:  {first.strip()}", f"reparsed: {second.strip()}")
    return ("both print alike, so the text leaves something out",)


class ProofError(StripeError):
    """A pass changed what the program means."""

    exit_status = 3


class ExactCheck(Instrument):
    """`--verify exact`: proves that a pass kept the meaning. Where the proof has no answer both programs run instead.

    The input is checked first: a proof says nothing about programs that are wrong in themselves.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    @override
    def begin(self, program: Program) -> None:
        findings = check_program(program)
        for finding in findings:
            if finding.unknown:
                self._write(f"verify: the input: {'; '.join(str(finding).splitlines())}\n")
        errors = [str(finding).removeprefix("error: ") for finding in findings if not finding.unknown]
        if errors:
            first, *others = (StripeError(text, where="the input") for text in errors)
            first.others = tuple(others)
            raise first

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
