"""The pass `prune_indexes`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Program, map_statements, rewrite_matching, with_entry
from stripe.passes.base import TILES, Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.rewrite.prune import drop_unused_passed, prune_indices


class PruneIndexes(Pass):
    """Drops indices that have one value, and indices passed in that nothing uses.

        block [x:8, y:1, k = 3] (                  block [x:8] (
            in<[0]> I[x + y, k] …            =>        in<[0]> I[x, 3] …

    Where the index was used, its value takes its place.
    """

    pass_name: ClassVar[str] = "prune_indexes"
    group: ClassVar[PassGroup] = PassGroup.CLEANING
    example: ClassVar[PassExample] = PassExample(after=(TILES,))
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("all",)
    recursive: bool = Field(default=True, description="also in the blocks inside a match")

    def run(self, program: Program, context: PassContext) -> Program:
        def prune(block: Block) -> Block:
            pruned = prune_indices(block)
            if len(pruned.indices) < len(block.indices):
                kept = {index.name for index in pruned.indices}
                gone = [index.name for index in block.indices if index.name not in kept]
                context.applied(block, f"dropped {', '.join(gone)}")
            if self.recursive:
                pruned = map_statements(pruned, lambda s: prune(s) if isinstance(s, Block) else s)
                pruned = drop_unused_passed(pruned)
            return pruned

        return with_entry(program, rewrite_matching(program.entry, self.reqs, prune))
