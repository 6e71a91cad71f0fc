"""The pass `cache`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from stripe.ir import Block, Direction, Location, Path, Program, Refinement, with_entry
from stripe.passes.base import LocationSpec, Pass, PassContext, Reqs, TagSet
from stripe.passes.common.cache_copy import CacheOptions, cache_view
from stripe.passes.common.locations import check_unit
from stripe.poly import nest_at


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

    The copy is the box of all that is touched, so that windows that overlap are held once, and exactly the
    elements that
    are touched are transferred. An aggregated output starts at the identity and is merged outwards by its
    aggregation; an assigned one is written back where it was written.
    """

    pass_name: ClassVar[str] = "cache"

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
    load_set: TagSet = Field(default=("cache", "cache_load"), description="tags of the blocks that load")
    store_set: TagSet = Field(default=("cache", "cache_store"), description="tags of the blocks that store")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a unit that the hardware model lacks."""
        for spec in (self.mem_loc, self.xfer_loc):
            if spec is not None:
                check_unit(spec, context.hardware)
        options = CacheOptions(
            self.mem_loc.location() if self.mem_loc else Location(),
            self.xfer_loc.location() if self.xfer_loc else Location(),
            self.add_constraints,
            self.reorder_idx,
            self.odd_size,
            self.layout,
            self.prefetch,
            self.load_set,
            self.store_set,
        )
        entry = program.entry
        for path in _matches(entry, (0,), self.reqs):
            block = nest_at(entry, path).block
            for ref in block.refinements:
                if self._wants(block, ref):
                    entry = cache_view(entry, path, ref.name, options, context)
        return with_entry(program, entry)

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
