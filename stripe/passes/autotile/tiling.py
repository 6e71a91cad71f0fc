"""A block to tile: its views, the limits of its tiles, the sizes to try, and the estimate of their cost."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import astuple, dataclass
from itertools import product as combinations
from math import inf, log, prod
from typing import TYPE_CHECKING, Self

import numpy as np

from stripe.cost.counts.tiles import Bools, Floats, Ints, TileFootprint, product
from stripe.cost.time.lanes import find_lanes
from stripe.cost.time.machine import Machine
from stripe.cost.time.tile_core import OPERAND_WEIGHT, core_tiles
from stripe.cost.time.tile_moves import find_operands, find_transfers
from stripe.cost.time.tile_unit import find_unit
from stripe.cost.time.tiles import Retention, TileTimes
from stripe.hw.schema import HardwareModel
from stripe.ir import Block, Refinement, step
from stripe.passes.autotile.search import Ranked, TileSearch
from stripe.rewrite.refusal import Refusal

if TYPE_CHECKING:
    from stripe.passes.autotile.autotile import Autotile

MOVE_WEIGHT = 0.01
"""Weight of the cycles of transfers beside the time of all: equally quick tiles rank by their traffic."""

UNSURE = 0.1
"""Excess, as a part of an estimate, above which it is taken to come from the shape of the tile."""

TIGHTER = 1.2
"""Factor by which a tile that was refused is taken to exceed the memory."""

SPLIT_WEIGHT = 0.001
"""Weight of log2(number of tiles) in PlaidML's formula."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """The most bytes of a tile in all `views`, or in each of them."""

    name: str
    most: int
    views: Sequence[TileFootprint]
    each: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.most}" if self.name else f"{self.most} bytes of memory"


class Tiling:
    """A block to tile: the views that count, the limits that its tiles keep, and the cost of a tile."""

    def __init__(
        self, options: Autotile, block: Block, hardware: HardwareModel | None, *, stencils: bool = False
    ) -> None:
        self.block, self.options, self.hardware = block, options, hardware
        self.names = [index.name for index in block.iterated]
        self.ranges = [index.range for index in block.iterated]
        self.points = prod(float(size) for size in self.ranges)
        views = [ref for ref in block.refinements if not ref.is_alloc]
        if options.memory:
            views = [ref for ref in views if ref.location.name != options.memory]
        self.footprints = [TileFootprint(block, ref) for ref in views]
        self.inputs = [f for f in self.footprints if f.ref.dir.reads]
        self.outputs = [f for f in self.footprints if f.ref.dir.writes]
        self.out_columns = {column for f in self.outputs for column in f.columns}
        limits = (
            _Limit("max_per_input_size", options.max_per_input_size, self.inputs, each=True),
            _Limit("max_output_size", options.max_output_size, self.outputs),
            _Limit("max_per_output_size", options.max_per_output_size, self.outputs, each=True),
            _Limit("max_total_size", options.max_total_size, self.footprints),
        )
        self.limits = [limit for limit in limits if limit.most]
        self.times, self.depth, self.alignment = None, 1, 1
        self.uses_stencils = False
        by_core = options.cost == "cycles" and not options.memory
        self.core = core_tiles(block, hardware) if by_core and hardware is not None else None
        self.beside = 0.0  # bytes of the memory beside those of a tile, for each byte of its results
        if options.memory and hardware is not None:
            unit, memory = find_unit(hardware, block, options.unit), hardware.memory(options.memory)
            self.depth = options.pipeline_depth or unit.pipeline_depth
            self.alignment, self.memory_bytes = memory.alignment, memory.size
            machine = Machine.of(hardware)
            transfers = find_transfers(machine, self.footprints, options.memory)
            operands = find_operands(machine, self.footprints, options.memory, unit.name)
            lanes = find_lanes(block, hardware.exec_unit(unit.name)) if stencils else ()
            self.uses_stencils = bool(lanes)
            count = hardware.exec_unit(unit.name).count
            shared = count if options.units == "all" else min(options.units, count)
            self.times = TileTimes(block, transfers, unit, self.depth, operands, lanes, shared)
            taken = sum(self._taken(ref) for ref in block.refinements)
            self.limits.append(_Limit("", max(0, memory.size - taken) // self.depth, self.footprints))

    def assuming(self, kept: Retention, beside: float) -> Self:
        """The same block where the data `kept` stay in the memory, with `beside` bytes beside a tile for each byte of
        its results."""
        found = copy(self)
        found.times = self.times and self.times.assuming(kept)
        found.beside = beside
        return found

    def _taken(self, ref: Refinement) -> int:
        """Bytes of the memory that a view or an allocation of the block takes all the time."""
        if ref.is_alloc:
            return ref.bytes if ref.location.name in ("", self.options.memory) else 0
        if ref.location.name != self.options.memory:
            return 0
        return int(TileFootprint(self.block, ref).bytes(_row(self.ranges))[0])

    def lanes(self, width: int) -> dict[str, int]:
        """The indices that move every output by one element, with the elements that `width` bytes hold; none for 0."""
        outputs = self.block.outputs if width else ()
        return {
            index.name: max(1, width // max(ref.dtype.bytes for ref in outputs))
            for index in self.block.iterated
            if outputs and all(step(ref, index.name) == 1 for ref in outputs)
        }

    def bytes_of(self, footprint: TileFootprint, sizes: Ints) -> Ints:
        """Bytes of a view in a tile, as the limits count them."""
        return -(-footprint.bytes(sizes) // self.alignment) * self.alignment

    def held(self, sizes: Ints) -> Ints:
        """Bytes of all views in a tile."""
        return sum((self.bytes_of(f, sizes) for f in self.footprints), np.zeros(len(sizes), dtype=np.int64))

    def tighten(self, tile: Ranked, fullness: float) -> float:
        """The bytes beside a tile, for each byte of its results, after the rest of the list had no room for `tile` and
        its company: operands and results of epilogues are as large as results of the tile. `fullness` is how full the
        memory was, 0 where the list refused the tile.
        """
        sizes = _row(tile.sizes)
        results = sum(int(self.bytes_of(footprint, sizes)[0]) for footprint in self.outputs)
        needed = fullness * self.memory_bytes / self.depth or TIGHTER * self.limits[-1].most
        company = (needed - int(self.held(sizes)[0])) / max(1, results)
        return max(company, self.beside * TIGHTER)

    def estimate(self, tile: Sequence[int]) -> float:
        """The estimated cost of a tile, whether or not it fits."""
        sizes = _row(tile)
        return float(self._cost(sizes, sizes)[0])

    def explained(self, tile: Ranked, cost: float, excess: float) -> Retention:
        """The part of the assumed residency that explains the exact cost of a tile: all of it, unless the estimate by
        another residency is far nearer. `excess` is the difference of other prices from their estimates."""
        assert self.times is not None, "prices are of tiles in a memory"
        kept = self.times.kept
        excess = max(0.0, excess)
        if cost <= (1 + UNSURE) * (tile.cost + excess):
            return kept

        def distance(assumed: Retention) -> float:
            estimate = self.assuming(assumed, self.beside).estimate(tile.sizes)
            return abs(log(max(1.0, estimate + excess) / max(1.0, cost)))

        flags = combinations(*((True, False)[not flag :] for flag in astuple(kept)))
        nearest = min(
            (Retention(*each) for each in flags), key=distance
        )  # of equals the first, with most data
        return nearest if 2 * distance(nearest) < distance(kept) else kept

    def move_weight(self, tile: Ranked) -> float:
        """The part of a cost beside the time."""
        sizes = _row(tile.sizes)
        return MOVE_WEIGHT * float(self.times.move(sizes, sizes)[0]) if self.times is not None else 0.0

    def too_big(self, sizes: Ints) -> Bools:
        """Whether a tile breaks a limit, and so do larger ones: bytes grow with each size."""
        broken = np.zeros(len(sizes), dtype=np.bool_)
        for limit in self.limits:
            parts = [self.bytes_of(footprint, sizes) for footprint in limit.views]
            if not limit.name and self.beside:
                results = sum((self.bytes_of(f, sizes) for f in self.outputs), np.zeros(len(sizes), np.int64))
                parts.append((self.beside * results).astype(np.int64))
            for part in parts if limit.each else [sum(parts)]:
                broken |= part > limit.most
        return broken

    def lower_bound(self, low: Ints, high: Ints) -> Floats:
        """Lower bound of the cost of sizes between `low` and `high`, the cost where both are the same array."""
        return np.where(self.too_big(low), np.inf, self._cost(low, high))

    def _cost(self, low: Ints, high: Ints) -> Floats:
        if self.core is not None:
            return self.core.cycles(low, high)
        if self.times is None:
            return self._lines_per_point(low, high)
        time, move = self.times.time(low, high)
        return time + MOVE_WEIGHT * move

    def bound(self) -> float:
        """Lower bound of the cost of any tile, of parts of sums too."""
        return float(self.lower_bound(_row([1] * len(self.ranges)), _row(self.ranges))[0])

    def _lines_per_point(self, low: Ints, high: Ints) -> Floats:
        """The cost that PlaidML 0.7 gave a tile with its default weights (tile/codegen/autotile.cc):

            padding * (1 + lines read + lines written) / S + SPLIT_WEIGHT * log2(C)

        with S the product of the sizes, C of the counts, and padding of size*count/range over the indices. Views that
        are read and written count on both sides. For a box, lines of all tiles together are at least the clipped
        elements divided by a line's elements, and at least the lines of the smallest tile times the fewest tiles.
        """
        counts = -(-np.asarray(self.ranges, dtype=np.int64) // high)
        tiles = product(counts)
        fewest = tiles / self.points
        io = fewest.copy()
        for footprint in (*self.inputs, *self.outputs):
            lines = self._lines(footprint, low, high) * fewest
            if low is not high:
                touched = footprint.total(low, high) * product(counts, footprint.others)
                lines = np.maximum(lines, touched / self._line_elements(footprint) / self.points)
            io = io + lines
        return io + SPLIT_WEIGHT * np.log2(tiles)

    def _line_elements(self, footprint: TileFootprint) -> float:
        return max(1.0, self.options.cache_width / footprint.ref.dtype.bytes)

    def _lines(self, footprint: TileFootprint, sizes: Ints, reached: Ints) -> Floats:
        """Cache lines of a tile: dimensions by rising stride, of which neighbours share a line where the gap is less
        than a line. Tiles `reached`, which are not smaller, give the sharing: more of it, so a lower bound."""
        line = self._line_elements(footprint)
        extents, far = footprint.extents(sizes), footprint.extents(reached)
        lines = np.ones(len(sizes), dtype=np.float64)
        reach = np.zeros(len(sizes), dtype=np.float64)
        strides = [dimension.stride for dimension in footprint.dimensions]
        for dim in sorted(range(len(strides)), key=lambda d: strides[d]):
            gap = strides[dim] - reach
            shared = np.where(gap < line, np.clip(1 - gap / line, 0.0, 1.0), 0.0)
            lines = lines * extents[dim] - shared * (extents[dim] - 1)
            reach = reach + strides[dim] * (far[dim] - 1)
        return lines

    def describe(self, best: Ranked) -> str:
        """The tile, its bytes and its cost."""
        sizes = _row(best.sizes)
        held = int(self.held(sizes)[0])
        count = prod(-(-whole // size) for size, whole in zip(best.sizes, self.ranges, strict=True))
        text = f"{count} tile{'s' * (count > 1)} of {self.tile_text(best.sizes)}"
        if self.times is None:
            return f"{text}, {held} bytes each, cost {cost_text(best.cost)}"
        unit = self.times.unit
        time, move = self.times.time(sizes, sizes)
        compute = self.times.compute(sizes, sizes)
        said = f"; {', '.join(unit.missing)} counted at the slowest speed" if unit.missing else ""
        return (
            f"{text}, {held} of {self.memory_bytes // self.depth} bytes of {self.options.memory}, "
            f"{cost_text(time[0])} cycles on {unit.name} "
            f"({cost_text(compute[0])} computing, {cost_text(move[0])} moving){said}"
        )

    def refusal(self, smallest: Sequence[int]) -> Refusal:
        """The limits that the smallest tile breaks."""
        tile, held = self.tile_text(smallest), int(self.held(_row(smallest))[0])
        memory = next((limit.most for limit in self.limits if not limit.name), held)
        if held > memory:
            return Refusal(
                f"the smallest tile {tile} takes {held} bytes, {self.options.memory} has {memory} "
                f"({self.memory_bytes} for pipeline depth {self.depth})"
            )
        limits = ", ".join(map(str, self.limits))
        return Refusal(f"the smallest tile {tile} takes {held} bytes, which is over a limit: {limits}")

    def tile_text(self, sizes: Sequence[int]) -> str:
        """A tile in remarks."""
        pairs = zip(self.names, sizes, strict=True)
        return f"[{', '.join(f'{name}:{size}' for name, size in pairs)}]"

    def table(self, search: TileSearch, tiles: int, found: Sequence[Ranked]) -> str:
        """The best candidates as the slides show them: a column for each index, then the cost."""
        rows = [[*self.names, "cost"], *([*map(str, r.sizes), cost_text(r.cost)] for r in found)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in rows]
        unit = "cost" if self.times is None else f"cycles + {MOVE_WEIGHT:g}*cycles of moving"
        if self.core is not None:
            unit = f"cycles + {OPERAND_WEIGHT:g}*cycles of operands"
        inexact = [footprint.ref.name for footprint in self.footprints if not footprint.is_exact]
        said = f"; {', '.join(inexact)} counted as a box" if inexact else ""
        effort = f"{search.costed} costed, {search.bounded} box{'es' * (search.bounded != 1)} bounded"
        if search.unseen < inf:
            said += f"; stopped there, tiles that were not looked at cost {cost_text(search.unseen)} at least"
        title = f"best {len(found)} of {tiles} tiles, by {unit} ({effort}{said})"
        return "\n".join([title, *lines])


def _row(sizes: Sequence[int]) -> Ints:
    """The sizes of a single tile as an array of one row."""
    return np.array([sizes], dtype=np.int64)


def cost_text(cost: float) -> str:
    """A cost in a few digits: whole from a thousand on."""
    return f"{cost:.0f}" if cost >= 1000 else f"{cost:.6g}"


def candidate_sizes(options: Autotile, tiling: Tiling, *, sums: bool) -> list[Ints]:
    """The sizes to try of each index, ascending; with or without parts of sums."""
    found: list[Ints] = []
    lanes = tiling.lanes(options.vector_bytes)
    for column, (name, size) in enumerate(zip(tiling.names, tiling.ranges, strict=True)):
        sizes = np.arange(1, size + 1, dtype=np.int64)
        if options.only_even:
            sizes = sizes[size % sizes == 0]
        if options.only_po2:
            sizes = sizes[(sizes & (sizes - 1) == 0) | (sizes == size)]
        if name in lanes:
            whole = (sizes % lanes[name] == 0) & (size > lanes[name])
            sizes = sizes[whole | (sizes == size)]
        if not (sums and options.acc_idxs) and column not in tiling.out_columns:
            sizes = sizes[-1:]
        if name in options.fixed:
            sizes = np.array([min(options.fixed[name], size)], dtype=np.int64)
        found.append(sizes)
    return found
