"""Buffers in the registers of execution units: a check that shares no code with the passes that locate them there.

Registers belong to the unit on which the block runs that allocates the buffer: each unit has one file of them, with the
number 0. Along a dimension of banks each lane of the unit has registers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from stripe.hw.schema import HardwareModel
from stripe.ir import Block, Diagnostic, Nest, Refinement, walk
from stripe.ir.check.diagnostic import Part
from stripe.ir.uses import uses_by_name
from stripe.verify.machine.interference import Placed
from stripe.verify.machine.order import closure, is_in
from stripe.verify.machine.units import Place, allocation, unit_of


def check_registers(entry: Block, hardware: HardwareModel) -> list[Diagnostic]:
    """Buffers in registers fit into them, together with all that lives there at one time, and are used on the unit that
    has them alone."""
    files = hardware.register_files - hardware.mem_units.keys()
    if not any(ref.location.name in files for _, block in walk(entry) for ref in block.allocs):
        return []
    found: list[Diagnostic] = []
    for nest in Nest.root(entry).walk():
        for number, ref in enumerate(nest.block.refinements):
            if ref.location.name in files:
                part: Part = ("refinement", number)
                wrong = _wrong_allocation(nest, ref, hardware) if ref.is_alloc else _wrong_view(nest, ref)
                found += [
                    Diagnostic(message, nest.path, nest.block.name, hint, part) for message, hint in wrong
                ]
        outermost = nest.outer is not None and nest.outer.block.is_main
        for file in sorted(files) if outermost or nest.block.location else ():
            room, held = _room(nest, file, hardware), _held(nest, file, unit_of(nest))
            if room is not None and held > room:
                message = f"it holds {held} bytes in {file} at one time, which has {room}"
                found.append(Diagnostic(message, nest.path, nest.block.name, "tile more finely"))
    return found


def _wrong_allocation(nest: Nest, ref: Refinement, hardware: HardwareModel) -> Iterator[tuple[str, str]]:
    file, runs = ref.location.name, unit_of(nest).location.name
    owners = {
        name: unit
        for name, unit in hardware.exec_units.items()
        if unit.register_file == file and unit.registers
    }
    if runs and runs not in owners:
        yield (
            f"'{ref.name}' is located in {file}, which {runs} does not have",
            f"units with {file}: {', '.join(owners)}",
        )
        return
    if any(number.terms or number.offset for number in ref.location.devices[-1].units):
        yield f"'{ref.name}' is located in {ref.location}, and each unit has one {file}", "its number is 0"
    lanes = max(unit.subgroup for name, unit in owners.items() if name == runs or not runs)
    if ref.bank_dim is not None and ref.dims[ref.bank_dim].size > lanes:
        banks = ref.dims[ref.bank_dim].size
        yield f"'{ref.name}' takes the registers of {banks} lanes, and there are {lanes}", "use fewer lanes"
    room, end = _room(nest, file, hardware), Placed(nest, ref, ()).end if ref.offset is not None else 0
    if room is not None and end > room:
        yield f"'{ref.name}' ends at byte {end} of {file}, which has {room}", "tile more finely"


def _wrong_view(nest: Nest, ref: Refinement) -> Iterator[tuple[str, str]]:
    holder, _ = allocation(nest, ref)
    mine, theirs = unit_of(nest).location, unit_of(holder).location
    if mine and mine != theirs:
        owner = f"those of {theirs}" if theirs else "those of no unit"
        message = f"'{ref.name}' is used on {mine}, and its registers are {owner}"
        yield message, "transfer it through a memory, or allocate it on the unit that uses it"


def _room(nest: Nest, file: str, hardware: HardwareModel) -> int | None:
    """Bytes of the registers of a lane of the unit that runs the block, of the largest that it may be; None where the
    model does not say."""
    runs = unit_of(nest).location.name
    sizes = [
        unit.register_file_bytes
        for name, unit in hardware.exec_units.items()
        if unit.register_file == file and unit.registers and (name == runs or not runs)
    ]
    return max((size for size in sizes if size is not None), default=None) if None not in sizes else None


def _held(nest: Nest, file: str, unit: Place) -> int:
    """Bytes of registers that buffers of a block and of the blocks inside take at one time, in a lane: of all blocks
    that may run on its unit."""
    block, uses, most = nest.block, uses_by_name(nest.block), 0
    own = [ref for ref in block.allocs if ref.location.name == file and uses.get(ref.name)]
    if own and not _may_be_one(unit_of(nest), unit):
        own = []
    order = (
        closure(block) if block.is_main else [(1 << number) - 1 for number in range(len(block.statements))]
    )
    inside = {number: _held(child, file, unit) for number, child in nest.children()}
    for number in range(len(block.statements)):
        alive = (
            ref
            for ref in own
            if not all(is_in(use, order[number]) for use in uses[ref.name])
            and not all(is_in(number, order[use]) for use in uses[ref.name])
        )
        most = max(most, inside.get(number, 0) + sum(map(_lane_bytes, alive)))
    return most


def _may_be_one(first: Place, second: Place) -> bool:
    """Whether two blocks may run on one unit. A block without a location may run on any."""
    if not first.location or not second.location or first.location == second.location:
        return True
    return first.shares_unit(second)


def _lane_bytes(ref: Refinement) -> int:
    banks = 1 if ref.bank_dim is None else ref.dims[ref.bank_dim].size
    return (ref.pitch or ref.bytes // banks) * ref.copies
