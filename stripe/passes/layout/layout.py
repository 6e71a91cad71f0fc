"""The pass `layout`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator
from typing_extensions import override

from stripe.ir import (
    Buffer,
    ConstantBuffer,
    Path,
    Program,
    Refinement,
    Role,
    block_at,
    rewrite_blocks,
    value_key,
    walk,
    with_entry,
)
from stripe.ir.check.layouts import layout_fault, pad_fault
from stripe.ir.frozen import replace
from stripe.ir.index_map import IndexMap, PhysicalLayout
from stripe.ir.text.index_maps import read_index_map
from stripe.passes.base import DependsOn, Pass, PassContext, PassExample, PassGroup, Reqs, matching
from stripe.passes.layout.choose import FreeTensor, Label, choose
from stripe.passes.layout.copies import with_copies
from stripe.passes.layout.dots import with_dots
from stripe.passes.layout.pads import Holes, with_pads
from stripe.passes.layout.tiled import tiled_map
from stripe.poly import accesses
from stripe.poly.index_maps import holes
from stripe.rewrite.options import MapText
from stripe.rewrite.pack import Packing, packable, packed_data, repacked
from stripe.rewrite.refusal import Refusal
from stripe.rewrite.strides import memory_order


class Layout(Pass):
    """Stores buffers in another order of dimensions, or in blocks: NCHW as NHWC, or as NCHW16c.

    `{ "alloc_reqs": ["tmp"], "block": { "1": 16 } }`:

        #tmp none new@…<[0]> T[0, 0, 0] fp32(1:960, 20:48, 48:1)
        block [c:20, x:48] ( out T[0, c, x] (1:960, 1:48, 1:1) …
        =>
        #tmp none new@…<[0]> T[0, 0, 0, 0] fp32(1:1536, 2:768, 48:16, 16:1)
        block [c:20, x:48] ( out T[0, floor(c/16), x, c mod 16] (1:1536, 1:768, 1:16, 1:1) …

    `map` gives the physical place of each element; it has to keep elements apart. `order` and `block` are a short form:
    the dimensions as they shall lie in memory, the outermost first; each dimension of `block` is cut into blocks of so
    many elements, which become the innermost dimensions. `choose` gives each buffer the innermost dimension for which
    all kernels together, vectors along the best index of each, take the fewest memory operations. `tiles` blocks a
    buffer by the extents of the views that tiles have of it. Where the last block
    is not full, its other elements stay undefined and are never read. Tensors of the user keep their layout: the
    program works on a temporary, which a block tagged `layout_copy` copies in from them or out to them, on the unit of
    the kernel that it serves. With `interface` they get the layout themselves, and their callers pack
    ([physical layouts](stripe.md#physical-layouts)). The data of constants is packed while compiling.

    `pad` gives the elements beyond the last block a value. Inputs have it by promise of the caller, other
    buffers get a block tagged `init` for them. Kernels then run over full blocks: constraints fall and ranges rise to
    a multiple of the block, where each point in addition contributes the identity or writes the pad into a hole.
    A remark names the element that forbids it. Tensors that meet in a kernel are padded before the kernel can gain.
    """

    pass_name: ClassVar[str] = "layout"
    group: ClassVar[PassGroup] = PassGroup.DATA
    example: ClassVar[PassExample] = PassExample("alloc_reqs=[tmp],block={0:4}")

    reqs: Reqs = ("all",)
    refs: tuple[str, ...] = Field(default=(), description="names of the buffers; all where empty")
    alloc_reqs: tuple[str, ...] = Field(default=(), description="tags that a buffer must have")
    order: tuple[int, ...] = Field(
        default=(), description="dimensions in the order in memory, outermost first; as they are where empty"
    )
    block: dict[int, int] = Field(default={}, description="dimension: elements per block")
    map: MapText = Field(
        default="",
        description="instead of both, an index map, `(n, h, w, c) -> (n, floor(c/16), h, w, c mod 16)`, or a named "
        "form of it, `NHWC -> NCHW16c`; a name alone, `NHWC8h8w32c`, has its capital letters as dimensions",
    )

    interface: bool = Field(
        default=False,
        description="tensors of the user get the layout themselves: their caller packs them, instead of a copy",
    )
    pad: bool | int | float | None = Field(
        default=None,
        description="the value of elements of a buffer of the entry that hold no logical one; undefined where absent",
    )
    allow_nonfinite: Annotated[bool, DependsOn("pad")] = Field(
        default=False,
        description="with pad: take 0 times any float as 0, although infinities and NaN make it NaN",
    )
    choose: bool = Field(
        default=False,
        description="instead of all these, choose the innermost dimension of all buffers, such that kernels and copies "
        "of user tensors take the fewest memory operations; with a pad also in blocks of a vector",
    )
    dots: Annotated[bool, DependsOn("choose")] = Field(
        default=False,
        description="with choose: vectors sum products of narrow integers (`widening`) along their reduction; kernels "
        "whose factors then lie along it get the tag `dots`",
    )
    copy_cost: Annotated[float, DependsOn("choose")] = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        description="with choose: memory operations for each element of the copy of a user tensor, of which a kernel "
        "does one for a vector",
    )
    tiles: str = Field(
        default="",
        description="instead of all these, blocks in which the elements of a tile lie in one piece: the blocks of main "
        "with this tag, which alone may use the buffer",
    )

    @property
    @override
    def changes_interface(self) -> bool:
        return self.interface

    @model_validator(mode="after")
    def _check_map(self) -> Self:
        """Raises ValueError for a map beside order or blocks."""
        if self.map and (self.order or self.block):
            raise ValueError("`map` stands instead of `order` and `block`")
        if self.choose and (self.map or self.order or self.block):
            raise ValueError("`choose` stands instead of `map`, `order` and `block`")
        if self.tiles and (self.map or self.order or self.block or self.choose):
            raise ValueError("`tiles` stands instead of `map`, `order`, `block` and `choose`")
        return self

    def run(self, program: Program, context: PassContext) -> Program:
        program = self._laid_out(program, context)
        return with_entry(program, rewrite_blocks(program.entry, with_dots)) if self.dots else program

    def _laid_out(self, program: Program, context: PassContext) -> Program:
        buffers = (ref.name for block in matching(program, self.reqs) for ref in block.allocs)
        context.unknown_names("refs", "buffer", self.refs, buffers)
        chosen = self._chosen(program, context) if self.choose else {}
        packings: dict[Path, dict[str, Packing]] = {}
        users: dict[str, Packing] = {}
        layouts: dict[str, PhysicalLayout] = {}
        for path, block in walk(program.entry):
            for ref in block.allocs if block.words.has_all(self.reqs) else ():
                if not self._wants(ref) or (self.choose and Buffer(path, ref.name) not in chosen):
                    continue
                if self.tiles:
                    index_map = tiled_map(program, path, ref, self.tiles)
                else:
                    index_map = chosen.get(Buffer(path, ref.name)) or self._map(ref)
                found = self._packed(program, path, ref, index_map)
                if isinstance(found, Refusal):
                    context.missed(ref.name, f"layout not changed: {found}")
                    continue
                packing, layout = found
                plain = Packing.of(IndexMap.blocked(range(ref.rank), {}), ref.sizes)
                if packing == plain and packing.sizes(ref.sizes) == ref.sizes:
                    continue
                if path == (0,):
                    layouts[ref.name] = layout
                if ref.role is Role.USER and not self.interface:
                    users[ref.name] = packing
                else:
                    packings.setdefault(path, {})[ref.name] = packing
                    context.applied(ref.name, _text(ref, packing))
        if not packings and not users:
            return program
        return self._rewritten(program, packings, users, layouts, context)

    def _rewritten(
        self,
        program: Program,
        packings: Mapping[Path, Mapping[str, Packing]],
        users: Mapping[str, Packing],
        layouts: Mapping[str, PhysicalLayout],
        context: PassContext,
    ) -> Program:
        """The program with buffers packed, for `users` with packed copies, and with their pads."""
        packed = packings.get((0,), {})
        constants: list[ConstantBuffer] = []
        for buffer in program.constants:
            if (how := packed.get(buffer.name)) is not None:
                pad = layouts[buffer.name].pad
                data = packed_data(buffer.data, buffer.sizes, buffer.dtype, how, pad)
                buffer = replace(buffer, sizes=how.sizes(buffer.sizes), data=data)
            constants.append(buffer)
        program = replace(program, constants=tuple(constants)) if packed else program
        # The copies of user tensors move the blocks of main, and with them the paths of nested allocations.
        entry, local = with_copies(with_entry(program, repacked(program.entry, packings)), users)
        for name, copy in local.items():
            context.applied(name, f"{_text(program.entry.ref(name), users[name])}, through {copy}")
        entry = repacked(entry, {(0,): {local[name]: how for name, how in users.items()}} if users else {})
        refs = tuple(
            replace(ref, layout=layouts[ref.name]) if ref.role is Role.USER and ref.name in packed else ref
            for ref in entry.refinements
        )
        program = with_entry(program, replace(entry, refinements=refs))
        if all(layout.pad is None for layout in layouts.values()):
            return program
        owned = {local.get(name, name): layouts[name] for name in (*packed, *users)}
        owned |= {ref.name: ref.layout for ref in refs if ref.layout is not None}
        known = {
            name: Holes(holes(layout.map, layout.sizes, entry.ref(name).sizes), layout.pad)
            for name, layout in owned.items()
        }
        inputs = {ref.name for ref in program.inputs}
        owed = [n for n in owned if n not in inputs and program.entry.ref(n).role is not Role.CONSTANT]
        return with_pads(program, known, owed, context, allow_nonfinite=self.allow_nonfinite)

    def _wants(self, ref: Refinement) -> bool:
        return ref.words.has_all(self.alloc_reqs) and (not self.refs or ref.name in self.refs)

    def _chosen(self, program: Program, context: PassContext) -> dict[Buffer, IndexMap]:
        """The maps of the buffers that gain by another layout than they have."""
        width = context.need_hardware("layout{choose}").exec_unit_with("vectors").vector_bytes or 1
        found = accesses(program.entry)
        tensors: dict[Buffer, FreeTensor] = {}
        for path, block in walk(program.entry):
            for ref in block.allocs if block.words.has_all(self.reqs) else ():
                free = (
                    self._wants(ref)
                    and ref.rank > 1
                    and not isinstance(self._packed(program, path, ref, self._map(ref)), Refusal)
                )
                if free:
                    # a dimension of one element may lie anywhere
                    wide = [dim for dim in memory_order(ref) if ref.sizes[dim] > 1]
                    present = wide[-1] if wide else ref.rank - 1
                    dims = [present, *(d for d in range(ref.rank) if d != present and ref.sizes[d] > 1)]
                    labels: list[Label] = [(dim, 1) for dim in dims]
                    lanes = max(1, width // ref.dtype.bytes)
                    if self.pad is not None and path == (0,):
                        labels += [(dim, lanes) for dim in dims if ref.sizes[dim] % lanes]
                    cost = self.copy_cost if ref.role is Role.USER and not self.interface else 0.0
                    tensors[Buffer(path, ref.name)] = FreeTensor(ref, tuple(labels), cost)
        maps: dict[Buffer, IndexMap] = {}
        for buffer, (innermost, lanes) in choose(tensors, found, width, dots=self.dots).items():
            ref, present = tensors[buffer].ref, tensors[buffer].labels[0]
            if (innermost, lanes) != present:
                order = (*(dim for dim in memory_order(ref) if dim != innermost), innermost)
                maps[buffer] = IndexMap.blocked(order, {innermost: lanes} if lanes > 1 else {})
        return maps

    def _map(self, ref: Refinement) -> IndexMap | Refusal:
        """The map that the options describe."""
        if self.map:
            return read_index_map(self.map)
        order = self.order or tuple(range(ref.rank))
        blocks = {dim: size for dim, size in self.block.items() if size > 1}
        if sorted(order) != list(range(ref.rank)):
            return Refusal(f"it has {ref.rank} dimensions, the order names {', '.join(map(str, order))}")
        if any(not 0 <= dim < ref.rank for dim in blocks):
            return Refusal(f"it has {ref.rank} dimensions, the blocks name {', '.join(map(str, blocks))}")
        return IndexMap.blocked(order, blocks)

    def _packed(
        self, program: Program, path: Path, ref: Refinement, index_map: IndexMap | Refusal
    ) -> tuple[Packing, PhysicalLayout] | Refusal:
        """A buffer by a map: how its dimensions follow, and the map into these, after the layout that it has, with its
        pad."""
        if isinstance(index_map, Refusal):
            return index_map
        if ref.bank_dim is not None or ref.offset is not None:
            return Refusal("it has its place in a memory already")
        packing = packable(block_at(program, path), ref, index_map)
        if isinstance(packing, Refusal):
            return packing
        if ref.role is Role.USER and not self.interface and not _is_seen_whole(program, ref):
            return Refusal("main does not see all of it, once and by one view")
        found = packing.map(index_map, ref.sizes)
        pad = None
        if ref.layout is not None:
            found, pad = ref.layout.map.then(found), ref.layout.pad
        if self.pad is not None:
            if path != (0,) or not _is_seen_whole(program, ref):
                return Refusal("pads are for buffers of the entry that main sees whole, once and by one view")
            value = float(self.pad) if ref.dtype.is_float else self.pad
            if (fault := pad_fault(value, ref.dtype)) is not None:
                return Refusal(fault)
            if pad is not None and value_key(pad) != value_key(value):
                return Refusal(f"its holes hold {pad} already")
            pad = value
        layout = PhysicalLayout(found, ref.logical_sizes, pad)
        if ref.role is Role.USER and self.interface:
            fault = layout_fault(layout, packing.sizes(ref.sizes), ref.dtype)
            if fault is not None:
                return Refusal(f"no tensor of the user may have it: {fault}")
        elif ref.has_undefined_holes:
            return Refusal("a copy would read the holes of the layout that it has, which are undefined")
        return packing, layout


def _is_seen_whole(program: Program, ref: Refinement) -> bool:
    """Whether main runs once, and sees all of a buffer by one view."""
    if program.main.points > 1:
        return False
    views = [view for view in program.main.refinements if view.source == ref.name]
    whole = [view for view in views if view.sizes == ref.sizes and view.access == ref.access]
    return len(views) == len(whole) == 1


def _text(ref: Refinement, packing: Packing) -> str:
    physical = packing.physical(ref.sizes)
    old, new = ("x".join(map(str, sizes)) for sizes in (ref.sizes, physical))
    empty = prod(physical) - ref.elements
    return f"{old} stored as {new}" + (f", {empty * ref.dtype.bytes} bytes empty" if empty else "")
