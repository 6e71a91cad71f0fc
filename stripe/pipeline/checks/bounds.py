"""Accesses of the program that becomes code without checks: they stay in their buffers and read elements that were
written, whatever passes did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from stripe.ir import Program
from stripe.pipeline.checks.proof import errors_of, quiet, raise_findings
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.fault import InternalFault, first_lines
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.verify.policy import ANY, Policy
from stripe.verify.soundness import check_memory

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel


def require_memory_safe(program: Program, write: Callable[[str], object], name: str = "the program") -> None:
    """Raises StripeError for accesses out of bounds and reads of unwritten elements; `write` gets a line for those
    that cannot be decided."""
    raise_findings(errors_of(check_memory(program), write, name), name)


class BoundsCheck(Instrument):
    """The accesses of the last program stay in bounds and read what was written, where passes changed the program that
    was read. If not, the list runs again up to the pass that is at fault: the programs between passes are checked then
    alone. ProofError where that cannot be decided and `policy` does not accept it."""

    def __init__(
        self,
        entries: Sequence[PassEntry],
        hardware: HardwareModel | None,
        write: Callable[[str], object],
        policy: Policy = ANY,
    ) -> None:
        self._again = PassManager(tuple(entries), hardware)
        self._write = write
        self._policy = policy
        self._first: Program | None = None

    @override
    def begin(self, program: Program) -> None:
        self._first = program

    @override
    def end(self, program: Program) -> None:
        if program is self._first or not errors_of(
            check_memory(program), self._write, "the result of the passes", self._policy
        ):
            return
        assert self._first is not None, "a run begins"
        program, culprit = self._first, "the input"
        found = errors_of(check_memory(program), quiet, culprit)
        for number, entry in enumerate(self._again.entries):
            if found:
                break
            program, culprit = self._again.step(number, program), f"the result of pass {entry.label}"
            found = errors_of(check_memory(program), quiet, culprit)
        raise InternalFault(f"{culprit} accesses memory out of bounds, or unwritten", first_lines(found))
