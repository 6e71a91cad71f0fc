"""The execution unit that computes the tiles of a block, and its speed."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.cost.counts.operations import Operations, point_operations
from stripe.cost.time.rates import StencilUse, missing_rates, rated, stencil_use
from stripe.hw.engines import SystolicArray
from stripe.hw.schema import ExecUnit, HardwareModel
from stripe.ir import Block, walk


@dataclass(frozen=True, slots=True)
class TileUnit:
    """The execution unit of the tiles of a block, and its speed."""

    name: str
    cycles_per_point: float
    latency_per_tile: float
    pipeline_depth: int
    missing: tuple[str, ...]
    """Operations without a rate on the unit; counted at its slowest rate."""
    array: SystolicArray | None = None


def find_unit(hardware: HardwareModel, block: Block, named: str = "") -> TileUnit:
    """The execution unit `named`; else that of the block's location or of the blocks inside; else the first with the
    stencil inside; else the quickest.

    Raises ConfigError for a machine that computes nothing.
    """
    operations = nest_operations(block)
    units = hardware.exec_units
    located = (inner.location.name for _, inner in walk(block) if inner.location.name in units)
    stencils = (name for name, unit in units.items() if _stencil_use(unit, block) is not None)
    quickest = min(units, key=lambda name: _slowness(units[name], operations), default="")
    name = named or next(located, "") or next(stencils, quickest)
    unit = hardware.exec_unit(name)
    cycles, missing = unit_cycles(unit, operations)
    use = _stencil_use(unit, block)
    if use is not None:
        # the stated cycles of a stencil, or its full size at the unit's speed, idle lanes included
        cycles = use.times * use.instructions
        if use.stencil.cycles is not None:
            cycles *= use.stencil.cycles
        else:
            (inner,) = block.blocks
            cycles *= use.full + use.stencil.startup_cost
            cycles *= unit_cycles(unit, nest_operations(inner))[0]
    return TileUnit(name, cycles, unit.latency_cycles, unit.pipeline_depth, missing, unit.array)


def _stencil_use(unit: ExecUnit, block: Block) -> StencilUse | None:
    """The only block inside as a use of a stencil of the unit, if it is one."""
    inner = list(block.blocks)
    return stencil_use(inner[0], unit) if len(inner) == 1 else None


def _slowness(unit: ExecUnit, operations: Operations) -> tuple[int, float]:
    cycles, missing = unit_cycles(unit, operations)
    return len(missing), cycles


def unit_cycles(unit: ExecUnit, operations: Operations) -> tuple[float, tuple[str, ...]]:
    """Cycles of the operations, and the operations without a rate, which go at the unit's slowest rate."""
    slowest = min(unit.ops_per_cycle.values(), default=1.0)
    rates = rated(operations).items()
    cycles = sum(times / (unit.rate(op, dtype) or slowest) for (op, dtype), times in rates)
    return cycles, missing_rates(operations, unit)


def nest_operations(block: Block) -> Operations:
    """The operations of one point of `block`, inner blocks with all their points."""
    inner = [nest_operations(child).times(child.points) for child in block.blocks]
    return Operations.sum([point_operations(block), *inner])
