"""The pass `autotile`."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from stripe.ir import (
    Affine,
    Block,
    ConfigError,
    Program,
    Refinement,
    rewrite_matching,
    step,
    substitute,
    with_entry,
)
from stripe.passes.autotile.cost import FormulaModel, Limits, MachineModel, TileShape, Weights
from stripe.passes.autotile.footprint import Footprint
from stripe.passes.autotile.nameless import nameless
from stripe.passes.autotile.search import Ranked, Search, hill_climb
from stripe.passes.autotile.task import Task
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs, TagSet, matching
from stripe.rewrite.tile import tile_block

if TYPE_CHECKING:
    from stripe.passes.autotile.footprint import Ints

SHOWN = 10
"""Candidates in the table."""

MOST_SIZES = 1 << 24
"""The largest range of an index: each of its sizes is looked at."""

MOST_POINTS = 1 << 62
"""Points of a block that 64 bits count."""

Size = Field(default=0, ge=0)
Weight = Field(default=1.0, ge=0)


class Autotile(Pass):
    """Splits a block into tiles of the sizes that cost least, of all that keep the limits.

        #conv block [k:3, x:1000] (                    #conv block [k:1, x:8] (
            in<DRAM[0]> I[k + x] i8(1:1)                   in<DRAM[0]> I[125*x] i8(127:1)
            in<DRAM[0]> K[k] i8(1:1)               =>      in<DRAM[0]> K[0] i8(3:1)
            out<DRAM[0]> O[x]:add i8(1:1)                  out<DRAM[0]> O[125*x]:add i8(125:1)
        ) { … }                                        ) {
                                                         0: #conv_inner block [k:3, x:125] (
                                                             in<DRAM[0]> I[k + x] i8(1:1)
                                                             in<DRAM[0]> K[k] i8(1:1)
                                                             out<DRAM[0]> O[x]:add i8(1:1)
                                                         ) { … } }

    What a tile touches is counted exactly, halos and strides too. With `memory`, a tile has to fit into that
    memory of the hardware model, `pipeline_depth` times so that transfers overlap with computing, and costs
    the cycles that all tiles take there; without, it costs what PlaidML's formula says. The search is complete
    (`fast` is not), and the remarks list the best ten. Ties go to fewer tiles, then to smaller sizes of
    earlier indices.
    """

    pass_name: ClassVar[str] = "autotile"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[contraction],max_total_size=4096")

    reqs: Reqs = ("kernel",)
    exclude: TagSet = Field(default=(), description="tags that a block may not have")
    outer_set: TagSet = Field(default=(), description="tags that the outer block gets")
    inner_set: TagSet = Field(default=(), description="tags that the inner block gets")
    clear_outer: bool = Field(default=False, description="the outer block loses the tags that it had")
    clear_location: bool = Field(default=False, description="the outer block loses its location")
    copy_tags: bool = Field(default=False, description="the inner block gets the tags of the block too")

    memory: str = Field(default="", description="memory of the hardware model that a tile has to fit into")
    pipeline_depth: int | None = Field(
        default=None, ge=1,
        description="tiles that share the memory, 2 for double buffering; default: that of the execution unit",
    )  # fmt: skip
    move_weight: float = Field(
        default=0.01,
        ge=0,
        description="with memory: weight of the cycles that transfers take, beside the time of all, so that of tiles "
        "that take as long the one that moves less is best; 0: time alone",
    )
    footprint: Literal["distinct", "box"] = Field(
        default="distinct",
        description="what limits count of a view: distinct elements, or the box around them",
    )

    only_po2: bool = Field(default=False, description="only sizes that are powers of two, or the whole range")
    only_even: bool = Field(default=False, description="only sizes that divide the range")
    only_multiple_of_32: bool = Field(
        default=False, description="only multiples of 32; all of a range below 32"
    )
    vector_bytes: int = Field(
        default=0,
        ge=0,
        description="an index along which the outputs are contiguous gets whole multiples of this many bytes, or its "
        "whole range; 0: any size",
    )
    fast: bool = Field(default=False, description="stop at a local optimum instead of searching all")
    acc_idxs: bool = Field(default=True, description="whether indices that no output uses may be tiled")
    fixed: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict[str, int], description="the size of an index, by its name, instead of a search"
    )

    input_cost: float = Field(default=1.0, ge=0, description="weight of cache lines read, in the formula")
    output_cost: float = Field(default=1.0, ge=0, description="weight of cache lines written, in the formula")
    split_factor: float = Field(
        default=0.001,
        description="weight of log2(number of tiles), in the formula; negative prefers many tiles",
    )
    cache_width: int = Field(default=0, ge=0, description="bytes of a cache line; 0: each element is one")
    small_factor_upbound: int = Field(
        default=0, ge=0, le=1000,
        description="largest prime factor of output sizes that divides the cost, in the formula",
    )  # fmt: skip
    min_size: int = Field(
        default=1, ge=1, description="points of a tile below which the formula's cost rises"
    )
    min_out_size: int = Field(default=1, ge=1, description="the same, of indices that outputs use")
    min_count: int = Field(
        default=1, ge=1, description="number of tiles below which the formula's cost rises"
    )
    min_out_count: int = Field(default=1, ge=1, description="the same, of indices that outputs use")

    max_count: int = Field(default=0, ge=0, description="most tiles; 0: no limit, as in all that follow")
    max_sizes_product: int = Field(default=0, ge=0, description="most points of a tile")
    max_po2_product: int = Field(
        default=0, ge=0, description="the same, each size rounded up to a power of two"
    )
    max_input_size: int = Field(
        default=0, ge=0, description="most bytes that a tile reads (inout counts too)"
    )
    max_per_input_size: int = Field(default=0, ge=0, description="the same, of any one view")
    max_output_size: int = Field(
        default=0, ge=0, description="most bytes that a tile writes (inout counts too)"
    )
    max_per_output_size: int = Field(default=0, ge=0, description="the same, of any one view")
    max_total_size: int = Field(default=0, ge=0, description="most bytes of a tile, each view counted once")
    odd_size: bool = Field(
        default=False, description="limits count boxes with sides rounded up to odd numbers"
    )
    skip_1d: bool = Field(
        default=False, description="views of one dimension count neither as bytes nor as cost"
    )
    loc_name: str = Field(
        default="", description="only views at this location (a pattern) count; all where empty"
    )

    flip: bool = Field(default=False, description="use the numbers of tiles as sizes, and interleave")
    interleave: bool = Field(default=False, description="a tile takes every n-th value instead of neighbours")
    location_idx_tag: str = Field(
        default="",
        description="name in the location's units that becomes the tile's number, last index fastest",
    )
    elide_trivial: bool = Field(
        default=False,
        description="where one of the two blocks has a single point, tag the block instead of nesting it",
    )
    fail_outer_set: TagSet = Field(default=(), description="tags of the outer block when nothing fits")
    fail_inner_set: TagSet = Field(
        default=(), description="tags of the inner block when nothing fits; the whole block goes inside then"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        if self.memory:
            context.need_hardware(f"autotile into the memory '{self.memory}'")

        searches: dict[Block, tuple[Search, list[Ranked]]] = {}
        names = (index.name for block in matching(program, self.reqs) for index in block.iterated)
        context.unknown_names("fixed", "index", self.fixed, names)

        def tile(block: Block) -> Block:
            return block if block.tags.has_any(self.exclude) else self._tile(block, context, searches)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, tile))

    def _tile(
        self, block: Block, context: PassContext, searches: dict[Block, tuple[Search, list[Ranked]]]
    ) -> Block:
        """The block in tiles. `searches` holds what was found for other blocks, by the block without its names."""
        if not block.iterated:
            context.missed(block, "not tiled: it has no index")
            return block
        if prod(index.range for index in block.iterated) > MOST_POINTS:
            context.missed(
                block, f"not tiled: more than {MOST_POINTS} points, which costs are not counted for"
            )
            return block
        largest = max(block.iterated, key=lambda index: index.range)
        if largest.range > MOST_SIZES:
            reason = f"not tiled: index {largest.name} has range {largest.range}, the search goes up to {MOST_SIZES}"
            context.missed(block, reason)
            return block
        task = _make_task(self, block, context)
        kind = nameless(block)
        if kind not in searches:
            candidates = self._candidates(task, _lanes(block, self.vector_bytes))
            search = Search(candidates, task.shape.ranges, task.model, SHOWN)
            searches[kind] = search, hill_climb(search) if self.fast else search.run()
        search, found = searches[kind]
        if not found:
            return self._nothing_fits(block, task, search, context)
        context.analysis(block, task.table(search, found))
        best = found[0]
        context.applied(block, task.describe(best))
        sizes = dict(zip(task.shape.names, best.sizes, strict=True))
        if self.flip:
            sizes = {index.name: -(-index.range // sizes[index.name]) for index in block.iterated}
        return self._apply(block, sizes)

    def _candidates(self, task: Task, lanes: dict[str, int]) -> list[Ints]:
        """The sizes to try of each index, rising; of indices in `lanes` multiples of what stands there."""
        import numpy as np

        found: list[Ints] = []
        for column, (name, size) in enumerate(zip(task.shape.names, task.shape.ranges, strict=True)):
            sizes = np.arange(1, size + 1, dtype=np.int64)
            if self.only_multiple_of_32:
                sizes = sizes[sizes % 32 == 0]
            if self.only_even:
                sizes = sizes[size % sizes == 0]
            if self.only_po2:
                sizes = sizes[(sizes & (sizes - 1) == 0) | (sizes == size)]
            if name in lanes:
                sizes = (
                    sizes[(sizes % lanes[name] == 0) | (sizes == size)] if size > lanes[name] else sizes[-1:]
                )
            if not len(sizes) or (not self.acc_idxs and column not in task.shape.out_columns):
                sizes = np.array([size], dtype=np.int64)
            if name in self.fixed:
                sizes = np.array([min(self.fixed[name], size)], dtype=np.int64)
            found.append(sizes)
        return found

    def _apply(self, block: Block, sizes: dict[str, int]) -> Block:
        whole = all(sizes[index.name] == index.range for index in block.iterated)
        single = all(size == 1 for size in sizes.values())
        if self.elide_trivial and (whole or single):
            return replace(block, tags=block.tags.add(*self.outer_set, *self.inner_set))
        tiled = tile_block(block, sizes, interleave=self.interleave or self.flip)
        return self._dressed(block, tiled, self.outer_set, self.inner_set)

    def _dressed(self, block: Block, tiled: Block, outer_set: TagSet, inner_set: TagSet) -> Block:
        """The two blocks with their tags and locations."""
        (inner,) = tiled.blocks
        inner_tags = inner.tags | block.tags if self.copy_tags else inner.tags
        inner = replace(inner, tags=inner_tags.add(*inner_set))
        outer_tags = inner.tags.remove(*inner.tags) if self.clear_outer else tiled.tags
        tiled = replace(tiled, statements=(inner,), tags=outer_tags.add(*outer_set))
        if self.location_idx_tag:
            tiled = _numbered(tiled, self.location_idx_tag)
        return replace(tiled, location=type(tiled.location)()) if self.clear_location else tiled

    def _nothing_fits(self, block: Block, task: Task, search: Search, context: PassContext) -> Block:
        smallest = [int(sizes[0]) for sizes in search.candidates]
        context.missed(block, f"not tiled: {task.why_not(smallest)}")
        if not self.fail_inner_set and not self.fail_outer_set:
            return block
        whole = {index.name: index.range for index in block.iterated}
        return self._dressed(block, tile_block(block, whole), self.fail_outer_set, self.fail_inner_set)


def _numbered(outer: Block, tag: str) -> Block:
    """Replaces `tag` in locations by the number of the tile, the last index running fastest."""
    number, step = Affine(), 1
    for index in reversed(outer.iterated):
        if index.range > 1:
            number = number + Affine.var(index.name) * step
            step *= index.range
    outer = substitute(outer, {tag: number})
    return replace(outer, indices=tuple(i for i in outer.indices if not (i.is_passed and i.name == tag)))


def _make_task(options: Autotile, block: Block, context: PassContext) -> Task:
    """What `options` count of `block` and what that costs on the machine, if one is asked for."""
    views = [ref for ref in block.refinements if not ref.is_alloc and _counts(options, ref)]
    machine, resident = None, 0
    hardware = context.hardware
    if options.memory and hardware is not None:
        from stripe.passes.autotile.machine import find_machine

        machine = find_machine(hardware, block, options.memory, options.pipeline_depth)
        resident = sum(_resident_bytes(block, ref, options.memory) for ref in block.refinements)
        views = [ref for ref in views if ref.location.name != options.memory]
    limits = Limits(
        options.max_input_size, options.max_per_input_size, options.max_output_size, options.max_per_output_size,
        options.max_total_size, options.max_sizes_product, options.max_po2_product, options.max_count,
        options.odd_size, options.footprint == "box",
        None if machine is None else max(0, machine.memory_bytes - resident) // machine.pipeline_depth,
        1 if machine is None else machine.alignment,
    )  # fmt: skip
    footprints = [Footprint(block, ref) for ref in views]
    shape = TileShape(block, footprints, limits)
    if machine is None or hardware is None:
        return Task(shape, FormulaModel(shape, _weights(options)), None)
    from stripe.hw.graph import UnitGraph
    from stripe.passes.autotile.machine import find_transfers

    transfers = find_transfers(hardware, UnitGraph(hardware), footprints, options.memory)
    model = MachineModel(
        shape,
        transfers,
        machine.cycles_per_point,
        machine.latency_per_tile,
        machine.pipeline_depth,
        options.move_weight,
    )
    return Task(shape, model, machine)


def _weights(options: Autotile) -> Weights:
    return Weights(
        options.input_cost, options.output_cost, options.split_factor, options.cache_width, options.min_size,
        options.min_out_size, options.min_count, options.min_out_count, options.small_factor_upbound,
    )  # fmt: skip


def _counts(options: Autotile, ref: Refinement) -> bool:
    """Whether the options take a view into account."""
    if options.skip_1d and ref.rank == 1:
        return False
    if not options.loc_name:
        return True
    try:
        return ref.location.matches(options.loc_name)
    except ValueError as error:
        raise ConfigError(f"loc_name: {error}") from None


def _resident_bytes(block: Block, ref: Refinement, memory: str) -> int:
    """Bytes of the memory that a view or an allocation of the block takes all the time: all that lies there
    already.
    """
    if ref.is_alloc:
        return ref.bytes if ref.location.name in ("", memory) else 0
    if ref.location.name != memory:
        return 0
    import numpy as np

    whole = np.array([[index.range for index in block.iterated]], dtype=np.int64)
    return int(Footprint(block, ref).elements(whole)[0]) * ref.dtype.bytes


def _lanes(block: Block, width: int) -> dict[str, int]:
    """The indices that move every output by one element, with the elements that `width` bytes hold; none for 0."""
    found: dict[str, int] = {}
    for index in block.iterated if width and block.outputs else ():
        if all(step(ref, index.name) == 1 for ref in block.outputs):
            found[index.name] = max(1, width // max(ref.dtype.bytes for ref in block.outputs))
    return found
