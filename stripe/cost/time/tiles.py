"""Cycles that the tiles of a block take on a machine, for many tile sizes at once.

A tile is computed by one execution unit, at its rates, on views that come into a memory and go back over the routes of
the machine. The rules are those of the simulator for equal tiles of full size. Times over a box of sizes are
lower bounds: each is made of parts that are monotonic in every size, each taken at the corner where it is least.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import Self, TypeAlias

import numpy as np

from stripe.cost.counts.tiles import Bools, Floats, Ints, TileCounts, product
from stripe.cost.time.arrays import ROLES, Role, matmul_roles
from stripe.cost.time.lanes import Instructions, TileLanes, columns_of
from stripe.cost.time.statement import Resource
from stripe.cost.time.tile_moves import TileOperand, TileTransfer
from stripe.cost.time.tile_unit import TileUnit
from stripe.hw.engines import SystolicArray
from stripe.ir import Block, Domain, indices_of
from stripe.poly import count_domain, within

_Roles: TypeAlias = Mapping[Role, list[int]]


def _array_columns(block: Block) -> _Roles | None:
    """The columns of each role in a matrix product."""

    def moving(name: str) -> frozenset[str]:
        return indices_of(block.ref(name).access)

    roles = matmul_roles(block, [index.name for index in block.iterated], moving)
    if roles is None:
        return None
    columns = [(column, roles[index.name]) for column, index in enumerate(block.iterated)]
    return {role: [column for column, taken in columns if taken == role] for role in ROLES}


def _ordered_cycles(array: SystolicArray, roles: _Roles, ranges: Ints, low: Ints, high: Ints) -> Floats:
    """Cycles where the second factor stays in the array.

    A tile takes folds * (stream + fill) - 1 cycles. Over all tiles the folds along a role are at least those of
    the whole range, and at least one a tile; streams of all tiles together are the whole range. An array that loads
    ahead takes the longer of streaming and loading for each fold, and fills and drains once a tile.
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
    tiles = product(counts, [c for role in roles if role != "batches" for c in roles[role]])
    streamed = prod(int(ranges[column]) for column in roles[moved])
    if array.loads_ahead and array.dataflow == "weight_stationary":
        if low is high:
            return uses * sent * np.maximum(product(high, roles[moved]), array.rows) + tiles * (fill - 1)
        return uses * np.maximum(streamed, sent * array.rows)
    if low is high:
        return uses * sent * (product(high, roles[moved]) + fill) - batches * tiles
    return uses * (np.maximum(streamed, sent) + sent * fill) * (1 - 1 / (fill + 1))


_BUDGET = 200_000
"""isl operations that counting the points of a block may take; beyond, constraints are left out."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The data that stay in the memory from one tile to the next, which is for the rest of a pass list to decide."""

    shared: bool = False
    """A view that all tiles share comes once."""
    sums: bool = False
    """Results stay until all parts of their sums are there, where tiles split the results too ..."""
    whole_sums: bool = False
    """... and where each tile has all results."""


NONE_STAYS = Retention()
ALL_STAYS = Retention(shared=True, sums=True, whole_sums=True)


class TileTimes:
    """Cycles that all tiles of a block take, by the ranges of its indices.

    The views of each tile are moved into the memory and back, and computed on. With one buffer that adds up; with
    more, tile k computes while tile k+1 is moved, so that n equal tiles take max(n*compute + move, n*move + compute)
    with the move and compute of one tile. An aggregated result whose reduction is split is read back for all tiles but
    the first, unless it stays by `kept`. Computing takes the cycles of the unit or of its busiest operand bus; no bus
    or port takes less than all its bytes.
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
        *,
        kept: Retention = NONE_STAYS,
    ) -> None:
        self.ranges = np.asarray([index.range for index in block.iterated], dtype=np.int64)
        self.kept = kept
        self.transfers = tuple(transfers)
        self.unit = unit
        self.overlaps = depth > 1
        whole = prod(float(size) for size in self.ranges)
        # Constraints on indices from outside cut tiles at the edges; a full tile keeps them.
        own = {index.name: (0, index.range - 1) for index in block.iterated}
        tied = tuple(c.affine for c in block.constraints if c.affine.names() <= own.keys())
        counted = within(_BUDGET, lambda: count_domain(Domain.of(own, tied))) if tied else None
        self.points = whole if counted is None else float(counted)
        self._inside = self.points / whole
        self._whole = whole
        self.operands = tuple(operands)
        self.instructions = Instructions(
            tuple(lanes) or (TileLanes(columns_of(block), None),), self.ranges.tolist()
        )
        self.parallel = parallel
        self._roles = _array_columns(block) if unit.array is not None else None
        self._latest: list[TileCounts] = []

    def _counts(self, sizes: Ints) -> TileCounts:
        """The tiles of an array of sizes, of which the latest are kept."""
        for known in self._latest:
            if known.sizes is sizes:
                return known
        self._latest[:] = [found := TileCounts(self.ranges, sizes)]
        return found

    def assuming(self, kept: Retention) -> Self:
        """The same times where other data stay."""
        found = copy(self)
        found.kept = kept
        return found

    def time(self, low: Ints, high: Ints) -> tuple[Floats, Floats]:
        """Cycles from the first transfer to the last, and cycles of the transfers alone."""
        totals = self._totals(low, high)
        moved = self._moved(totals, low, high)
        move = self._move(moved, low, high)
        streams, uses = self._streams(low, high, totals)
        compute = self._computing(low, high, streams, uses, self.parallel)
        if not self.overlaps:
            return (compute + move).min(axis=0), move
        one_move = np.zeros(len(low), dtype=np.float64)
        shared: dict[Resource, Floats] = {}
        for transfer, size in zip(self.transfers, moved, strict=True):
            if not (transfer.is_back and (self.kept.sums or self.kept.whole_sums)):
                one = transfer.footprint.bytes(low)
                one_move = one_move + one / transfer.bytes_per_cycle + transfer.latency_cycles
            for resource, cycles in transfer.needs:
                shared[resource] = shared.get(resource, 0.0) + size * cycles
        share = product(low) / self._whole
        found = np.maximum(compute + np.minimum(one_move, move), move + compute * share)
        for resource in streams.keys() | shared.keys():
            found = np.maximum(found, streams.get(resource, 0.0) + shared.get(resource, 0.0))
        return found.min(axis=0), move

    def by_lanes(self, sizes: Ints, parallel: int) -> Floats:
        """Cycles of each of `parallel` units that share the buses, each with tiles like these: a row for each kind of
        lanes."""
        streams, uses = self._streams(sizes, sizes, self._totals(sizes, sizes))
        needs = {resource: need * parallel for resource, need in streams.items()}
        return self._computing(sizes, sizes, needs, uses, self.parallel)

    def compute(self, low: Ints, high: Ints, parallel: Floats | None = None) -> Floats:
        """Cycles that the execution unit works for all tiles; or each of `parallel` units, a number for each row."""
        streams, uses = self._streams(low, high, self._totals(low, high))
        units = self.parallel if parallel is None else parallel
        return self._computing(low, high, streams, uses, units).min(axis=0)

    def _computing(
        self,
        low: Ints,
        high: Ints,
        streams: Mapping[Resource, Floats],
        uses: Ints,
        parallel: Floats | int,
    ) -> Floats:
        """Cycles by kinds of lanes; `uses` are the instructions along each index."""
        unit, instructions = self.unit, self.instructions
        if unit.array is not None and self._roles is not None:
            # cycles of all tiles on a systolic array, for the better order of the factors; a lower bound
            # for sizes between `low` and `high`
            roles = self._roles
            swapped: _Roles = {**roles, "pixels": roles["filters"], "filters": roles["pixels"]}
            work = np.minimum(
                *(_ordered_cycles(unit.array, each, self.ranges, low, high) for each in (roles, swapped))
            )[None, :]
        else:
            work = self.points * unit.cycles_per_point / instructions.share(high)
            stencils = [kind.stencil for kind in instructions.kinds]
            if any(each is not None and (each.cycles is not None or each.startup_cost) for each in stencils):
                count = instructions.product(uses, range(len(self.ranges)))
                for row, stencil in enumerate(stencils):
                    if stencil is not None and stencil.cycles is not None:
                        work[row] = count[row] * stencil.cycles
                    elif stencil is not None:
                        work[row] += count[row] * stencil.startup_cost * unit.cycles_per_point
        work = work / parallel
        for need in streams.values():
            work = np.maximum(work, need)
        return work + self._counts(high).tiles * unit.latency_per_tile

    def _streams(
        self, low: Ints, high: Ints, totals: Mapping[int, Ints]
    ) -> tuple[dict[Resource, Floats], Ints]:
        """Cycles that operands take of each resource between the memory and the unit, by kinds of lanes, and the
        instructions along each index. An element goes there or back once in each instruction that touches it.
        """
        instructions = self.instructions
        uses = instructions.uses(low, high)
        found: dict[Resource, Floats] = {}
        known: dict[int, tuple[Floats, Floats]] = {}
        for operand in self.operands:
            footprint = operand.footprint
            if id(footprint) not in known:
                again = instructions.product(uses, footprint.others)
                whole = instructions.kinds[0].stencil is None
                elements = totals[id(footprint)] if whole else instructions.elements(footprint, high)
                known[id(footprint)] = again, elements * again * (self._inside * footprint.ref.dtype.bytes)
            again, size = known[id(footprint)]
            if operand.back:
                size = size * (again > 1)  # partial results, which the unit reads to add to them
            for resource, cycles in operand.needs:
                found[resource] = found.get(resource, 0.0) + size * cycles
        return found, uses

    def move(self, low: Ints, high: Ints) -> Floats:
        """Cycles that transfers take for all tiles."""
        return self._move(self._moved(self._totals(low, high), low, high), low, high)

    def _totals(self, low: Ints, high: Ints) -> dict[int, Ints]:
        """The elements of all tiles, by the identity of the view's footprint."""
        footprints = {id(part.footprint): part.footprint for part in (*self.transfers, *self.operands)}
        return {key: footprint.moved(low, high) for key, footprint in footprints.items()}

    def _move(self, moved: Sequence[Floats], low: Ints, high: Ints) -> Floats:
        counts = self._counts(high)
        tiles = counts.tiles
        total = np.zeros(len(high), dtype=np.float64)
        for transfer, size in zip(self.transfers, moved, strict=True):
            total = total + size / transfer.bytes_per_cycle
            if transfer.latency_cycles:
                total = total + transfer.latency_cycles * (tiles - self._spared(transfer, low, counts, tiles))
        return total

    def _moved(self, totals: Mapping[int, Ints], low: Ints, high: Ints) -> list[Floats]:
        """Bytes of each transfer in all tiles."""
        counts = self._counts(high)
        found: list[Floats] = []
        for transfer in self.transfers:
            footprint = transfer.footprint
            total = totals[id(footprint)].astype(np.float64) * footprint.ref.dtype.bytes
            visits = counts.product(footprint.others)
            spared = self._spared(transfer, low, counts, visits)
            found.append(total * (visits - spared))
        return found

    def _spared(self, transfer: TileTransfer, low: Ints, counts: TileCounts, times: Floats) -> Floats | float:
        """The moves of a view, out of `times` for all tiles, that it is spared because its elements stay."""
        footprint, kept = transfer.footprint, self.kept
        once = times / counts.product(footprint.others)
        stays: Bools | bool
        if footprint.ref.dir.writes and kept.sums == kept.whole_sums:
            stays = kept.sums
        else:
            columns = sorted(footprint.columns)
            whole = counts.product(columns) == 1  # for some sizes of a box
            stays = kept.shared & whole
            if footprint.ref.dir.writes:
                split = (low[:, columns] < self.ranges[columns]).any(axis=1)
                stays = (kept.sums & split) | (kept.whole_sums & whole)
        if transfer.is_back:
            return np.where(stays, times, once)  # a partial result comes back for all parts but the first
        return np.where(stays, times - once, 0.0)
