"""The pass `reduce_constraints`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Nest, Program
from stripe.passes.base import TILES, Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.rewrite.constraints import reduced_block
from stripe.rewrite.nests import rewrite_below, rewrite_nests


class ReduceConstraints(Pass):
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
    skip_idxs: tuple[str, ...] = Field(
        default=(), description="keep the range of indices that have one of these tags"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        def reduce(nest: Nest) -> Block | None:
            reduced = reduced_block(nest, self.skip_idxs)
            if reduced is None:
                context.applied(nest.block, "dropped: it has no point")
            elif reduced is not nest.block:
                counts = f"{len(nest.block.constraints)} constraints become {len(reduced.constraints)}"
                context.applied(reduced, f"{counts}, {nest.block.points} points {reduced.points}")
            return reduced

        def below(nest: Nest) -> Block:
            return rewrite_below(nest, reduce) or replace(nest.block, statements=())

        return rewrite_nests(program, self.reqs, below)
