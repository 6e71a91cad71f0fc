"""What `autotile` reads from the hardware model: the memory's room, the routes to it, and the speed of a
point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripe.ir import (
    Agg,
    Block,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    Location,
    Statement,
    Store,
    result_dtype,
)
from stripe.ir.dtypes import I32
from stripe.passes.autotile_cost import Transfer, is_read_back
from stripe.passes.autotile_footprint import Footprint

if TYPE_CHECKING:
    from stripe.hw.graph import UnitGraph
    from stripe.hw.schema import ExecUnit, HardwareModel

Operation = tuple[str, DType]


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
    operations = count_operations(block)
    name = _unit_of(hardware, block) or min(
        hardware.exec_units, key=lambda unit: _slowness(hardware.exec_units[unit], operations), default=""
    )
    unit = hardware.exec_unit(name)
    cycles, missing = _cycles(unit, operations)
    stencil = _stencil_cycles(unit, block)
    return Machine(
        name,
        cycles if stencil is None else stencil,
        unit.latency_cycles,
        depth if depth is not None else unit.pipeline_depth,
        memory,
        room.size,
        room.alignment,
        missing if stencil is None else (),
    )


def _unit_of(hardware: HardwareModel, block: Block) -> str:
    """The execution unit of the block or of what runs inside; else the one that has the stencil it is tagged
    with.
    """
    for location in _locations(block):
        if location.name in hardware.exec_units:
            return location.name
    wanted = _stencil_names(block)
    for name, unit in hardware.exec_units.items():
        if any(stencil.name in wanted for stencil in unit.stencils if stencil.name):
            return name
    return ""


def _locations(block: Block) -> Iterable[Location]:
    yield block.location
    for inner in block.blocks:
        yield from _locations(inner)


def _stencil_names(block: Block) -> frozenset[str]:
    """The stencils that the indices of the block are tagged with, as `tensorize` does: `stencil_NAME`."""
    value = block.tags.get("stencil")
    names = {word.removeprefix("stencil_") for index in block.indices for word in index.tags}
    return frozenset(names | ({value} if isinstance(value, str) else set()))


def _stencil_cycles(unit: ExecUnit, block: Block) -> float | None:
    """Cycles of a point when the inside of the block is one use of a stencil that says how long it takes."""
    for inner in block.blocks:
        tag = inner.tags.get("stencil")
        for stencil in unit.stencils:
            if stencil.name and stencil.name == tag and stencil.cycles is not None:
                return stencil.cycles
    return None


def _slowness(unit: ExecUnit, operations: Mapping[Operation, int]) -> tuple[int, float]:
    cycles, missing = _cycles(unit, operations)
    return len(missing), cycles


def _cycles(unit: ExecUnit, operations: Mapping[Operation, int]) -> tuple[float, tuple[str, ...]]:
    """Cycles for the operations, and those without a speed."""
    slowest = min(unit.ops_per_cycle.values(), default=1.0)
    total, missing = 0.0, set[str]()
    for (op, dtype), times in operations.items():
        rate = unit.rate(op, dtype)
        if rate is None and op in ("mul", "add"):
            rate = unit.rate("mac", dtype)
        if rate is None:
            missing.add(f"{op}:{dtype.name}")
            rate = slowest
        total += times / rate
    return total, tuple(sorted(missing))


def count_operations(block: Block) -> Counter[Operation]:
    """Operations of one point of `block`: intrinsics and aggregating stores, by the dtype that they work on,
    inner blocks with all their points.
    """
    types: dict[str, DType] = {}
    counted: Counter[Operation] = Counter()
    for statement in block.statements:
        if isinstance(statement, Block):
            for operation, times in count_operations(statement).items():
                counted[operation] += times * statement.points
        else:
            counted.update(_operations(statement, block, types))
    return counted


def _operations(statement: Statement, block: Block, types: dict[str, DType]) -> list[Operation]:
    match statement:
        case Load(into, ref):
            types[into] = block.ref(ref).dtype
        case LoadIndex(into):
            types[into] = I32
        case Constant(into, _, dtype):
            types[into] = dtype
        case Intrinsic(into, op, inputs, dtype):
            types[into] = result_dtype(op, [types[name] for name in inputs], dtype)
            return [(op, types[inputs[0]] if inputs else types[into])]
        case Store(ref) if block.ref(ref).agg is not Agg.ASSIGN:
            return [(block.ref(ref).agg.value, block.ref(ref).dtype)]
        case _:
            pass
    return []


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
