"""The pass `cache`."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from stripe.ir import (
    Block,
    Index,
    IndexMap,
    Location,
    Path,
    Program,
    Refinement,
    block_at,
    is_dense,
    read_index_map,
    replace_at,
    step,
    walk,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.ir.tags import DOT_TILE
from stripe.passes.base import (
    TILES,
    DependsOn,
    LocationSpec,
    Pass,
    PassContext,
    PassExample,
    PassGroup,
    Refusal,
    Reqs,
    TagSet,
)
from stripe.rewrite.cached import Cached, CacheOptions, cache_view
from stripe.rewrite.options import MapText
from stripe.rewrite.pack import packable, repacked
from stripe.rewrite.prune import with_interface
from stripe.rewrite.sharing import sharing, split_shared
from stripe.rewrite.strides import memory_order


class Cache(Pass):
    """Copies the elements of a buffer that a block uses into a nearer memory, and its results back out.

    `{ "reqs": ["conv"], "dirs": ["in"], "mem_loc": { "name": "SRAM" }, "xfer_loc": { "name": "DMA" } }`:

        #conv block [x:8] (                            #conv block [x:8] (
            in<DRAM[0]> I[8*x] (10:1)                      in<DRAM[0]> I_raw = I[8*x] (10:1)
            out<DRAM[0]> O[8*x]:add (8:1)                  none new<SRAM[0]> I[0] (10:1)
        ) {                                            ) {
          0: block [k:3, x:8] (               =>         0: #cache #cache_load block<DMA[0]> [d0:10] (
              in<DRAM[0]> I[k + x] (1:1)                     in<DRAM[0]> I_raw[d0] (1:1)
              out<DRAM[0]> O[x]:add                          out<SRAM[0]> I[d0] (1:1)
          ) { … }                                        1: block [k:3, x:8] (
        }                                                    in<SRAM[0]> I[k + x] (1:1)

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
    shared: int = Field(
        default=0,
        ge=0,
        description="cache only elements that at least this many points of the block share, once for them: the block "
        "splits into one over the indices that move the view, which holds the copy, and inside it one over the others; "
        "0: a copy for each point",
    )
    shared_max: Annotated[int, DependsOn("shared")] = Field(
        default=0, ge=0, description="with shared: most points that share one copy; 0: no limit"
    )
    vector: bool = Field(
        default=False,
        description="cache only views that are read along vectors of results and do not lie in memory so; the copies "
        "have these elements side by side",
    )
    layout: MapText = Field(
        default="",
        description="an index map for the copies, as that of the pass layout: `NHWC8h8w32c`; row-major where absent",
    )
    inner_set: Annotated[TagSet, DependsOn("shared")] = Field(
        default=("shared",), description="with shared: tags of the inner block"
    )

    @model_validator(mode="after")
    def _check_layout(self) -> Self:
        """Raises ValueError for two layouts."""
        if self.layout and self.vector:
            raise ValueError("`layout` stands instead of `vector`")
        return self

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a unit that the hardware model lacks."""
        for spec in (self.mem_loc, self.xfer_loc):
            if spec is not None:
                context.check_unit(spec)
        entry = program.entry
        paths: list[Path] = []  # of the outermost blocks that match
        for path, block in walk(entry):
            inside = paths and path[: len(paths[-1])] == paths[-1]
            if not inside and block.words.has_all(self.reqs):
                paths.append(path)
        refs = (ref for path in paths for ref in block_at(program, path).refinements if not ref.is_alloc)
        context.unknown_names("refs", "view", self.refs, (ref.name for ref in refs))
        for path in paths:
            entry = self._cached_at(entry, path, context)
        return with_entry(program, with_interface(entry, program))

    def _cached_at(self, entry: Block, path: Path, context: PassContext) -> Block:
        """`entry` with the views of the block at `path` cached that are wanted."""
        block = block_at(entry, path)
        together: tuple[Index, ...] = ()
        for ref in block.refinements:
            wanted = ref.dir.value in self.dirs and (not self.refs or ref.name in self.refs)
            tagged = [inner for inner in block.blocks if not self.ref or self.ref in inner.tags]
            used = any(view.source == ref.name for inner in tagged for view in inner.refinements)
            if not wanted or (self.ref and not used):
                continue
            points = sharing(block, ref) if self.shared else ()
            answer = self._cached(entry, path, ref, points, together)
            if isinstance(answer, Refusal):
                context.missed(block, f"{ref.name} is not cached: {answer}")
            else:
                context.applied(block, answer.summary)
                entry, together = answer.entry, points
        return entry

    def _cached(
        self,
        entry: Block,
        path: Path,
        ref: Refinement,
        points: tuple[Index, ...],
        together: tuple[Index, ...],
    ) -> Cached | Refusal:
        """The entry with a copy of the view that `points` share; copies before are shared by the points `together`,
        for which the block at `path` is split already."""
        layout = self._vectors_together(block_at(entry, path), ref) if self.vector else None
        if isinstance(layout, Refusal):
            return layout
        count = prod(index.range for index in points)
        if count < self.shared:
            return Refusal(f"{count} point{'s' * (count != 1)} share it, fewer than {self.shared}")
        if together not in ((), points):
            along, split = (", ".join(index.name for index in indices) for indices in (points, together))
            return Refusal(f"others share it than share the copies before: points along {along}, not {split}")
        if self.shared and not together:
            entry = replace_at(
                entry, path, lambda block: split_shared(block, points, self.shared_max, self.inner_set)
            )
        memory = self.mem_loc.location() if self.mem_loc else Location()
        transfer = self.xfer_loc.location() if self.xfer_loc else Location()
        cached = cache_view(entry, path, ref.name, CacheOptions(memory, transfer, layout))
        if isinstance(cached, Refusal) or not self.layout:
            return cached
        block = block_at(cached.entry, path)
        packing = packable(block, block.ref(ref.name), read_index_map(self.layout))
        if isinstance(packing, Refusal):
            return packing
        return replace(cached, entry=repacked(cached.entry, {path: {ref.name: packing}}))

    def _vectors_together(self, block: Block, ref: Refinement) -> IndexMap | Refusal:
        """The layout of a copy in which the elements of vectors lie side by side."""
        readers = [inner for inner in block.blocks if not self.ref or self.ref in inner.tags]
        last = _vector_dim(block, ref.name, readers)
        if last is None:
            return Refusal("no vector of results is read along it")
        contiguous = ref.dims[last].stride == 1 or ref.dims[last].size == 1
        if contiguous and is_dense(ref.sizes, ref.strides):
            return Refusal("its vectors lie side by side")
        if not self.shared and ref.dims[last].stride == 1 and _has_partial(ref.name, last, readers):
            return Refusal("its last vectors are partly empty")
        return IndexMap.blocked((*(dim for dim in memory_order(ref) if dim != last), last), {})


def _vector_dim(block: Block, name: str, readers: Iterable[Block]) -> int | None:
    """The dimension of the view `name` of `block` along which `readers`, blocks inside, read vectors: that of an index
    that moves all their outputs by one element. None where there is none.
    """
    ref = block.ref(name)
    for reader in readers:
        if DOT_TILE in reader.tags:
            continue
        views = [view for view in reader.refinements if view.source == name]
        for index in reversed(reader.iterated):
            if index.range > 1 and reader.outputs and all(step(o, index.name) == 1 for o in reader.outputs):
                moved = [d for view in views for d in range(ref.rank) if index.name in view.access[d].names()]
                if moved:
                    return moved[0]
    return None


def _has_partial(name: str, dim: int, readers: Iterable[Block]) -> bool:
    """Whether `readers` test an index with which the view `name` moves along a dimension: some rows are shorter.

    Short rows of a copy for one point take longer than the copy gains, when the source is contiguous anyway.
    """
    for reader in readers:
        tested = {index for constraint in reader.constraints for index in constraint.affine.names()}
        if any(view.source == name and view.access[dim].names() & tested for view in reader.refinements):
            return True
    return False
