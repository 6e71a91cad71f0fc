"""Dependences of main stay complete from pass to pass. (Those that a stage claims, the check of stages looks at.)"""

from __future__ import annotations

from typing_extensions import override

from stripe.ir import Program
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.fault import InternalFault
from stripe.pipeline.instrument import Instrument


class DependenceCheck(Instrument):
    """A pass that gives the statements of main dependences gives all, and a pass behind it keeps them. (An input whose
    own are incomplete may stay so.)"""

    def __init__(self) -> None:
        self._complete = False

    @override
    def begin(self, program: Program) -> None:
        self._complete = not _has_dependences(program) or not _missing(program)

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        ordered = _has_dependences(before)
        if after is before or not (ordered or _has_dependences(after)):
            return
        missing = _missing(after)
        if missing and self._complete:
            raise InternalFault(
                f"pass {entry.label} {'lost' if ordered else 'left out'} dependences", tuple(missing)
            )
        self._complete = not missing


def _has_dependences(program: Program) -> bool:
    return any(statement.deps for statement in program.main.statements)


def _missing(program: Program) -> list[str]:
    from stripe.verify.machine.dependences import check_dependences

    return [str(wrong) for wrong in check_dependences(program)]
