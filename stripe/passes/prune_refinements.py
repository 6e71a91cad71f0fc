"""The pass `prune_refinements`."""

from __future__ import annotations

from typing import ClassVar

from stripe.ir import Block, Program, map_statements, rewrite_matching, with_entry
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.rewrite.prune import drop_constants, prune_refinements, user_tensors


class PruneRefinements(Pass):
    """Drops refinements that no statement uses, in the matching blocks and inside them. User tensors stay.

        block [x:8] (                              block [x:8] (
            in<[0]> I[x] i8(1:1)             =>        in<[0]> I[x] i8(1:1)
            in<[0]> J[x] i8(1:1)                   ) {
        ) {                                          0: $I = load(I)
          0: $I = load(I)

    Inner blocks come first, so that views for them alone go too."""

    pass_name: ClassVar[str] = "prune_refinements"
    group: ClassVar[PassGroup] = PassGroup.CLEANING
    example: ClassVar[PassExample] = PassExample(after=("fusion,localize,fusion{overlap=keep,max_steps=4}",))
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("all",)

    def run(self, program: Program, context: PassContext) -> Program:
        keep = user_tensors(program.entry)

        def prune(block: Block) -> Block:
            pruned = prune_refinements(
                map_statements(block, lambda s: prune(s) if isinstance(s, Block) else s), keep
            )
            if len(pruned.refinements) < len(block.refinements):
                kept = {ref.name for ref in pruned.refinements}
                gone = [ref.name for ref in block.refinements if ref.name not in kept]
                context.applied(block, f"dropped {', '.join(gone)}")
            return pruned

        return drop_constants(with_entry(program, rewrite_matching(program.entry, self.reqs, prune)))
