"""The pass `layout`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Affine,
    Block,
    Index,
    Location,
    Program,
    Refinement,
    Tags,
    reads_of,
    retarget,
    walk,
    with_entry,
    with_statements,
    writes_of,
)
from stripe.passes.base import LocationSpec, Pass, PassContext, Reqs, TagSet
from stripe.passes.copies import Around, Place, copy_block, surround, temporary, with_temporary
from stripe.passes.packed import Packing, packed_data, packed_elements, repacked, why_unpackable
from stripe.passes.visibility import replace_at
from stripe.poly import Nest, statement_deps


class Layout(Pass):
    """Stores buffers in another order of dimensions, or in blocks: NCHW as NHWC, or as NCHW16c.

    `{ "alloc_reqs": ["tmp"], "block": { "1": 16 } }`:

        #tmp none new@…<[0]> T[0, 0, 0] fp32(1:960, 20:48, 48:1)
        block [c:20, x:48] ( out T[0, c, x] (1:960, 1:48, 1:1) …
        =>
        #tmp none new@…<[0]> T[0, 0, 0, 0] fp32(1:1536, 2:768, 48:16, 16:1)
        block [c:20, x:48] ( out T[0, floor(c/16), x, c mod 16] (1:1536, 1:768, 1:16, 1:1) …

    `order` names the dimensions as they shall lie in memory, the outermost first; each dimension of `block` is cut
    into blocks of so many elements, which become the innermost dimensions. Where the last block is not full, its other
    elements stay undefined and are never read. Tensors of the user keep their layout: what the program works on is
    a temporary that a block copies in from them or out to them. The data of constants is packed while compiling.
    """

    pass_name: ClassVar[str] = "layout"

    reqs: Reqs = ("all",)
    refs: tuple[str, ...] = Field(default=(), description="names of the buffers; all where empty")
    alloc_reqs: tuple[str, ...] = Field(default=(), description="tags that a buffer must have")
    order: tuple[int, ...] = Field(
        default=(), description="dimensions in the order in memory, outermost first; as they are where empty"
    )
    block: dict[int, int] = Field(default={}, description="dimension: elements per block")
    copy_set: TagSet = Field(
        default=("kernel", "layout_copy"), description="tags of the blocks that copy tensors of the user"
    )
    copy_loc: LocationSpec | None = Field(default=None, description="unit that runs these blocks")

    def run(self, program: Program, context: PassContext) -> Program:
        locals_: set[str] = set()
        for ref in program.entry.allocs:
            if "user" in ref.tags and self._wants(program.entry, ref):
                program, name = self._user_tensor(program, ref, context)
                locals_.add(name)
        entry = program.entry
        for path, block in walk(program.entry):
            for ref in block.allocs:
                fixed = "user" in ref.tags or (len(path) == 1 and ref.name in locals_)
                if fixed or not self._wants(block, ref):
                    continue
                packing = self._packing(block, ref, context)
                if packing is None:
                    continue
                entry = replace_at(
                    entry, path, lambda outer, name=ref.name, how=packing: repacked(outer, name, how)
                )
                program = _repack_constant(program, ref, packing)
                context.applied(ref.name, _text(ref, packing))
        return with_entry(program, entry)

    def _wants(self, block: Block, ref: Refinement) -> bool:
        return (
            block.tags.has_all(self.reqs)
            and ref.tags.has_all(self.alloc_reqs)
            and (not self.refs or ref.name in self.refs)
        )

    def _packing(self, block: Block, ref: Refinement, context: PassContext) -> Packing | None:
        """How to pack a buffer; None, with a remark, where that does not go or would change nothing."""
        order = self.order or tuple(range(ref.rank))
        blocks = tuple((dim, size) for dim, size in self.block.items() if size > 1)
        reason = why_unpackable(block, ref.name)
        if sorted(order) != list(range(ref.rank)):
            reason = f"it has {ref.rank} dimensions, the order names {', '.join(map(str, order))}"
        elif any(not 0 <= dim < ref.rank for dim, _ in blocks):
            reason = f"it has {ref.rank} dimensions, the blocks name {', '.join(str(d) for d, _ in blocks)}"
        elif ref.bank_dim is not None or "placed" in ref.tags:
            reason = "it has its place in a memory already"
        if reason:
            context.missed(ref.name, f"layout not changed: {reason}")
            return None
        if not blocks and order == tuple(range(ref.rank)):
            return None
        return Packing(order, blocks)

    def _user_tensor(self, program: Program, ref: Refinement, context: PassContext) -> tuple[Program, str]:
        """Moves the work on a tensor of the user into a packed temporary, whose name comes too."""
        packing = self._packing(program.entry, ref, context)
        if packing is None:
            return program, ""
        entry = program.entry
        views = [view for view in program.main.refinements if view.source == ref.name]
        whole = len(views) == 1 and views[0].sizes == ref.sizes
        if not whole or any(affine != Affine() for affine in views[0].access):
            context.missed(ref.name, "layout not changed: main does not see all of it by one view")
            return program, ""
        (view,) = views
        local = temporary(entry, replace(ref, offset=0), "packed", ref.sizes)
        entry = with_temporary(entry, local)
        (number,) = (n for n, s in enumerate(entry.statements) if isinstance(s, Block) and "main" in s.tags)
        entry = replace_at(entry, (0, number), lambda main: self._copied(main, view, local))
        entry = replace_at(entry, (0, number), _with_deps)
        entry = repacked(entry, local.name, packing)
        context.applied(ref.name, f"{_text(ref, packing)}, through {local.name}")
        return with_entry(program, entry), local.name

    def _copied(self, main: Block, view: Refinement, local: Refinement) -> Block:
        """Main with all its work on `view` done on `local`, and the copies in and out."""
        users = [n for n, s in enumerate(main.statements) if view.name in (*reads_of(s), *writes_of(s))]
        writers = [n for n in users if view.name in writes_of(main.statements[n])]
        moved = with_statements(main, [retarget(s, {view.name: local.name}) for s in main.statements])
        indices = [Index(f"d{dim}", size) for dim, size in enumerate(view.sizes)]
        element = tuple(Affine.var(index.name) for index in indices)
        far, near = Place(view, element), Place(main.ref(local.name), element)
        location = self.copy_loc.location() if self.copy_loc else Location()
        tags = Tags.of(*self.copy_set)
        around: dict[int, Around] = {}
        if view.dir.reads and users:
            load = copy_block(f"pack_{view.name}", indices, far, near, tags, location=location)
            around[users[0]] = Around(before=(load,))
        if writers:
            store = copy_block(f"unpack_{view.name}", indices, near, far, tags, location=location)
            before = around.get(writers[-1], Around()).before
            around[writers[-1]] = Around(before, (store,))
        return surround(moved, around)


def _with_deps(main: Block) -> Block:
    """Main with its dependences found again, when it had any: every user of a copy waits for it."""
    if not any(statement.deps for statement in main.statements):
        return main
    deps = statement_deps(Nest.root(main))
    return with_statements(main, [replace(s, deps=d) for s, d in zip(main.statements, deps, strict=True)])


def _repack_constant(program: Program, ref: Refinement, packing: Packing) -> Program:
    """The program with the data of a constant in its new order."""
    buffers = tuple(
        replace(
            buffer,
            sizes=packing.sizes(buffer.sizes),
            data=packed_data(buffer.data, buffer.sizes, buffer.dtype.bytes, packing),
        )
        if buffer.name == ref.name and "const" in ref.tags
        else buffer
        for buffer in program.constants
    )
    return replace(program, constants=buffers)


def _text(ref: Refinement, packing: Packing) -> str:
    old, new = ("x".join(map(str, sizes)) for sizes in (ref.sizes, packing.sizes(ref.sizes)))
    empty = packed_elements(ref.sizes, packing) - ref.elements
    return f"{old} stored as {new}" + (f", {empty * ref.dtype.bytes} bytes empty" if empty else "")
