"""The pass `prune_indexes`."""

from __future__ import annotations

from typing import ClassVar

from stripe.ir import Block, map_statements
from stripe.passes.base import TILES, BlockPass, PassContext, PassExample, PassGroup, Reqs
from stripe.rewrite.prune import drop_unused_passed, prune_indices


class PruneIndexes(BlockPass):
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

    def rewrite(self, block: Block, context: PassContext) -> Block:
        pruned = prune_indices(block)
        if len(pruned.indices) < len(block.indices):
            kept = {index.name for index in pruned.indices}
            gone = [index.name for index in block.indices if index.name not in kept]
            context.applied(block, f"dropped {', '.join(gone)}")
        # Inner blocks come second: only a block that was pruned shows which of its indices they still use.
        return drop_unused_passed(
            map_statements(pruned, lambda s: self.rewrite(s, context) if isinstance(s, Block) else s)
        )
