"""Constraints and ranges of a block reduced exactly."""

from __future__ import annotations

from stripe.ir import Affine, Block, Index, Nest, substitute
from stripe.ir.frozen import replace
from stripe.poly import simplify_block, tighten


def reduced_block(nest: Nest) -> Block | None:
    """The innermost block of `nest` reduced, the blocks inside left; None when it has no point."""
    block = nest.block
    if block.constraints:
        intervals = tighten(nest.domain)
        if intervals is None:
            return None
        # each iterated index is cut to its exact interval and starts at 0
        starts: dict[str, Affine] = {}
        indices: list[Index] = []
        for index in block.indices:
            name = nest.local[index.name].single_name
            if index.is_passed or name is None:
                indices.append(index)
                continue
            low, high = intervals[name]
            indices.append(replace(index, range=high - low + 1))
            if low:
                starts[index.name] = Affine.var(index.name) + low
        if tuple(indices) != block.indices:
            block = replace(substitute(block, starts), indices=tuple(indices))
    return simplify_block(nest.with_block(block))
