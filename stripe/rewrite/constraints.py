"""Constraints and ranges of a block reduced exactly."""

from __future__ import annotations

from dataclasses import replace

from stripe.ir import Affine, Block, Index, Nest, substitute
from stripe.poly import simplify_block, tighten
from stripe.rewrite.nests import rewrite_below


def reduce_nest(nest: Nest) -> Block | None:
    """The innermost block of `nest` and all inside it, reduced; None when it has no point."""
    return rewrite_below(nest, reduced_block)


def reduced_block(nest: Nest) -> Block | None:
    """The innermost block of `nest` reduced, the blocks inside left; None when it has no point."""
    shrunk = _shrunk(nest)
    return None if shrunk is None else simplify_block(nest.with_block(shrunk))


def _shrunk(nest: Nest) -> Block | None:
    """The block with each iterated index cut to its exact interval and starting at 0; None without points."""
    block = nest.block
    if not block.constraints:
        return block
    intervals = tighten(nest.domain)
    if intervals is None:
        return None
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
    if tuple(indices) == block.indices:
        return block
    return replace(substitute(block, starts), indices=tuple(indices))
