"""The pass `reorder_indexes`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Index, Program, Refinement, rewrite_blocks, rewrite_matching, with_entry
from stripe.passes.base import Pass, PassContext, Reqs


class ReorderIndexes(Pass):
    """Orders the indices of a block so that the inner loops of emitted code walk memory with small strides.

        block [ci:32, x:64] ( in I[x, ci] i8(1:32, 1:1) )    =>    block [x:64, ci:32] ( … )

    Without `order`, indices sort by the bytes that one step moves in all refinements together, largest first; an index
    over which a store accumulates goes before the others at equal steps. With `order`, the named indices go
    last, in that order. The points of a block have no order, so that the meaning stays.
    """

    pass_name: ClassVar[str] = "reorder_indexes"
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("all",)
    order: tuple[str, ...] = Field(default=(), description="indices to put last, innermost at the end")
    recursive: bool = Field(default=True, description="also in the blocks inside a match")

    def run(self, program: Program, context: PassContext) -> Program:
        def reorder(block: Block) -> Block:
            indices = self._ordered(block)
            if indices == block.indices:
                return block
            context.applied(block, f"loops run {', '.join(i.name for i in indices if not i.is_passed)}")
            return replace(block, indices=indices)

        def visit(block: Block) -> Block:
            return rewrite_blocks(block, reorder) if self.recursive else reorder(block)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, visit))

    def _ordered(self, block: Block) -> tuple[Index, ...]:
        if self.order:
            last = {name: place for place, name in enumerate(self.order)}
            iterated = sorted(block.iterated, key=lambda index: last.get(index.name, -1))
        else:
            iterated = sorted(block.iterated, key=lambda index: -_step_bytes(block, index.name))
        return (*iterated, *block.passed)


def _step_bytes(block: Block, name: str) -> int:
    """Bytes that one step of an index moves, summed over the views; an unused index moves most: it should be
    outside."""
    steps = [_ref_step(ref, name) for ref in block.refinements if not ref.is_alloc]
    return sum(steps) if any(steps) else 1 << 62


def _ref_step(ref: Refinement, name: str) -> int:
    return ref.dtype.bytes * sum(
        abs(a.coeff(name)) * abs(d.stride) for a, d in zip(ref.access, ref.dims, strict=True)
    )
