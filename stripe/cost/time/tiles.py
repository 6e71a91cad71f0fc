"""Cycles that the tiles of a block take on a machine, for many tile sizes at once.

A tile is computed by one execution unit, at its rates, on views that come into a memory and go back over the routes of
the machine. The rules are those of the simulator for equal tiles of full size. Times over a box of sizes are
lower bounds: each is made of parts that are monotonic in every size, each taken at the corner where it is least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from stripe.cost.counts.operations import Operations, point_operations
from stripe.cost.counts.tiles import Floats, Ints, TileFootprint, product
from stripe.cost.time.machine import Machine
from stripe.cost.time.rates import StencilUse, missing_rates, rated, stencil_use
from stripe.hw.schema import ExecUnit, HardwareModel
from stripe.ir import Agg, Block, Direction, Location


@dataclass(frozen=True, slots=True)
class TileUnit:
    """The execution unit of the tiles of a block, and its speed."""

    name: str
    cycles_per_point: float
    latency_per_tile: float
    pipeline_depth: int
    missing: tuple[str, ...]
    """Operations without a rate on the unit; counted at its slowest rate."""


def find_unit(hardware: HardwareModel, block: Block) -> TileUnit:
    """The execution unit of the block's location or of what runs inside; else the first with the stencil inside; else
    the quickest.

    Raises ConfigError for a machine that computes nothing.
    """
    operations = nest_operations(block)
    units = hardware.exec_units
    located = (location.name for location in _locations(block) if location.name in units)
    stencils = (name for name, unit in units.items() if _stencil_use(unit, block) is not None)
    quickest = min(units, key=lambda name: _slowness(units[name], operations), default="")
    name = next(located, "") or next(stencils, quickest)
    unit = hardware.exec_unit(name)
    cycles, missing = _cycles(unit, operations)
    use = _stencil_use(unit, block)
    if use is not None:
        (inner,) = block.blocks
        cycles = _stencil_cycles(unit, inner, use)
    return TileUnit(name, cycles, unit.latency_cycles, unit.pipeline_depth, missing)


def _locations(block: Block) -> Iterator[Location]:
    yield block.location
    for inner in block.blocks:
        yield from _locations(inner)


def _stencil_use(unit: ExecUnit, block: Block) -> StencilUse | None:
    """The only block inside as a use of a stencil of the unit, if it is one."""
    inner = list(block.blocks)
    return stencil_use(inner[0], unit) if len(inner) == 1 else None


def _stencil_cycles(unit: ExecUnit, block: Block, use: StencilUse) -> float:
    """Cycles of the uses of a stencil in one point: those that it states, or its full size at the unit's speed, idle
    lanes included.
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
    rates = rated(operations).items()
    cycles = sum(times / (unit.rate(op, dtype) or slowest) for (op, dtype), times in rates)
    return cycles, missing_rates(operations, unit)


def nest_operations(block: Block) -> Operations:
    """The operations of one point of `block`, inner blocks with all their points."""
    inner = [nest_operations(child).times(child.points) for child in block.blocks]
    return Operations.sum([point_operations(block), *inner])


@dataclass(frozen=True, slots=True)
class TileTransfer:
    """One view on its route into a memory or back: its bytes per cycle and the cycles before the first byte."""

    footprint: TileFootprint
    reads: bool
    bytes_per_cycle: float
    latency_cycles: float


def find_transfers(
    machine: Machine, footprints: Iterable[TileFootprint], memory: str
) -> Iterator[TileTransfer]:
    """The transfers of the views into `memory` and back. A view without a location lies in the machine's main memory.

    Raises ConfigError for a view that no route leads to.
    """
    near = f"{memory}[0]"
    for footprint in footprints:
        far = machine.memory(footprint.ref.location)
        way = footprint.ref.dir
        if way.reads or _is_read_back(footprint):
            route = machine.graph.route(far, near)
            yield TileTransfer(footprint, True, route.bytes_per_cycle, route.latency_cycles)
        if way.writes:
            route = machine.graph.route(near, far)
            yield TileTransfer(footprint, False, route.bytes_per_cycle, route.latency_cycles)


def _is_read_back(footprint: TileFootprint) -> bool:
    """Whether partial results of a view come back when the reduction is split."""
    return footprint.ref.dir is Direction.OUT and footprint.ref.agg is not Agg.ASSIGN


class TileTimes:
    """Cycles that all tiles of a block take, by the ranges of its indices.

    The views of each tile are moved into the memory and back, and computed on. With one buffer that adds up; with
    more, tile k computes while tile k+1 is moved, so that n equal tiles take max(n*compute + move, n*move + compute)
    with the move and compute of one tile. An aggregated result whose reduction is split is read back for all tiles but
    the first.
    """

    def __init__(
        self, ranges: Sequence[int], transfers: Iterable[TileTransfer], unit: TileUnit, depth: int
    ) -> None:
        self.ranges = np.asarray(ranges, dtype=np.int64)
        self.transfers = tuple(transfers)
        self.unit = unit
        self.overlaps = depth > 1
        self.points = prod(float(size) for size in ranges)

    def time(self, low: Ints, high: Ints) -> tuple[Floats, Floats]:
        """Cycles from the first transfer to the last, and those of the transfers alone."""
        compute, move = self.compute(high), self.move(low, high)
        if not self.overlaps:
            return compute + move, move
        unit = self.unit
        one_compute = product(low) * unit.cycles_per_point + unit.latency_per_tile
        one_move = np.zeros(len(low), dtype=np.float64)
        for transfer in self.transfers:
            size = transfer.footprint.bytes(low)
            one_move = one_move + size / transfer.bytes_per_cycle + transfer.latency_cycles
        by_compute, by_move = compute + np.minimum(one_move, move), move + np.minimum(one_compute, compute)
        return np.maximum(by_compute, by_move), move

    def compute(self, sizes: Ints) -> Floats:
        """Cycles that the execution unit works for all tiles."""
        tiles = product(-(-self.ranges // sizes))
        return self.points * self.unit.cycles_per_point + tiles * self.unit.latency_per_tile

    def move(self, low: Ints, high: Ints) -> Floats:
        """Cycles that transfers take for all tiles."""
        counts = -(-self.ranges // high)
        tiles = product(counts)
        total = np.zeros(len(low), dtype=np.float64)
        for transfer in self.transfers:
            footprint = transfer.footprint
            visits = product(counts, footprint.others)
            once = footprint.total(low, high) * footprint.ref.dtype.bytes
            if not transfer.reads or footprint.ref.dir.reads:
                total = total + once * visits / transfer.bytes_per_cycle + tiles * transfer.latency_cycles
            else:  # a partial result comes back, for all tiles but the first
                latency = transfer.latency_cycles * tiles * (1 - 1 / visits)
                total = total + once * (visits - 1) / transfer.bytes_per_cycle + latency
        return total
