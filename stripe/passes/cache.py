"""The pass `cache`."""

from __future__ import annotations

from math import prod
from typing import ClassVar, Literal

from pydantic import Field

from stripe.ir import (
    Block,
    Direction,
    Index,
    Location,
    Path,
    Program,
    Refinement,
    block_at,
    is_dense,
    nest_at,
    replace_at,
    with_entry,
)
from stripe.passes.base import (
    TILES,
    LocationSpec,
    Pass,
    PassContext,
    PassExample,
    PassGroup,
    Refusal,
    Reqs,
    TagSet,
)
from stripe.rewrite.cached import CacheOptions, cache_view
from stripe.rewrite.sharing import has_partial, sharing, split_shared, vector_dim
from stripe.rewrite.strides import memory_order


class Cache(Pass):
    """Copies what a block uses of a buffer into a nearer memory, and what it makes back out.

    `{ "reqs": ["conv"], "dirs": ["in"], "mem_loc": { "name": "SRAM" }, "xfer_loc": { "name": "DMA" } }`:

        #conv block [x:8] (                            #conv block [x:8] (
            in<DRAM[0]> I[8*x] (10:1)                      in<DRAM[0]> I_raw = I[8*x] (10:1)
        ) {                                    =>          none new@…<SRAM[0]> I[0] (10:1)
          0: block [k:3, x:8] (                        ) {
              in<DRAM[0]> I[k + x] (1:1)                 0: #cache #cache_load block<DMA[0]> [d0:10] (
                                                             in<DRAM[0]> I_raw[d0] (1:1)
                                                             out<SRAM[0]> I[d0]:assign (1:1) …
                                                         1: block [k:3, x:8] (
                                                             in<SRAM[0]> I[k + x] (1:1)

    The copy is the box of all that is touched, so that windows that overlap are held once, and exactly the elements
    that are touched are transferred. An aggregated output starts at the identity and is merged outwards by its
    aggregation; an assigned one is written back where it was written.
    """

    pass_name: ClassVar[str] = "cache"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[tile],mem_loc={name:SRAM},xfer_loc={name:DMA}", after=(TILES,)
    )

    reqs: Reqs
    dirs: tuple[Literal["in", "out", "inout"], ...] = Field(
        default=("in", "out", "inout"), description="directions of the views to cache"
    )
    refs: tuple[str, ...] = Field(default=(), description="names of the views to cache; all where empty")
    ref: str = Field(default="", description="cache only views that a block inside with this tag uses")
    mem_loc: LocationSpec | None = Field(default=None, description="memory of the copies")
    xfer_loc: LocationSpec | None = Field(default=None, description="unit that runs the transfers")
    add_constraints: bool = Field(
        default=True,
        description="transfer only elements that exist; without, refuse where the box hangs over an edge",
    )
    reorder_idx: bool = Field(
        default=True, description="walk the far memory with its smallest stride innermost"
    )
    odd_size: bool = Field(
        default=False, description="round the copy's sizes up to odd ones, against bank conflicts"
    )
    layout: tuple[int, ...] = Field(
        default=(),
        description="order of the copy's dimensions, outermost first; as in the source where empty",
    )
    prefetch: int = Field(
        default=0, ge=0, description="transfer this many points ahead: `prefetch` tags the loads"
    )
    shared: int = Field(
        default=0,
        ge=0,
        description="cache only what at least this many points of the block share, and once for them: the block splits "
        "into one over the indices that move the view, which holds the copy, and inside it one over the others; 0: a "
        "copy for each point",
    )
    shared_max: int = Field(
        default=0, ge=0, description="with shared: most points that share one copy; 0: no limit"
    )
    vector: bool = Field(
        default=False,
        description="cache only views that are read along vectors of results and do not lie in memory so; the copies "
        "have these elements side by side",
    )
    outer_set: TagSet = Field(default=(), description="with shared: tags added to the outer block")
    inner_set: TagSet = Field(default=("shared",), description="with shared: tags of the inner block")
    load_set: TagSet = Field(default=("cache", "cache_load"), description="tags of the blocks that load")
    store_set: TagSet = Field(default=("cache", "cache_store"), description="tags of the blocks that store")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a unit that the hardware model lacks."""
        for spec in (self.mem_loc, self.xfer_loc):
            if spec is not None:
                context.check_unit(spec)
        entry = program.entry
        paths = _matches(entry, (0,), self.reqs)
        refs = (ref for path in paths for ref in block_at(program, path).refinements if not ref.is_alloc)
        context.unknown_names("refs", "view", self.refs, (ref.name for ref in refs))
        for path in paths:
            entry = self._cached_at(entry, path, context)
        return with_entry(program, entry)

    def _cached_at(self, entry: Block, path: Path, context: PassContext) -> Block:
        """`entry` with the views of the block at `path` cached that are wanted."""
        block = nest_at(entry, path).block
        together: tuple[Index, ...] = ()
        for ref in block.refinements:
            if not self._wants(block, ref):
                continue
            layout = self._layout(block, ref, context)
            if layout is None:
                continue
            points = sharing(block, ref)
            reason = self._unshared(points, together)
            if reason:
                context.missed(block, f"{ref.name} is not cached: {reason}")
                continue
            split = entry
            if self.shared and not together:
                split = replace_at(entry, path, lambda block, points=points: self._split(block, points))
            cached = cache_view(split, path, ref.name, self._options(layout))
            if isinstance(cached, Refusal):
                context.missed(block, cached.reason)
                continue
            context.applied(block, cached.summary)
            entry = cached.entry
            if self.shared:
                together = points
        return entry

    def _unshared(self, points: tuple[Index, ...], together: tuple[Index, ...]) -> str:
        """Why a view that `points` share gets no copy for them, if so; the block is split for `together`."""
        count = prod(index.range for index in points)
        if count < self.shared:
            return f"{count} points share it, fewer than {self.shared}"
        return "others share it than share the copies before" if together not in ((), points) else ""

    def _split(self, block: Block, points: tuple[Index, ...]) -> Block:
        return split_shared(block, points, self.shared_max, self.outer_set, self.inner_set)

    def _layout(self, block: Block, ref: Refinement, context: PassContext) -> tuple[int, ...] | None:
        """The order of the copy's dimensions; None where `vector` leaves the view alone."""
        if not self.vector:
            return self.layout
        readers = [inner for inner in block.blocks if not self.ref or self.ref in inner.tags]
        last = vector_dim(block, ref.name, readers)
        if last is None:
            context.missed(block, f"{ref.name} is not cached: no vector of results is read along it")
            return None
        contiguous = ref.dims[last].stride == 1 or ref.dims[last].size == 1
        if contiguous and is_dense(ref.sizes, ref.strides):
            context.missed(block, f"{ref.name} is not cached: its vectors lie side by side")
            return None
        if ref.dims[last].stride == 1 and has_partial(ref.name, last, readers):
            context.missed(block, f"{ref.name} is not cached: its last vectors are partly empty")
            return None
        return (*(dim for dim in memory_order(ref) if dim != last), last)

    def _options(self, layout: tuple[int, ...]) -> CacheOptions:
        return CacheOptions(
            self.mem_loc.location() if self.mem_loc else Location(),
            self.xfer_loc.location() if self.xfer_loc else Location(),
            self.add_constraints,
            self.reorder_idx,
            self.odd_size,
            layout,
            self.prefetch,
            self.load_set,
            self.store_set,
        )

    def _wants(self, block: Block, ref: Refinement) -> bool:
        if (
            ref.dir is Direction.NONE
            or ref.dir.value not in self.dirs
            or (self.refs and ref.name not in self.refs)
        ):
            return False
        return not self.ref or any(
            view.source == ref.name
            for inner in block.blocks
            if self.ref in inner.tags
            for view in inner.refinements
        )


def _matches(block: Block, path: Path, reqs: tuple[str, ...]) -> list[Path]:
    """Paths of the outermost blocks with all tags of `reqs`."""
    if block.tags.has_all(reqs):
        return [path]
    found: list[Path] = []
    for number, statement in enumerate(block.statements):
        if isinstance(statement, Block):
            found += _matches(statement, (*path, number), reqs)
    return found
