"""Kernels that instructions for dot products suit."""

from __future__ import annotations

from stripe.ir import Block, step
from stripe.ir.frozen import replace


def with_dots(block: Block) -> Block:
    """The block with the tag `dots` where it sums products of narrow integers whose factors lie along the sum."""
    if "widening" not in block.tags or not block.inputs:
        return block
    along = [
        index.name
        for index in block.iterated
        if all(step(ref, index.name) == 1 for ref in block.inputs)
        and all(step(ref, index.name) == 0 for ref in block.outputs)
    ]
    return replace(block, tags=block.tags.add("dots")) if along else block
