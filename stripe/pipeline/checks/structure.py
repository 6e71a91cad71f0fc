"""Clients that check each pass: structure and stage, and the printed form. (`proof` beside it has the meaning.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from stripe.ir import (
    ConfigError,
    Diagnostic,
    Nest,
    Program,
    Stage,
    StripeError,
    has_addresses,
    parse_program,
    print_program,
    verify_structural,
)
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.fault import InternalFault, first_lines
from stripe.pipeline.instrument import Instrument

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel


class StructureCheck(Instrument):
    """After each pass the program is valid at the stage that it has reached. If not, the pass is at fault.

    From the stage `scheduled` on the dependences and the places of buffers are checked too, by code of their own.
    """

    def __init__(self, hardware: HardwareModel | None = None) -> None:
        self._hardware = hardware
        self._valid: Program | None = None

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        if after is before:
            return
        found = verify_structural(after, after.stage, self._valid if after.stage == before.stage else None)
        self._valid = after
        if not found and (moved := sorted(_signature(before) ^ _signature(after))):
            raise InternalFault(
                f"pass {entry.label} changed the interface of the program", tuple(map(" ".join, moved))
            )
        if not found and self._hardware is not None:
            require_units(entry, after, self._hardware)
        if not found:
            found = self._check_machine(after)
        if found:
            raise InternalFault(f"pass {entry.label} produced invalid IR", first_lines(found))

    def _check_machine(self, program: Program) -> list[Diagnostic]:
        if program.stage < Stage.SCHEDULED and not has_addresses(program.entry):
            return []
        from stripe.verify.machine.claims import check_stage

        return check_stage(program, self._hardware, dependences=False)


def _signature(program: Program) -> set[tuple[str, str]]:
    """The interface for callers: the tensors, each with its role."""
    return {
        (word, f"{ref.dtype} {ref.name}{list(ref.logical_sizes)}")
        for word, refs in (("input", program.inputs), ("output", program.outputs))
        for ref in refs
    }


def require_units(entry: PassEntry, program: Program, hardware: HardwareModel) -> None:
    """Raises ConfigError for units that the machine lacks, and in a schedule for units without a bus to their memories:
    locations come from options."""
    from stripe.verify.machine.reach import check_reach
    from stripe.verify.machine.registers import check_registers
    from stripe.verify.machine.units import check_units

    wrong = check_units(program.entry, hardware) or check_registers(program.entry, hardware)
    if not wrong and program.stage >= Stage.SCHEDULED:
        wrong = list(check_reach(list(Nest.root(program.entry).walk()), hardware))
    if wrong:
        first = wrong[0]
        where = f"pass {entry.label}" + (f": block {first.name}" if first.name else "")
        raise ConfigError(first.message, where=where, hint=first.hint or None)


class RoundTripCheck(Instrument):
    """`--verify-roundtrip`: the result of a pass prints to text that parses back to an equal program."""

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
    """The first line in which the two programs print differently, or the remark that there is none."""
    texts = (print_program(each).splitlines() for each in (program, again))
    for first, second in zip(*texts, strict=False):
        if first != second:
            return (f"printed:  {first.strip()}", f"reparsed: {second.strip()}")
    return ("both print the same text, so the text leaves something out",)
