"""The pass `reduce_constraints`."""

from __future__ import annotations

from typing import ClassVar

from stripe.ir import Block, Nest, Program
from stripe.ir.frozen import replace
from stripe.passes.base import TILES, NestPass, PassContext, PassExample, PassGroup, Reqs
from stripe.rewrite.constraints import reduced_block
from stripe.rewrite.copy import with_beginnings
from stripe.rewrite.nests import rewrite_below


class ReduceConstraints(NestPass):
    """Drops constraints that others imply, shrinks index ranges to the points that there are, and drops empty blocks.

        block [x:10] (                             block [x:7] (
            -2 + x >= 0                     =>         in<[0]> I[2 + x] …
            8 - x >= 0
            in<[0]> I[x] …

    Exact: by integer sets under all that the blocks outside imply. Floors and remainders that are constant
    there vanish.
    """

    pass_name: ClassVar[str] = "reduce_constraints"
    group: ClassVar[PassGroup] = PassGroup.CLEANING
    example: ClassVar[PassExample] = PassExample(
        after=(TILES,), programs=("reduce_constraints/exact.stripe",)
    )
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("main",)

    def run(self, program: Program, context: PassContext) -> Program:
        return with_beginnings(program, super().run(program, context))

    def rewrite(self, nest: Nest, context: PassContext) -> Block:
        def reduce(inner: Nest) -> Block | None:
            reduced = reduced_block(inner)
            if reduced is None:
                context.applied(inner.block, "dropped: it has no point")
            elif reduced is not inner.block:
                counts = f"{len(inner.block.constraints)} constraints become {len(reduced.constraints)}"
                context.applied(reduced, f"{counts}, {inner.block.points} points {reduced.points}")
            return reduced

        return rewrite_below(nest, reduce) or replace(nest.block, statements=())
