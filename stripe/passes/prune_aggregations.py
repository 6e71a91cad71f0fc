"""The pass `prune_aggregations`."""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from stripe.ir import Agg, Block, Path, Program, Store, aggregations, replace_at, rewrite_blocks, with_entry
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.poly.single_writes import single_writes


class PruneAggregations(Pass):
    """Assigns where an aggregating store is the only contribution to each element that it writes.

        block [x:8] (                             block [x:8] (
            in I[x] (1:1)                  =>         in I[x] (1:1)
            out O[x]:add (1:1)                        out O[x]:assign (1:1)
        ) { … }                                   ) { … }

    Decided with integer sets under all constraints, over all stores while the buffer lives. The buffer needs no
    identity to start at then: no zeros are filled in, and no element is read to be added to. Tensors with contents of
    the caller keep their aggregation.
    """

    pass_name: ClassVar[str] = "prune_aggregations"
    group: ClassVar[PassGroup] = PassGroup.CLEANING
    example: ClassVar[PassExample] = PassExample(
        after=(
            "autotile{reqs=[contraction],max_total_size=4096,acc_idxs=false,outer_set=[tile],inner_set=[inner]}",
            "cache{reqs=[tile],dirs=[out]}",
        )
    )
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("all",)

    def run(self, program: Program, context: PassContext) -> Program:
        found: dict[Path, set[str]] = defaultdict(set)
        for access in single_writes(program.entry):
            if any(block.words.has_all(self.reqs) for block in access.nest.blocks):
                stores = [
                    s for s in access.nest.block.statements if isinstance(s, Store) and s.ref == access.ref
                ]
                if len(stores) == 1:
                    found[access.nest.path].add(access.ref)
                    text = f"{access.ref}: each element is stored once, {access.agg.value} becomes assign"
                    context.applied(access.nest.block, text)
        if not found:
            return program
        entry = program.entry
        for path, names in found.items():
            entry = replace_at(entry, path, lambda block, names=names: _assigning(block, names))
        return with_entry(program, rewrite_blocks(entry, _views_assigning))


def _views_assigning(block: Block) -> Block:
    """`block` with `assign` at the views through which blocks inside do nothing but assign."""
    merging = {ref.name for ref in block.refinements if ref.agg is not Agg.ASSIGN}
    merging -= {statement.ref for statement in block.statements if isinstance(statement, Store)}
    merged = aggregations(block, merging) if merging else {}
    return _assigning(block, {name for name, aggs in merged.items() if aggs == (Agg.ASSIGN,)})


def _assigning(block: Block, names: set[str]) -> Block:
    refs = tuple(replace(ref, agg=Agg.ASSIGN) if ref.name in names else ref for ref in block.refinements)
    return replace(block, refinements=refs) if names else block
