"""The stage that a program claims, checked: a file may say of itself that it is scheduled and placed."""

from __future__ import annotations

from stripe.hw.schema import HardwareModel
from stripe.ir import Diagnostic, Nest, Program, Stage, has_addresses, verify_structural
from stripe.ir.check.stages import check_addresses
from stripe.verify.machine.dependences import check_dependences
from stripe.verify.machine.registers import check_registers
from stripe.verify.machine.schedule import check_placement, check_schedule
from stripe.verify.machine.units import check_units, check_views


def check_claims(program: Program, hardware: HardwareModel | None = None) -> list[Diagnostic]:
    """All errors in the claims of a valid program about the machine: locations, addresses, dependences, the schedule.

    Dependences are checked where any statement of main has one, addresses where any buffer has one, and units where
    the machine is known.
    """
    nests = list(Nest.root(program.entry).walk())
    found = list(check_addresses(program)) or verify_structural(program, program.stage)
    found += check_views(nests)
    if hardware is not None:
        found += check_units(program.entry, hardware)
        found += check_registers(program.entry, hardware)
    if found:
        return found
    return check_stage(program, hardware)


def check_stage(
    program: Program, hardware: HardwareModel | None = None, *, dependences: bool = True
) -> list[Diagnostic]:
    """All errors of a schedule, and of addresses where any buffer has one; before the schedule, where statements of
    main have `dependences`, those that lack."""
    found: list[Diagnostic] = []
    if program.stage >= Stage.SCHEDULED:
        found = check_schedule(program, hardware)
    elif dependences and any(statement.deps for statement in program.main.statements):
        found = check_dependences(program)
    if has_addresses(program.entry):
        found += [wrong for wrong in check_placement(program, hardware) if wrong not in found]
    return found
