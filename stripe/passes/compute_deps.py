"""The pass `compute_deps`."""

from __future__ import annotations

from typing import ClassVar

from stripe.ir import Block, Nest, Stage, has_addresses
from stripe.passes.base import NestPass, PassContext, PassGroup, Refusal, Reqs
from stripe.poly import with_exact_deps


class ComputeDeps(NestPass):
    """Sets on each direct statement of a matching block the earlier statements that it must wait for.

        0: block [x:4] ( out T[x] … )                  0: block [x:4] ( out T[x] … )
        1: block [x:4] ( out T[4 + x] … )        =>    1: block [x:4] ( out T[4 + x] … )
        2: block [x:4] ( in T[x] … )                   2[0]: block [x:4] ( in T[x] … )

    Flow, anti and output dependences on exact regions: two statements that touch different elements are independent,
    two merges into one element are not, as each reads what it writes. What follows from other dependences is left out.
    Where buffers have addresses the dependences that are there stay, and those of a schedule alone: some of them order
    buffers that share bytes.
    """

    pass_name: ClassVar[str] = "compute_deps"
    group: ClassVar[PassGroup] = PassGroup.PLACEMENT
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("main",)

    refused: ClassVar[str] = "left as it is"

    def rewrite(self, nest: Nest, context: PassContext) -> Block | Refusal:
        if nest.block.stage >= Stage.SCHEDULED:
            return Refusal("its schedule has set the dependences, also of buffers that share bytes")
        block = with_exact_deps(nest, keep=has_addresses(nest.blocks[0]))
        count = sum(len(statement.deps) for statement in block.statements)
        context.applied(block, f"{count} dependences between {len(block.statements)} statements")
        return block
