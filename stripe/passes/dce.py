"""The pass `dce`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import ClassVar, TypeAlias

from stripe.ir import (
    Block,
    Program,
    Role,
    keep_statements,
    map_statements,
    print_statement,
    reads_of,
    rewrite_blocks,
    scalar_defined,
    scalars_used,
    with_directions,
    with_entry,
    with_statements,
    writes_of,
)
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.rewrite.prune import drop_constants, prune_refinements, user_tensors, with_interface


class DeadCodeElimination(Pass):
    """Drops statements whose results reach no output, and views and buffers that nothing uses afterwards.

        #tmp none new T[0] (8:1)
        0: block [x:8] (                         0: block [x:8] (
            in I[x]                                  in I[x]
            out T[x]                      =>         out O[x]
        ) { … }                                  ) { … }
        1: block [x:8] (
            in I[x]
            out O[x]
        ) { … }

    A statement that depended on a dropped one takes over its dependences."""

    pass_name: ClassVar[str] = "dce"
    group: ClassVar[PassGroup] = PassGroup.CLEANING
    example: ClassVar[PassExample] = PassExample(programs=("dce/unused.stripe",))
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("program",)

    def run(self, program: Program, context: PassContext) -> Program:
        user = user_tensors(program.entry)

        def visit(block: Block) -> Block:
            if block.words.has_all(self.reqs):
                # inner blocks first, as an outer view may lose its last use
                around = {ref.source: (0, ref.source) for ref in block.refinements if not ref.is_alloc}
                kept = {(1, ref.name) for ref in block.allocs if ref.role is Role.USER}
                rest = with_directions(_eliminate(block, around, {*around.values(), *kept}, context))
                return rewrite_blocks(rest, partial(prune_refinements, user=user))
            return map_statements(block, lambda s: visit(s) if isinstance(s, Block) else s)

        return drop_constants(with_entry(program, with_interface(visit(program.entry), program)))


def _eliminate(
    block: Block,
    around: Mapping[str, _Buffer],
    live: Collection[_Buffer],
    context: PassContext,
    depth: int = 1,
) -> Block:
    """Drops the statements that do not reach the buffers `live`: backwards over the statements of `block`. `around` has
    the buffers of the names outside, of which several may be views of one.

    Points of a block do not pass values to each other, so that one scan suffices.
    """
    buffers = {
        ref.name: (depth, ref.name) if ref.is_alloc else around[ref.source] for ref in block.refinements
    }
    live = set(live)
    live_scalars: set[str] = set()
    kept: list[int] = []
    statements = list(block.statements)
    for number in reversed(range(len(statements))):
        statement = statements[number]
        defined = scalar_defined(statement)
        main = isinstance(statement, Block) and statement.is_main  # every program has one
        if not (
            main
            or any(buffers[name] in live for name in writes_of(statement))
            or (defined is not None and defined in live_scalars)
        ):
            context.applied(block, f"dropped {print_statement(statement)}")
            continue
        if isinstance(statement, Block):
            statement = with_directions(_eliminate(statement, buffers, live, context, depth + 1))
            statements[number] = statement
        kept.append(number)
        live.update(buffers[name] for name in reads_of(statement))
        live_scalars |= set(scalars_used(statement))
    return keep_statements(with_statements(block, statements), reversed(kept))


_Buffer: TypeAlias = tuple[int, str]
"""Depth and name of an allocation."""
