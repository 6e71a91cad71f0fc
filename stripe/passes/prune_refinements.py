"""The pass `prune_refinements`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from stripe.ir import Block, Program, map_statements, rewrite_matching, uses_by_name, with_entry
from stripe.passes.base import Pass, PassContext, Reqs


class PruneRefinements(Pass):
    """Drops refinements that no statement uses, in the matching blocks and inside them. User tensors stay.

        block [x:8] (                              block [x:8] (
            in<[0]> I[x] i8(1:1)             =>        in<[0]> I[x] i8(1:1)
            in<[0]> J[x] i8(1:1)                   ) {
        ) {                                          0: $I = load(I)
          0: $I = load(I)

    Inner blocks come first, so that what only they passed on goes too.
    """

    pass_name: ClassVar[str] = "prune_refinements"
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("all",)

    def run(self, program: Program, context: PassContext) -> Program:
        keep = user_tensors(program)

        def prune(block: Block) -> Block:
            pruned = prune_block(
                map_statements(block, lambda s: prune(s) if isinstance(s, Block) else s), keep
            )
            if len(pruned.refinements) < len(block.refinements):
                kept = {ref.name for ref in pruned.refinements}
                gone = [ref.name for ref in block.refinements if ref.name not in kept]
                context.applied(block, f"dropped {', '.join(gone)}")
            return pruned

        return drop_constants(with_entry(program, rewrite_matching(program.entry, self.reqs, prune)))


def user_tensors(program: Program) -> frozenset[str]:
    """Names of the tensors that the caller knows: what `main` takes of them is the program's signature."""
    return frozenset(ref.name for ref in program.entry.refinements if "user" in ref.tags)


def prune_block(block: Block, user: frozenset[str]) -> Block:
    """`block` without the refinements that its statements do not use; `main` keeps its views of `user` tensors."""
    main = "main" in block.tags
    used = uses_by_name(block)
    kept = tuple(
        ref
        for ref in block.refinements
        if "user" in ref.tags or (main and ref.source in user) or ref.name in used
    )
    return block if len(kept) == len(block.refinements) else replace(block, refinements=kept)


def drop_constants(program: Program) -> Program:
    """`program` without the data of constants that are no longer allocated."""
    names = {ref.name for ref in program.entry.refinements}
    kept = tuple(buffer for buffer in program.constants if buffer.name in names)
    return program if len(kept) == len(program.constants) else replace(program, constants=kept)
