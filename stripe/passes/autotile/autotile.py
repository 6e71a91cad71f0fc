"""The pass `autotile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from stripe.cost.counts.tiles import Bools, Floats, Ints, TileFootprint, product
from stripe.cost.time.machine import Machine
from stripe.cost.time.tiles import TileTimes, find_transfers, find_unit
from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Block,
    Program,
    Refinement,
    rename_refinements,
    rename_scalars,
    rewrite_matching,
    scalar_defined,
    step,
    with_entry,
)
from stripe.passes.autotile.search import Ranked, TileSearch
from stripe.passes.base import (
    Pass,
    PassContext,
    PassExample,
    PassGroup,
    Refusal,
    Reqs,
    TagReqs,
    TagSet,
    matching,
)
from stripe.rewrite.tile import tile_block

SHOWN = 10
"""Candidates in the table."""

MOST_SIZES = 1 << 24
"""The largest range of an index: the search looks at each of its sizes."""

MOST_POINTS = 1 << 62
"""Points of a block that 64 bits count."""

MOVE_WEIGHT = 0.01
"""Weight of the cycles of transfers beside the time of all: of equally quick tiles the one that moves less is best."""

SPLIT_WEIGHT = 0.001
"""Weight of log2(number of tiles) in PlaidML's formula."""


class Autotile(Pass):
    """Splits a block into tiles of the sizes that cost least, of all that keep the limits.

    `{ "reqs": ["conv"], "max_total_size": 512, "outer_set": ["conv"], "inner_set": ["conv_inner"] }`:

        #conv block [k:3, x:1000] (                    #conv block [k:1, x:4] (
            in<DRAM[0]> I[k + x] i8(1:1)                   in<DRAM[0]> I[250*x] i8(252:1)
            in<DRAM[0]> K[k] i8(1:1)               =>      in<DRAM[0]> K[0] i8(3:1)
            out<DRAM[0]> O[x]:add i8(1:1)                  out<DRAM[0]> O[250*x]:add i8(250:1)
        ) { … }                                        ) {
                                                         0: #conv_inner block [k:3, x:250] (
                                                             in<DRAM[0]> I[k + x] i8(1:1)
                                                             in<DRAM[0]> K[k] i8(1:1)
                                                             out<DRAM[0]> O[x]:add i8(1:1)
                                                         ) { … } }

    The elements that a tile touches are counted exactly, halos and strides included. With `memory`, a tile has to fit
    into that memory of the hardware model, `pipeline_depth` times so that transfers overlap with computing, and its
    cost is the cycles that all tiles take there, and a hundredth of those of transfers, so that of equally quick tiles
    the one that moves less is best; without, it is the cache lines that all tiles touch for each point, by PlaidML's
    formula. The search is complete, and the remarks list the best ten. Ties go to fewer tiles, then to smaller sizes of
    earlier indices.
    """

    pass_name: ClassVar[str] = "autotile"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[contraction],max_total_size=4096")
    refused: ClassVar[str] = "not tiled"

    reqs: Reqs = ("kernel",)
    exclude: TagReqs = Field(default=(), description="tags that a block may not have")
    outer_set: TagSet = Field(default=(), description="tags that the outer block gets")
    inner_set: TagSet = Field(default=(), description="tags that the inner block gets")

    memory: str = Field(default="", description="memory of the hardware model that a tile has to fit into")
    pipeline_depth: int | None = Field(
        default=None, ge=1,
        description="tiles that share the memory, 2 for double buffering; default: that of the execution unit",
    )  # fmt: skip
    cache_width: int = Field(
        default=0, ge=0, description="without memory: bytes of a cache line; 0: each element is one"
    )

    only_po2: bool = Field(default=False, description="only sizes that are powers of two, or the whole range")
    only_even: bool = Field(default=False, description="only sizes that divide the range")
    vector_bytes: int = Field(
        default=0,
        ge=0,
        description="an index along which the outputs are contiguous gets whole multiples of this many bytes, or its "
        "whole range; 0: any size",
    )
    acc_idxs: bool = Field(default=True, description="whether indices that no output uses may be tiled")
    fixed: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict[str, int], description="the size of an index, by its name, instead of a search"
    )

    max_per_input_size: int = Field(
        default=0, ge=0,
        description="most bytes that a tile reads of any view (inout counts too); 0: no limit, as in all that follow",
    )  # fmt: skip
    max_output_size: int = Field(
        default=0, ge=0, description="most bytes that a tile writes (inout counts too)"
    )
    max_per_output_size: int = Field(default=0, ge=0, description="the same, of any one view")
    max_total_size: int = Field(default=0, ge=0, description="most bytes of a tile, each view counted once")

    def run(self, program: Program, context: PassContext) -> Program:
        if self.memory:
            context.need_hardware(f"autotile into the memory '{self.memory}'")

        searches: dict[Block, tuple[TileSearch, list[Ranked]]] = {}
        names = (index.name for block in matching(program, self.reqs) for index in block.iterated)
        context.unknown_names("fixed", "index", self.fixed, names)

        def tile(block: Block) -> Block:
            excluded = block.words.has_any(self.exclude)
            return block if excluded else self.settled(block, self._tile(block, context, searches), context)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, tile))

    def _tile(
        self, block: Block, context: PassContext, searches: dict[Block, tuple[TileSearch, list[Ranked]]]
    ) -> Block | Refusal:
        """The block in tiles. `searches` holds the results for other blocks, by the block without its names."""
        refusal = _unsearchable(block)
        if refusal is not None:
            return refusal
        tiling = Tiling(self, block, context.hardware)
        kind = nameless(block)
        if kind not in searches:
            search = TileSearch(self._candidates(tiling), tiling.ranges, tiling.price, SHOWN)
            searches[kind] = search, search.run()
        search, found = searches[kind]
        if not found:
            smallest = [int(sizes[0]) for sizes in search.candidates]
            return tiling.refusal(smallest)
        context.analysis(block, tiling.table(search, found))
        context.applied(block, tiling.describe(found[0]))
        tiled = tile_block(block, dict(zip(tiling.names, found[0].sizes, strict=True)))
        (inner,) = tiled.blocks
        inner = replace(inner, tags=inner.tags.add(*self.inner_set))
        return replace(tiled, statements=(inner,), tags=tiled.tags.add(*self.outer_set))

    def _candidates(self, tiling: Tiling) -> list[Ints]:
        """The sizes to try of each index, ascending."""
        found: list[Ints] = []
        lanes = tiling.lanes(self.vector_bytes)
        for column, (name, size) in enumerate(zip(tiling.names, tiling.ranges, strict=True)):
            sizes = np.arange(1, size + 1, dtype=np.int64)
            if self.only_even:
                sizes = sizes[size % sizes == 0]
            if self.only_po2:
                sizes = sizes[(sizes & (sizes - 1) == 0) | (sizes == size)]
            if name in lanes:
                whole = (sizes % lanes[name] == 0) & (size > lanes[name])
                sizes = sizes[whole | (sizes == size)]
            if not self.acc_idxs and column not in tiling.out_columns:
                sizes = sizes[-1:]
            if name in self.fixed:
                sizes = np.array([min(self.fixed[name], size)], dtype=np.int64)
            found.append(sizes)
        return found


def _unsearchable(block: Block) -> Refusal | None:
    """The reason why the search cannot look at the block; None where it can."""
    if not block.iterated:
        return Refusal("it has no index")
    if prod(index.range for index in block.iterated) > MOST_POINTS:
        return Refusal(f"more than {MOST_POINTS} points, which costs are not counted for")
    largest = max(block.iterated, key=lambda index: index.range)
    if largest.range > MOST_SIZES:
        return Refusal(f"index {largest.name} has range {largest.range}, the search goes up to {MOST_SIZES}")
    return None


def nameless(block: Block) -> Block:
    """`block` with canonical names, so that equal layers of a network compare equal and are searched once.

    Canonical are its own name, those of its refinements and their sources, and of its scalars. Names of indices and
    of blocks inside stay, as do tags, locations and all numbers.
    """
    refs = {ref.name: f"r{number}" for number, ref in enumerate(block.refinements)}
    scalars = (scalar_defined(statement) for statement in block.statements)
    defined = dict.fromkeys(name for name in scalars if name is not None)
    found = rename_refinements(block, refs)
    return replace(
        found,
        name="",
        refinements=tuple(replace(ref, source="s" if ref.source else "") for ref in found.refinements),
        statements=rename_scalars(found.statements, {name: f"v{n}" for n, name in enumerate(defined)}),
        comments=(),
        deps=(),
    )


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

    def __init__(self, options: Autotile, block: Block, hardware: HardwareModel | None) -> None:
        self.block, self.options = block, options
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
        if options.memory and hardware is not None:
            unit, memory = find_unit(hardware, block), hardware.memory(options.memory)
            self.depth = options.pipeline_depth or unit.pipeline_depth
            self.alignment, self.memory_bytes = memory.alignment, memory.size
            transfers = find_transfers(Machine(hardware), self.footprints, options.memory)
            self.times = TileTimes(self.ranges, transfers, unit, self.depth)
            resident = sum(self._resident_bytes(ref) for ref in block.refinements)
            self.limits.append(_Limit("", max(0, memory.size - resident) // self.depth, self.footprints))

    def _resident_bytes(self, ref: Refinement) -> int:
        """Bytes of the memory that a view or an allocation of the block takes all the time."""
        if ref.is_alloc:
            return ref.bytes if ref.location.name in ("", self.options.memory) else 0
        if ref.location.name != self.options.memory:
            return 0
        return int(TileFootprint(self.block, ref).bytes(np.array([self.ranges], dtype=np.int64))[0])

    def lanes(self, width: int) -> dict[str, int]:
        """The indices that move every output by one element, with the elements that `width` bytes hold; none for 0."""
        outputs = self.block.outputs if width else ()
        return {
            index.name: max(1, width // max(ref.dtype.bytes for ref in outputs))
            for index in self.block.iterated
            if outputs and all(step(ref, index.name) == 1 for ref in outputs)
        }

    def bytes_of(self, footprint: TileFootprint, sizes: Ints) -> Ints:
        """Bytes that one tile holds of a view, as the limits count them."""
        return -(-footprint.bytes(sizes) // self.alignment) * self.alignment

    def held(self, sizes: Ints) -> Ints:
        """Bytes that one tile holds of all views."""
        return sum((self.bytes_of(f, sizes) for f in self.footprints), np.zeros(len(sizes), dtype=np.int64))

    def too_big(self, sizes: Ints) -> Bools:
        """Whether a tile breaks a limit, and so do larger ones: bytes grow with each size."""
        broken = np.zeros(len(sizes), dtype=np.bool_)
        for limit in self.limits:
            parts = [self.bytes_of(footprint, sizes) for footprint in limit.views]
            for part in parts if limit.each else [sum(parts)]:
                broken |= part > limit.most
        return broken

    def price(self, low: Ints, high: Ints) -> Floats:
        """Lower bound of the cost of sizes between `low` and `high`, the cost where both are the same array."""
        if self.times is None:
            cost = self._lines_per_point(low, high)
        else:
            time, move = self.times.time(low, high)
            cost = time + MOVE_WEIGHT * move
        return np.where(self.too_big(low), np.inf, cost)

    def _lines_per_point(self, low: Ints, high: Ints) -> Floats:
        """The cost that PlaidML 0.7 gave a tile with its default weights (tile/codegen/autotile.cc):

            padding * (1 + lines read + lines written) / S + SPLIT_WEIGHT * log2(C)

        with S the product of the sizes, C of the counts, and padding that of size*count/range over the indices. Views
        that are read and written count on both sides. For a box, lines of all tiles together are at least the clipped
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
        """Cache lines of one tile: dimensions by rising stride, of which neighbours share a line where the gap
        is less than one. The sharing is that of tiles `reached`, which are not smaller: more sharing, so a
        lower bound.
        """
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
        sizes = np.array([best.sizes], dtype=np.int64)
        held = int(self.held(sizes)[0])
        count = prod(-(-whole // size) for size, whole in zip(best.sizes, self.ranges, strict=True))
        text = f"{count} tile{'s' * (count > 1)} of {self._tile_text(best.sizes)}"
        if self.times is None:
            return f"{text}, {held} bytes each, cost {cost_text(best.cost)}"
        unit = self.times.unit
        time, move = self.times.time(sizes, sizes)
        compute = self.times.compute(sizes)
        said = f"; {', '.join(unit.missing)} counted at the slowest speed" if unit.missing else ""
        return (
            f"{text}, {held} of {self.memory_bytes // self.depth} bytes of {self.options.memory}, "
            f"{cost_text(time[0])} cycles on {unit.name} "
            f"({cost_text(compute[0])} computing, {cost_text(move[0])} moving){said}"
        )

    def refusal(self, smallest: Sequence[int]) -> Refusal:
        """The limits that the smallest tile breaks."""
        sizes = np.array([smallest], dtype=np.int64)
        tile, held = self._tile_text(smallest), int(self.held(sizes)[0])
        memory = next((limit.most for limit in self.limits if not limit.name), held)
        if held > memory:
            return Refusal(
                f"the smallest tile {tile} takes {held} bytes, {self.options.memory} has {memory} "
                f"({self.memory_bytes} for pipeline depth {self.depth})"
            )
        limits = ", ".join(map(str, self.limits))
        return Refusal(f"the smallest tile {tile} takes {held} bytes, which is over a limit: {limits}")

    def _tile_text(self, sizes: Sequence[int]) -> str:
        pairs = zip(self.names, sizes, strict=True)
        return f"[{', '.join(f'{name}:{size}' for name, size in pairs)}]"

    def table(self, search: TileSearch, found: Sequence[Ranked]) -> str:
        """The best candidates as the slides show them: a column for each index, then the cost."""
        rows = [[*self.names, "cost"], *([*map(str, r.sizes), cost_text(r.cost)] for r in found)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in rows]
        unit = "cost" if self.times is None else f"cycles + {MOVE_WEIGHT:g}*cycles of moving"
        inexact = [footprint.ref.name for footprint in self.footprints if not footprint.is_exact]
        said = f"; {', '.join(inexact)} counted as a box" if inexact else ""
        effort = f"{search.costed} costed, {search.bounded} boxes bounded"
        title = f"best {len(found)} of {search.size} tiles, by {unit} ({effort}{said})"
        return "\n".join([title, *lines])


def cost_text(cost: float) -> str:
    """A cost in a few digits: whole from a thousand on."""
    return f"{cost:.0f}" if cost >= 1000 else f"{cost:.6g}"
