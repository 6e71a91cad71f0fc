"""The pass `layout`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Affine,
    Around,
    Block,
    Index,
    Nest,
    Path,
    Program,
    Refinement,
    Statement,
    Tags,
    reads_of,
    replace_at,
    retarget,
    surround,
    walk,
    with_entry,
    with_statements,
    writes_of,
)
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs, matching
from stripe.poly import statement_deps
from stripe.rewrite.copy import Element, beside, copy_block, names_in, temporary, with_temporaries
from stripe.rewrite.pack import Packing, packed_data, packed_elements, repacked, why_unpackable


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
    elements stay undefined and are never read. Tensors of the user keep their layout: the program works on a
    temporary, which a block tagged `layout_copy` copies in from them or out to them, on the unit of the kernel that it
    serves. The data of constants is packed while compiling.
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

    def run(self, program: Program, context: PassContext) -> Program:
        buffers = (ref.name for block in matching(program, self.reqs) for ref in block.allocs)
        context.unknown_names("refs", "buffer", self.refs, buffers)
        packings: dict[Path, dict[str, Packing]] = {}
        users: dict[str, Packing] = {}
        for path, block in walk(program.entry):
            for ref in block.allocs:
                packing = self._packing(block, ref, context) if self._wants(block, ref) else None
                if packing is None:
                    continue
                if "user" not in ref.tags:
                    packings.setdefault(path, {})[ref.name] = packing
                    context.applied(ref.name, _text(ref, packing))
                elif _is_whole(program, ref):
                    users[ref.name] = packing
                else:
                    context.missed(ref.name, "layout not changed: main does not see all of it by one view")
        if not packings and not users:
            return program
        fixed = packings.get((0,), {})
        program = _repack_constants(program, fixed)
        entry, made = self._with_copies(program, users, context)
        return with_entry(program, repacked(entry, {**packings, (0,): {**fixed, **made}}))

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
        return Packing.blocked(order, blocks)

    def _with_copies(
        self, program: Program, users: Mapping[str, Packing], context: PassContext
    ) -> tuple[Block, dict[str, Packing]]:
        """The entry with temporaries in the place of tensors of the user, not packed yet, and how to pack them."""
        entry = program.entry
        taken = names_in(entry)
        locals_: dict[str, Refinement] = {}
        for ref in entry.allocs:
            if ref.name in users:
                locals_[ref.name] = temporary(ref, "packed", ref.sizes, taken)
                context.applied(ref.name, f"{_text(ref, users[ref.name])}, through {locals_[ref.name].name}")
        if not locals_:
            return entry, {}
        entry = with_temporaries(entry, list(locals_.values()))
        views = {view: locals_[view.source] for view in program.main.refinements if view.source in locals_}
        (number,) = (n for n, s in enumerate(entry.statements) if isinstance(s, Block) and "main" in s.tags)
        entry = replace_at(entry, (0, number), lambda main: _with_deps(self._copied(main, views)))
        return entry, {locals_[name].name: packing for name, packing in users.items()}

    def _copied(self, main: Block, views: Mapping[Refinement, Refinement]) -> Block:
        """Main with all its work on `views` done on temporaries, and the copies in and out."""
        renamed = {view.name: local.name for view, local in views.items()}
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for number, statement in enumerate(main.statements):
            for name in (*reads_of(statement), *writes_of(statement)):
                first.setdefault(name, number)
            last.update(dict.fromkeys(writes_of(statement), number))
        before: dict[int, list[Block]] = {}
        after: dict[int, list[Block]] = {}
        for view, local in views.items():
            if view.dir.reads and view.name in first:
                copy = self._copy("pack", view, local, main.statements[first[view.name]])
                before.setdefault(first[view.name], []).append(copy)
            if view.name in last:
                copy = self._copy("unpack", view, local, main.statements[last[view.name]])
                after.setdefault(last[view.name], []).append(copy)
        around = {
            number: Around(tuple(before.get(number, ())), tuple(after.get(number, ())))
            for number in sorted({*before, *after})
        }
        moved = with_statements(main, [retarget(statement, renamed) for statement in main.statements])
        return surround(moved, around)

    def _copy(self, verb: str, view: Refinement, local: Refinement, user: Statement) -> Block:
        """The block that copies a tensor in or out for `user`; the temporary has the same logical shape until it is
        packed."""
        indices = [Index(f"d{dim}", size) for dim, size in enumerate(view.sizes)]
        element = tuple(Affine.var(index.name) for index in indices)
        source, target = (view, local) if verb == "pack" else (local, view)
        return copy_block(
            f"{verb}_{view.name}",
            indices,
            Element(source, element),
            Element(target, element),
            Tags.of("kernel", "layout_copy"),
            location=beside(user),
        )


def _is_whole(program: Program, ref: Refinement) -> bool:
    """Whether main sees a buffer by one view, which is all of it."""
    views = [view for view in program.main.refinements if view.source == ref.name]
    zeros = (Affine(),) * ref.rank
    return len(views) == 1 and views[0].sizes == ref.sizes and views[0].access == zeros


def _with_deps(main: Block) -> Block:
    """Main with its dependences found again, when it had any: every user of a copy waits for it."""
    if not any(statement.deps for statement in main.statements):
        return main
    deps = statement_deps(Nest.root(main))
    return with_statements(main, [replace(s, deps=d) for s, d in zip(main.statements, deps, strict=True)])


def _repack_constants(program: Program, packings: Mapping[str, Packing]) -> Program:
    """The program with the data of constants in their new order."""
    if not packings:
        return program
    buffers = tuple(
        replace(
            buffer,
            sizes=how.sizes(buffer.sizes),
            data=packed_data(buffer.data, buffer.sizes, buffer.dtype.bytes, how),
        )
        if (how := packings.get(buffer.name)) is not None
        else buffer
        for buffer in program.constants
    )
    return replace(program, constants=buffers)


def _text(ref: Refinement, packing: Packing) -> str:
    old, new = ("x".join(map(str, sizes)) for sizes in (ref.sizes, packing.sizes(ref.sizes)))
    empty = packed_elements(ref.sizes, packing) - ref.elements
    return f"{old} stored as {new}" + (f", {empty * ref.dtype.bytes} bytes empty" if empty else "")
