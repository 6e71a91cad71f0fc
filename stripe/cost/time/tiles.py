"""Cycles that the tiles of a block take on a machine, for many tile sizes at once.

A tile is computed by one execution unit, at its rates, on views that come into a memory and go back over the routes of
the machine. The rules are those of the simulator for equal tiles of full size. Times over a box of sizes are
lower bounds: each is made of parts that are monotonic in every size, each taken at the corner where it is least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from stripe.cost.counts.operations import Operations, point_operations
from stripe.cost.counts.tiles import Floats, Ints, TileFootprint, product
from stripe.cost.time.machine import Machine
from stripe.cost.time.rates import Role, StencilUse, matmul_roles, missing_rates, rated, stencil_use
from stripe.cost.time.statement import Resource
from stripe.cost.time.stencils import Match, body_of, find_matches
from stripe.cost.time.workload import CostModel
from stripe.hw.schema import ExecUnit, HardwareModel, SystolicArray
from stripe.ir import Agg, Block, ConfigError, Direction, Location, Nest
from stripe.poly import count_domain, within


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
    located = (location.name for location in _locations(block) if location.name in units)
    stencils = (name for name, unit in units.items() if _stencil_use(unit, block) is not None)
    quickest = min(units, key=lambda name: _slowness(units[name], operations), default="")
    name = named or next(located, "") or next(stencils, quickest)
    unit = hardware.exec_unit(name)
    cycles, missing = _cycles(unit, operations)
    use = _stencil_use(unit, block)
    if use is not None:
        (inner,) = block.blocks
        cycles = _stencil_cycles(unit, inner, use)
    return TileUnit(name, cycles, unit.latency_cycles, unit.pipeline_depth, missing, unit.array)


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
    """One view on its route into a memory or back: its bytes per cycle, the cycles before the first byte, the channels
    that transfers share, and the cycles that a byte takes of each resource."""

    footprint: TileFootprint
    reads: bool
    bytes_per_cycle: float
    latency_cycles: float
    needs: tuple[tuple[Resource, float], ...] = ()


def find_transfers(
    machine: Machine, footprints: Iterable[TileFootprint], memory: str
) -> Iterator[TileTransfer]:
    """The transfers of the views into `memory` and back. A view without a location lies in the machine's main memory.

    Raises ConfigError for a view that no route leads to.
    """
    near = f"{memory}[0]"
    model = CostModel(machine)
    for footprint in footprints:
        far = machine.memory(footprint.ref.location)
        way = footprint.ref.dir
        for reads in (True,) * (way.reads or _is_read_back(footprint)) + (False,) * way.writes:
            ends = (far, near) if reads else (near, far)
            route = machine.graph.route(*ends)
            needs = model.byte_rates(*ends, route).cycles
            yield TileTransfer(footprint, reads, route.bytes_per_cycle, route.latency_cycles, needs)


def _is_read_back(footprint: TileFootprint) -> bool:
    """Whether partial results of a view come back when the reduction is split."""
    return footprint.ref.dir is Direction.OUT and footprint.ref.agg is not Agg.ASSIGN


@dataclass(frozen=True, slots=True)
class TileOperand:
    """A view between the memory and the unit, with the cycles that a byte takes of each resource."""

    footprint: TileFootprint
    back: bool
    """Whether it is partial results that the unit reads again."""
    needs: tuple[tuple[Resource, float], ...]


def find_operands(
    machine: Machine, footprints: Iterable[TileFootprint], memory: str, unit: str
) -> list[TileOperand]:
    """The views between `memory` and a unit; none where no route leads from one to the other."""
    model = CostModel(machine)
    found: list[TileOperand] = []
    seat = f"{unit}[0]"
    for footprint in footprints:
        way = footprint.ref.dir
        merges = way.writes and footprint.ref.agg is not Agg.ASSIGN
        for writes, back in ((False, merges),) * (way.reads or merges) + ((True, False),) * way.writes:
            near = machine.memory_near(Location.of(memory), seat, writes=writes)
            ends = (seat, near) if writes else (near, seat)
            try:
                route = machine.graph.connection(*ends)
            except ConfigError:
                return []
            found.append(TileOperand(footprint, back, model.byte_rates(*ends, route).cycles))
    return found


def find_lanes(block: Block, unit: ExecUnit) -> list[TileLanes]:
    """The ways of the unit's stencils to take the work of a block; none where no stencil computes it."""
    body = body_of(block)
    if isinstance(body, str):
        return []
    matches = (match for stencil in unit.stencils for match in find_matches(block, body, stencil))
    found = list({lanes.key: lanes for lanes in (TileLanes(block, match) for match in matches)}.values())
    # Where one wastes no fewer lanes and touches each index in no fewer instructions than another, it is never better.
    whole = np.array([[index.range for index in block.iterated]], dtype=np.int64)
    costs = [
        [1 / lanes.share(whole)[0], *(int(each[0]) for each in lanes.all_uses(whole, whole))]
        for lanes in found
    ]
    return [
        lanes
        for lanes, mine in zip(found, costs, strict=True)
        if not any(other != mine and all(a <= b for a, b in zip(other, mine, strict=True)) for other in costs)
    ]


class TileLanes:
    """The work of a unit on tiles in units of one instruction: a use of a stencil, or a whole tile where none matches.

    `sizes` are the points of an instruction along the columns of its indices, -1 for all of the tile, and `idle` the
    lanes of indices of the stencil that no index takes.
    """

    def __init__(self, block: Block, match: Match | None) -> None:
        self.ranges = [index.range for index in block.iterated]
        columns = {index.name: column for column, index in enumerate(block.iterated)}
        self.sizes: dict[int, int] = {}
        self.idle = 1
        self.stencil = match.stencil if match is not None else None
        if match is None:
            self.sizes = dict.fromkeys(columns.values(), -1)
            return
        for name, rules in zip(match.names, match.stencil.idxs, strict=True):
            if name:
                self.sizes[columns[name]] = rules.size
            else:
                self.idle *= max(1, rules.size)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for lanes of equal cost, such as two indices of a stencil that are given to each other's place."""
        startup = (self.stencil.startup_cost, self.stencil.cycles) if self.stencil is not None else ()
        return tuple(sorted(self.sizes.items())), self.idle, startup

    def share(self, sizes: Ints) -> Floats:
        """The part of the lanes that has work. Never shrinks as a size grows."""
        found = np.full(len(sizes), 1.0 / self.idle)
        for column, lanes in self.sizes.items():
            if lanes != -1:
                found = found * np.minimum(1.0, sizes[:, column] / lanes)
        return found

    def uses(self, column: int, low: Ints, high: Ints) -> Ints:
        """Instructions along one index in all tiles, at least, for sizes between `low` and `high`."""
        lanes, whole, size = self.sizes.get(column, 1), self.ranges[column], high[:, column]
        if lanes == -1:
            return -(-whole // size)
        if low is not high:
            return np.maximum(-(-whole // np.minimum(lanes, size)), -(-whole // size))
        return whole // size * -(-size // lanes) + -(-(whole % size) // lanes)

    def elements(self, footprint: TileFootprint, high: Ints) -> Floats:
        """Elements of a view that one instruction after the other touches, instructions that differ in an index which
        does not move the view counted once."""
        whole = prod(float(self.ranges[column]) for column in footprint.columns)
        inside = {column for column, lanes in self.sizes.items() if lanes != 1}
        if all(len(inside.intersection(dim.columns.values())) < 2 for dim in footprint.dimensions):
            return np.full(len(high), whole)
        # windows along which points of one instruction share elements
        sizes = np.ones_like(high)
        for column in sorted(inside & footprint.columns):
            lanes = self.sizes[column]
            sizes[:, column] = high[:, column] if lanes == -1 else np.minimum(lanes, high[:, column])
        return whole * footprint.elements(sizes) / product(sizes)

    def all_uses(self, low: Ints, high: Ints) -> list[Ints]:
        """`uses` of each index."""
        return [self.uses(column, low, high) for column in range(len(self.ranges))]


_Roles: TypeAlias = Mapping[Role, list[int]]


def _array_columns(block: Block) -> _Roles | None:
    """The columns of each role in a matrix product."""

    def moving(name: str) -> set[str]:
        return {index for affine in block.ref(name).access for index in affine.names()}

    roles = matmul_roles(block, [index.name for index in block.iterated], moving)
    if roles is None:
        return None
    found: dict[Role, list[int]] = {"reduction": [], "pixels": [], "filters": [], "batches": []}
    for column, index in enumerate(block.iterated):
        found[roles[index.name]].append(column)
    return found


def _array_cycles(array: SystolicArray, roles: _Roles, ranges: Ints, low: Ints, high: Ints) -> Floats:
    """Cycles of all tiles on a systolic array; a lower bound for sizes between `low` and `high`.

    A tile takes folds * (stream + fill) - 1 cycles. Over all tiles the folds along a role are at least those of
    the whole range, and at least one a tile; streams of all tiles together are the whole range.
    """
    counts = -(-ranges // high)

    def folds(role: Role, lanes: int) -> Floats:
        columns = roles[role]
        tiles = product(counts, columns)
        if low is high:
            return tiles * -(-product(high, columns) // lanes)
        whole = prod(int(ranges[column]) for column in columns)
        return np.maximum(tiles, -(-whole // lanes))

    held: Role = "reduction" if array.dataflow == "weight_stationary" else "pixels"
    moved: Role = "pixels" if array.dataflow == "weight_stationary" else "reduction"
    fill = array.rows * (2 if array.dataflow == "weight_stationary" else 1) + array.columns - 2
    batches = prod(int(ranges[column]) for column in roles["batches"])
    uses = folds(held, array.rows) * folds("filters", array.columns) * batches
    sent = product(counts, roles[moved])
    if low is high:
        tiles = product(counts, [c for role in roles if role != "batches" for c in roles[role]])
        return uses * sent * (product(high, roles[moved]) + fill) - batches * tiles
    streamed = prod(int(ranges[column]) for column in roles[moved])
    return uses * (np.maximum(streamed, sent) + sent * fill) * (1 - 1 / (fill + 1))


_BUDGET = 200_000
"""isl operations that counting the points of a block may take; beyond, constraints are left out."""


class TileTimes:
    """Cycles that all tiles of a block take, by the ranges of its indices.

    The views of each tile are moved into the memory and back, and computed on. With one buffer that adds up; with
    more, tile k computes while tile k+1 is moved, so that n equal tiles take max(n*compute + move, n*move + compute)
    with the move and compute of one tile. An aggregated result whose reduction is split is read back for all tiles but
    the first. Computing takes the unit's cycles or those of its busiest operand bus; no bus or port takes less than all
    its bytes.
    """

    def __init__(
        self,
        block: Block,
        transfers: Iterable[TileTransfer],
        unit: TileUnit,
        depth: int,
        operands: Sequence[TileOperand] = (),
        lanes: Sequence[TileLanes] = (),
        parallel: int = 1,
    ) -> None:
        self.ranges = np.asarray([index.range for index in block.iterated], dtype=np.int64)
        self.transfers = tuple(transfers)
        self.unit = unit
        self.overlaps = depth > 1
        whole = prod(float(size) for size in self.ranges)
        counted = (
            within(_BUDGET, lambda: count_domain(Nest.root(block).domain)) if block.constraints else None
        )
        self.points = whole if counted is None else float(counted)
        self._inside = self.points / whole
        self._whole = whole
        self.operands = tuple(operands)
        self.lanes = tuple(lanes) or (TileLanes(block, None),)
        self.parallel = parallel
        self._roles = _array_columns(block) if unit.array is not None else None

    def time(self, low: Ints, high: Ints) -> tuple[Floats, Floats]:
        """Cycles from the first transfer to the last, and those of the transfers alone."""
        totals = self._totals(low, high)
        moved = self._moved(totals, high)
        move = self._move(moved, high)
        best = np.full(len(low), np.inf)
        one_move = np.zeros(len(low), dtype=np.float64)
        shared: dict[Resource, Floats] = {}
        for transfer, size in zip(self.transfers if self.overlaps else (), moved, strict=False):
            one = transfer.footprint.bytes(low)
            one_move = one_move + one / transfer.bytes_per_cycle + transfer.latency_cycles
            for resource, cycles in transfer.needs:
                shared[resource] = shared.get(resource, 0.0) + size * cycles
        share = product(low) / self._whole
        uses: dict[tuple[int, int], Ints] = {}
        for lanes in self.lanes:
            streams = self._streams(lanes, low, high, totals, uses)
            compute = self._computing(lanes, low, high, streams)
            if not self.overlaps:
                best = np.minimum(best, compute + move)
                continue
            found = np.maximum(compute + np.minimum(one_move, move), move + compute * share)
            for resource in streams.keys() | shared.keys():
                found = np.maximum(found, streams.get(resource, 0.0) + shared.get(resource, 0.0))
            best = np.minimum(best, found)
        return best, move

    def by_lanes(self, kinds: Iterable[TileLanes], sizes: Ints, parallel: int) -> Iterator[Floats]:
        """Cycles of each of `parallel` units that share the buses, each with tiles like these, by kinds of lanes."""
        totals = self._totals(sizes, sizes)
        uses: dict[tuple[int, int], Ints] = {}
        for lanes in kinds:
            streams = self._streams(lanes, sizes, sizes, totals, uses)
            needs = {resource: need * parallel for resource, need in streams.items()}
            yield self._computing(lanes, sizes, sizes, needs)

    def compute(self, low: Ints, high: Ints, parallel: Floats | None = None) -> Floats:
        """Cycles that the execution unit works for all tiles; or each of `parallel` units, a number for each row."""
        totals = self._totals(low, high)
        uses: dict[tuple[int, int], Ints] = {}
        return np.min(
            [
                self._computing(lanes, low, high, self._streams(lanes, low, high, totals, uses), parallel)
                for lanes in self.lanes
            ],
            axis=0,
        )

    def _computing(
        self,
        lanes: TileLanes,
        low: Ints,
        high: Ints,
        streams: Mapping[Resource, Floats],
        parallel: Floats | None = None,
    ) -> Floats:
        unit = self.unit
        if unit.array is not None and self._roles is not None:
            work = _array_cycles(unit.array, self._roles, self.ranges, low, high)
        else:
            work = self.points * unit.cycles_per_point / lanes.share(high)
            stencil = lanes.stencil
            if stencil is not None and (stencil.cycles is not None or stencil.startup_cost):
                uses = np.prod(np.column_stack(lanes.all_uses(low, high)).astype(np.float64), axis=1)
                if stencil.cycles is not None:
                    work = uses * stencil.cycles
                else:
                    work = work + uses * stencil.startup_cost * unit.cycles_per_point
        work = work / (self.parallel if parallel is None else parallel)
        for need in streams.values():
            work = np.maximum(work, need)
        return work + product(-(-self.ranges // high)) * unit.latency_per_tile

    def _streams(
        self,
        lanes: TileLanes,
        low: Ints,
        high: Ints,
        totals: Mapping[int, Ints],
        uses: dict[tuple[int, int], Ints],
    ) -> dict[Resource, Floats]:
        """Cycles that operands take of each resource between the memory and the unit. An element goes there or back
        once in each instruction that touches it. `uses` keeps the instructions along an index for other lanes, by its
        column and the points of an instruction along it.
        """
        found: dict[Resource, Floats] = {}
        for operand in self.operands:
            footprint = operand.footprint
            again: Floats = np.ones(len(high), dtype=np.float64)
            for column in footprint.others:
                key = (column, lanes.sizes.get(column, 1))
                if key not in uses:
                    uses[key] = lanes.uses(column, low, high)
                again = again * uses[key]
            elements = totals[id(footprint)] if lanes.stencil is None else lanes.elements(footprint, high)
            size: Floats = elements * again * (self._inside * footprint.ref.dtype.bytes)
            if operand.back:
                size = size * (again > 1)  # partial results, which the unit reads to add to them
            for resource, cycles in operand.needs:
                found[resource] = found.get(resource, 0.0) + size * cycles
        return found

    def move(self, low: Ints, high: Ints) -> Floats:
        """Cycles that transfers take for all tiles."""
        return self._move(self._moved(self._totals(low, high), high), high)

    def _totals(self, low: Ints, high: Ints) -> dict[int, Ints]:
        """The elements of all tiles, by the identity of the view's footprint."""
        footprints = {id(part.footprint): part.footprint for part in (*self.transfers, *self.operands)}
        return {key: footprint.total(low, high) for key, footprint in footprints.items()}

    def _move(self, moved: Sequence[Floats], high: Ints) -> Floats:
        counts = -(-self.ranges // high)
        tiles = product(counts)
        total = np.zeros(len(high), dtype=np.float64)
        for transfer, size in zip(self.transfers, moved, strict=True):
            total = total + size / transfer.bytes_per_cycle
            if transfer.latency_cycles:
                back = transfer.reads and not transfer.footprint.ref.dir.reads
                first = tiles / product(counts, transfer.footprint.others) if back else 0.0
                total = total + transfer.latency_cycles * (tiles - first)
        return total

    def _moved(self, totals: Mapping[int, Ints], high: Ints) -> list[Floats]:
        """Bytes of each transfer in all tiles."""
        counts = -(-self.ranges // high)
        found: list[Floats] = []
        for transfer in self.transfers:
            footprint = transfer.footprint
            total = totals[id(footprint)].astype(np.float64) * footprint.ref.dtype.bytes
            visits = product(counts, footprint.others)
            # a partial result comes back for all tiles but the first
            back = transfer.reads and not footprint.ref.dir.reads
            found.append(total * (visits - back))
        return found


class PartTimes:
    """Cycles of a block on units of one name, on operands in one memory: in parts, or by the uses of a stencil."""

    def __init__(self, block: Block, hardware: HardwareModel, name: str, memory: str) -> None:
        unit = hardware.exec_unit(name)
        cycles, missing = _cycles(unit, nest_operations(block))
        self._block = block
        tiles = TileUnit(name, cycles, 0.0, 1, missing, unit.array)
        views = [TileFootprint(block, ref) for ref in block.refinements if not ref.is_alloc]
        operands = find_operands(Machine.of(hardware), views, memory, name)
        self._unit = unit
        self._times = partial(TileTimes, block, (), tiles, 1, operands)

    def of_parts(self, sizes: Sequence[Sequence[int]], parts: Sequence[int]) -> list[float]:
        """The times of parts of these sizes along all iterated indices, so many of which run at the same time."""
        rows = np.array(sizes, dtype=np.int64)
        times = self._times(find_lanes(self._block, self._unit))
        return _digits(times.compute(rows, rows, np.array(parts, dtype=np.float64)))

    def of_matches(self, matches: Sequence[Match], parallel: int) -> list[float]:
        """The times of uses of stencils on each of `parallel` units, each of which has a block like this one."""
        whole = np.array([[index.range for index in self._block.iterated]], dtype=np.int64)
        lanes = [TileLanes(self._block, match) for match in matches]
        kinds = {each.key: each for each in lanes}
        cycles = self._times().by_lanes(kinds.values(), whole, parallel)
        known = {key: _digits(found)[0] for key, found in zip(kinds, cycles, strict=True)}
        return [known[each.key] for each in lanes]


def _digits(values: Floats) -> list[float]:
    """To 9 digits, so that equal times are equal."""
    return [float(f"{value:.9g}") for value in values.tolist()]
