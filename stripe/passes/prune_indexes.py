"""The pass `prune_indexes`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import Affine, Block, Program, map_statements, rewrite_matching, substitute, with_entry
from stripe.passes.base import Pass, PassContext, Reqs
from stripe.passes.common.tiling import used_indices


class PruneIndexes(Pass):
    """Drops indices that have one value, and indices passed in that nothing uses.

        block [x:8, y:1, k = 3] (                  block [x:8] (
            in<[0]> I[x + y, k] …            =>        in<[0]> I[x, 3] …

    Where the index was used, its value takes its place.
    """

    pass_name: ClassVar[str] = "prune_indexes"
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("all",)
    recursive: bool = Field(default=True, description="also in the blocks inside a match")

    def run(self, program: Program, context: PassContext) -> Program:
        def prune(block: Block) -> Block:
            pruned = prune_block(block)
            if len(pruned.indices) < len(block.indices):
                kept = {index.name for index in pruned.indices}
                gone = [index.name for index in block.indices if index.name not in kept]
                context.applied(block, f"dropped {', '.join(gone)}")
            if self.recursive:
                pruned = map_statements(pruned, lambda s: prune(s) if isinstance(s, Block) else s)
                pruned = _without_unused(pruned)
            return pruned

        return with_entry(program, rewrite_matching(program.entry, self.reqs, prune))


def prune_block(block: Block) -> Block:
    """`block` without indices of one known value and without unused passed-in ones; blocks inside keep theirs."""
    values: dict[str, Affine] = {}
    for index in block.indices:
        if index.affine is None and index.range == 1:
            values[index.name] = Affine()
        elif index.affine is not None and index.affine.is_constant:
            values[index.name] = index.affine
    if values:
        block = substitute(block, values)
        block = replace(block, indices=tuple(index for index in block.indices if index.name not in values))
        constraints = tuple(
            c for c in block.constraints if not (c.affine.is_constant and c.affine.offset >= 0)
        )
        block = replace(block, constraints=constraints) if constraints != block.constraints else block
    return _without_unused(block)


def _without_unused(block: Block) -> Block:
    if not block.passed:
        return block
    used = used_indices(block)
    kept = tuple(index for index in block.indices if index.affine is None or index.name in used)
    return block if len(kept) == len(block.indices) else replace(block, indices=kept)
