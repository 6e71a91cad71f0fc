"""The pass `dce`."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from stripe.ir import (
    Block,
    Direction,
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
from stripe.rewrite.prune import drop_constants, prune_refinements, user_tensors, with_inputs


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

    A statement that depended on a dropped one depends on what that depended on.
    """

    pass_name: ClassVar[str] = "dce"
    group: ClassVar[PassGroup] = PassGroup.CLEANING
    example: ClassVar[PassExample] = PassExample(programs=("dce/unused.stripe",))
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("program",)

    def run(self, program: Program, context: PassContext) -> Program:
        user = user_tensors(program)

        def visit(block: Block) -> Block:
            if block.words.has_all(self.reqs):
                live = {
                    ref.name
                    for ref in block.refinements
                    if ref.dir is not Direction.NONE or ref.role is Role.USER
                }
                # inner blocks first, as an outer view may lose its last use
                rest = with_directions(_eliminate(block, frozenset(live), context))
                return rewrite_blocks(rest, partial(prune_refinements, user=user))
            return map_statements(block, lambda s: visit(s) if isinstance(s, Block) else s)

        return drop_constants(with_entry(program, with_inputs(visit(program.entry), program)))


def _eliminate(block: Block, live_out: frozenset[str], context: PassContext) -> Block:
    """Drops the statements that do not reach the refinements `live_out` of `block`: backwards over its statements.

    Points of a block do not pass values to each other, so that one scan suffices.
    """
    live = set(live_out)
    live_scalars: set[str] = set()
    kept: list[int] = []
    statements = list(block.statements)
    for number in reversed(range(len(statements))):
        statement = statements[number]
        defined = scalar_defined(statement)
        main = isinstance(statement, Block) and statement.is_main  # every program has one
        if not (
            main or live & set(writes_of(statement)) or (defined is not None and defined in live_scalars)
        ):
            context.applied(block, f"dropped {print_statement(statement)}")
            continue
        if isinstance(statement, Block):
            inner_live = frozenset(
                r.name for r in statement.refinements if not r.is_alloc and r.source in live
            )
            statement = with_directions(_eliminate(statement, inner_live, context))
            statements[number] = statement
        kept.append(number)
        live |= set(reads_of(statement))
        live_scalars |= set(scalars_used(statement))
    return keep_statements(with_statements(block, statements), reversed(kept))
