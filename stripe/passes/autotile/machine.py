"""What `autotile` reads from the hardware model: the memory's room, the routes to it, and the speed of a
point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripe.cost.counts.operations import Operations, point_operations
from stripe.cost.time.rates import StencilUse, missing_rates, rated, stencil_use
from stripe.ir import Block, Location
from stripe.passes.autotile.cost import Transfer, is_read_back
from stripe.passes.autotile.footprint import Footprint

if TYPE_CHECKING:
    from stripe.hw.graph import UnitGraph
    from stripe.hw.schema import ExecUnit, HardwareModel


@dataclass(frozen=True, slots=True)
class Machine:
    """The part of a machine that a block runs on."""

    unit: str
    cycles_per_point: float
    latency_per_tile: float
    pipeline_depth: int
    memory: str
    memory_bytes: int
    alignment: int
    missing: tuple[str, ...]
    """Operations that the unit has no speed for; counted at its slowest one."""


def find_machine(hardware: HardwareModel, block: Block, memory: str, depth: int | None) -> Machine:
    """The machine for `block`: the execution unit that it lies on or that has its stencil, else the quickest
    one for it.

    Raises ConfigError for a memory that the machine does not have, or a machine that computes nothing.
    """
    room = hardware.memory(memory)
    operations = nest_operations(block)
    name = _unit_of(hardware, block) or min(
        hardware.exec_units, key=lambda unit: _slowness(hardware.exec_units[unit], operations), default=""
    )
    unit = hardware.exec_unit(name)
    cycles, missing = _cycles(unit, operations)
    use = _stencil_use(unit, block)
    if use is not None:
        (inner,) = block.blocks
        cycles = _stencil_cycles(unit, inner, use)
    return Machine(
        name,
        cycles,
        unit.latency_cycles,
        depth if depth is not None else unit.pipeline_depth,
        memory,
        room.size,
        room.alignment,
        missing,
    )


def _unit_of(hardware: HardwareModel, block: Block) -> str:
    """The execution unit of the block or of what runs inside; else the first that has the stencil inside."""
    for location in _locations(block):
        if location.name in hardware.exec_units:
            return location.name
    units = hardware.exec_units.items()
    return next((name for name, unit in units if _stencil_use(unit, block) is not None), "")


def _locations(block: Block) -> Iterable[Location]:
    yield block.location
    for inner in block.blocks:
        yield from _locations(inner)


def _stencil_use(unit: ExecUnit, block: Block) -> StencilUse | None:
    """The only block inside as a use of a stencil of the unit, if it is one."""
    inner = list(block.blocks)
    return stencil_use(inner[0], unit) if len(inner) == 1 else None


def _stencil_cycles(unit: ExecUnit, block: Block, use: StencilUse) -> float:
    """Cycles of the uses of a stencil in one point: what it says, or its full size at the unit's speed, idle
    lanes too.
    """
    instructions = use.times * use.instructions
    if use.stencil.cycles is not None:
        return instructions * use.stencil.cycles
    return instructions * (use.full + use.stencil.startup_cost) * _cycles(unit, nest_operations(block))[0]


def _slowness(unit: ExecUnit, operations: Operations) -> tuple[int, float]:
    cycles, missing = _cycles(unit, operations)
    return len(missing), cycles


def _cycles(unit: ExecUnit, operations: Operations) -> tuple[float, tuple[str, ...]]:
    """Cycles for the operations, and those without a rate, which go at the slowest there is."""
    slowest = min(unit.ops_per_cycle.values(), default=1.0)
    cycles = sum(
        times / (unit.rate(op, dtype) or slowest) for (op, dtype), times in rated(operations).items()
    )
    return cycles, missing_rates(operations, unit)


def nest_operations(block: Block) -> Operations:
    """The operations of one point of `block`, inner blocks with all their points."""
    inner = [nest_operations(child).times(child.points) for child in block.blocks]
    return Operations.sum([point_operations(block), *inner])


def find_transfers(
    hardware: HardwareModel, graph: UnitGraph, footprints: Iterable[Footprint], memory: str
) -> list[Transfer]:
    """How the views come into `memory` and go back over the machine's buses.

    A view without a location lies in the machine's main memory. Raises ConfigError when no bus leads there.
    """
    near, found = f"{memory}[0]", list[Transfer]()
    for footprint in footprints:
        far = _unit_text(footprint.ref.location) or f"{hardware.main_memory}[0]"
        for reads in (True, False):
            needed = footprint.ref.dir.reads or is_read_back(footprint) if reads else footprint.ref.dir.writes
            if needed:
                route = graph.route(far, near) if reads else graph.route(near, far)
                found.append(Transfer(footprint, reads, route.bytes_per_cycle, route.latency_cycles))
    return found


def _unit_text(location: Location) -> str:
    """`NAME[number]` of the innermost device; number 0 where it depends on indices."""
    if not location.devices:
        return ""
    device = location.devices[-1]
    number = device.units[0].offset if device.units and device.units[0].is_constant else 0
    return f"{device.name}[{number}]"
