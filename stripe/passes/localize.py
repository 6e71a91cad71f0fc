"""The pass `localize`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Affine,
    Block,
    Dim,
    Direction,
    Program,
    Refinement,
    map_statements,
    map_views,
    row_major,
    uses_by_name,
    with_entry,
    with_statement,
    with_statements,
)
from stripe.passes.base import Pass, PassContext, Reqs


class Localize(Pass):
    """Moves a temporary that one block alone uses into that block, with the size of what one point of it touches.

        block [] (                                     block [] (
            none new@…<[0]> T[0] fp32(100:1)           ) {
        ) {                                              0: block [x:100] (
          0: block [x:100] (                                 none new@…<[0]> T[0] fp32(1:1)
              inout<[0]> T[x]:assign fp32(1:1)     =>    ) {
          ) {                                              0: block [] ( out<[0]> T[0]:add … ) { … }
            0: block [] ( out<[0]> T[0]:add … ) { … }      1: block [] ( in<[0]> T[0] … ) { … }
            1: block [] ( in<[0]> T[0] … ) { … }
          }

    Legal because points of a block do not race: what one point writes no other point reads, and contributions that
    several points merge into one element are read by a later statement alone, which would be a second user.
    """

    pass_name: ClassVar[str] = "localize"

    reqs: Reqs = ("main",)
    ref_reqs: tuple[str, ...] = Field(default=(), description="tags that a buffer must have")

    def run(self, program: Program, context: PassContext) -> Program:
        entry = _sink_temporaries(program.entry, self.reqs)

        def visit(block: Block) -> Block:
            if block.tags.has_all(self.reqs):
                return localize_block(block, self.ref_reqs, context)
            return map_statements(block, lambda s: visit(s) if isinstance(s, Block) else s)

        found = visit(entry)
        return program if found == program.entry else with_entry(program, found)


def _sink_temporaries(entry: Block, reqs: tuple[str, ...]) -> Block:
    """Moves temporaries of the entry that one matching block alone uses into it, as they are."""
    uses = uses_by_name(entry)
    for ref in entry.allocs:
        if "user" in ref.tags or "const" in ref.tags:
            continue
        users = uses.get(ref.name, ())
        child = entry.statements[users[0]] if len(users) == 1 else None
        if isinstance(child, Block) and child.tags.has_all(reqs) and _view_count(child, ref.name) == 1:
            entry = _move_into(entry, ref, users[0])
    return entry


def localize_block(
    block: Block, ref_reqs: tuple[str, ...], context: PassContext, arrived: frozenset[str] = frozenset()
) -> Block:
    """Moves each buffer of `block` that one child alone uses into the child, and so on inside.

    Of the buffers in `arrived`, which came from outside, it is no news that they go no further.
    """
    uses = uses_by_name(block)
    moved: dict[int, set[str]] = {}
    for ref in block.allocs:
        if ref.tags.has_any(("user", "const")) or not ref.tags.has_all(ref_reqs):
            continue
        users = uses.get(ref.name, ())
        if len(users) != 1:
            if ref.name not in arrived:
                context.missed(block, f"{ref.name} is not localized: {len(users)} statements use it")
            continue
        child = block.statements[users[0]]
        if not isinstance(child, Block) or _view_count(child, ref.name) != 1:
            continue
        moved.setdefault(users[0], set()).add(next(r.name for r in child.refinements if r.source == ref.name))
        block = _move_into(block, ref, users[0])
        context.applied(
            child, f"{ref.name} localized: {ref.bytes} bytes become {_bytes_inside(block, users[0], ref)}"
        )
    statements = [
        localize_block(s, ref_reqs, context, frozenset(moved.get(number, ()))) if isinstance(s, Block) else s
        for number, s in enumerate(block.statements)
    ]
    return with_statements(block, statements)


def _view_count(child: Block, source: str) -> int:
    return sum(1 for ref in child.refinements if ref.source == source)


def _bytes_inside(block: Block, number: int, buffer: Refinement) -> str:
    child = block.statements[number]
    assert isinstance(child, Block)
    sizes = [ref.bytes for ref in child.allocs if ref.name == buffer.name] or [
        ref.bytes for ref in child.allocs
    ][-1:]
    return f"{sizes[0]} in each of {child.points} points"


def _move_into(block: Block, buffer: Refinement, number: int) -> Block:
    """Replaces the only view of `buffer`, in statement `number`, by an allocation there."""
    child = block.statements[number]
    assert isinstance(child, Block)
    view = next(ref for ref in child.refinements if ref.source == buffer.name)
    strides = row_major(view.sizes) if child.points > 1 or view.sizes != buffer.sizes else view.dims
    zeros = (Affine(),) * view.rank

    def localized(ref: Refinement) -> Refinement:
        dims = tuple(Dim(dim.size, new.stride) for dim, new in zip(ref.dims, strides, strict=True))
        return replace(ref, dims=dims)

    child = map_views(child, view.name, localized)
    local = replace(
        buffer,
        name=view.name,
        dims=strides,
        access=zeros,
        dir=Direction.NONE,
        source="",
        agg=view.agg,
        offset=0,
        tags=buffer.tags.remove("placed"),  # its address was that of the whole buffer
    )
    child = replace(
        child, refinements=tuple(local if ref.name == view.name else ref for ref in child.refinements)
    )
    kept = tuple(ref for ref in block.refinements if ref.name != buffer.name)
    return with_statement(replace(block, refinements=kept), number, child)
