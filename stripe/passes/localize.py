"""The pass `localize`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from stripe.ir import (
    Affine,
    Block,
    Direction,
    Program,
    Refinement,
    map_statements,
    map_views,
    row_major,
    uses_by_name,
    with_entry,
    with_statements,
)
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs


class Localize(Pass):
    """Moves a temporary that one block alone uses into that block, shrunk to the footprint of one of its points.

        0: block [x:100] (                             0: block [x:100] (
            in I[x]                                        in I[x]
            inout T[x]                                     none new T[0]
            out O[x]                                       out O[x]
        ) {                                            ) {
          0: block [] (                                  0: block [] (
              in I[0]                           =>           in I[0]
              out T[0]:add                                   out T[0]:add
          ) { … }                                        ) { … }
          1: block [] (                                  1: block [] (
              in T[0]                                        in T[0]
              out O[0]                                       out O[0]
          ) { … }                                        ) { … }
        }                                              }

    Legal because points of a block do not race: no point reads elements that another one writes, and contributions that
    several points merge into one element are read by a later statement alone, which would be a second user.
    """

    pass_name: ClassVar[str] = "localize"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(after=("fusion",))

    reqs: Reqs = ("main",)

    def run(self, program: Program, context: PassContext) -> Program:
        # temporaries of the entry that one matching block alone uses go into it, as they are
        sinking: dict[int, list[_Localized]] = {}
        views = _only_views(program.entry)
        for ref in program.entry.allocs:
            if ref.name in views and not ref.is_kept:
                number, child, view = views[ref.name]
                if child.words.has_all(self.reqs):
                    sinking.setdefault(number, []).append(_Localized(ref, view, _local(ref, view, child)))
        entry = _moved(program.entry, sinking)

        def visit(block: Block) -> Block:
            if block.words.has_all(self.reqs):
                return localize_block(block, context)
            return map_statements(block, lambda s: visit(s) if isinstance(s, Block) else s)

        found = visit(entry)
        return program if found == program.entry else with_entry(program, found)


def localize_block(block: Block, context: PassContext, arrived: frozenset[str] = frozenset()) -> Block:
    """Moves each buffer of `block` that one child alone uses into the child, and so on inside.

    Buffers in `arrived` came from outside: that they go no further is no remark.
    """
    uses, views = uses_by_name(block), _only_views(block)
    moves: dict[int, list[_Localized]] = {}
    for ref in block.allocs:
        if ref.is_kept:
            continue
        users = len(uses.get(ref.name, ()))
        if users != 1 and ref.name not in arrived:
            context.missed(block, f"{ref.name} is not localized: {users} statements use it")
        if ref.name not in views:
            continue
        number, child, view = views[ref.name]
        move = _Localized(ref, view, _local(ref, view, child))
        moves.setdefault(number, []).append(move)
        become = f"{move.local.bytes} in each of {child.points} points"
        context.applied(child, f"{ref.name} localized: {ref.bytes} bytes become {become}")
    block = _moved(block, moves)
    names = {number: frozenset(move.view.name for move in inside) for number, inside in moves.items()}
    return with_statements(
        block,
        [
            localize_block(s, context, names.get(number, frozenset())) if isinstance(s, Block) else s
            for number, s in enumerate(block.statements)
        ],
    )


def _only_views(block: Block) -> dict[str, tuple[int, Block, Refinement]]:
    """For each refinement whose only user is a block with a single view of it: the number of the statement, the block
    and the view.
    """
    uses = uses_by_name(block)
    views: dict[str, list[tuple[int, Block, Refinement]]] = {}
    for number, statement in enumerate(block.statements):
        if not isinstance(statement, Block):
            continue
        for ref in statement.refinements:
            if len(uses.get(ref.source, ())) == 1:
                views.setdefault(ref.source, []).append((number, statement, ref))
    return {name: found[0] for name, found in views.items() if len(found) == 1}


@dataclass(frozen=True, slots=True)
class _Localized:
    """A buffer, its only view in a block inside, and the allocation that takes the place of the view."""

    buffer: Refinement
    view: Refinement
    local: Refinement


def _local(buffer: Refinement, view: Refinement, child: Block) -> Refinement:
    """The allocation in `child` that replaces `view`: packed, unless a single point sees the whole buffer."""
    whole = child.points == 1 and view.sizes == buffer.sizes
    return replace(
        buffer,
        name=view.name,
        dims=view.dims if whole else row_major(view.sizes),
        access=(Affine(),) * view.rank,
        dir=Direction.NONE,
        source="",
        agg=view.agg,
        # a number over indices of the block around has other names in the child
        location=view.location if buffer.location.names() else buffer.location,
        offset=None,  # address and copies were those of the whole buffer
        copies=1,
        pitch=None,
    )


def _moved(block: Block, moves: Mapping[int, Sequence[_Localized]]) -> Block:
    """`block` with buffers moved into the statements of these numbers."""
    if not moves:
        return block
    gone = {move.buffer.name for inside in moves.values() for move in inside}
    statements = list(block.statements)
    for number, inside in moves.items():
        child = statements[number]
        assert isinstance(child, Block)
        local = {move.view.name: move.local for move in inside}
        child = map_views(
            child, {name: lambda ref, to=to: ref.with_strides(to.strides) for name, to in local.items()}
        )
        statements[number] = replace(
            child, refinements=tuple(local.get(ref.name, ref) for ref in child.refinements)
        )
    kept = tuple(ref for ref in block.refinements if ref.name not in gone)
    return with_statements(replace(block, refinements=kept), statements)
