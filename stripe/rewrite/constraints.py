"""Constraints and ranges of a block reduced exactly."""

from __future__ import annotations

from dataclasses import replace

from stripe.ir import Affine, Block, Index, Nest, substitute
from stripe.poly import simplify_block, tighten
from stripe.rewrite.nests import rewrite_below


def reduce_nest(nest: Nest) -> Block | None:
    """The innermost block of `nest` and all inside it, reduced; None when it has no point."""
    return rewrite_below(nest, lambda inner: reduced_block(inner, ()))


def reduced_block(nest: Nest, skip: tuple[str, ...]) -> Block | None:
    """One block reduced, those inside left; the same object when nothing changed."""
    shrunk = _shrunk(nest, skip)
    return None if shrunk is None else simplify_block(nest.with_block(shrunk))


def _shrunk(nest: Nest, skip: tuple[str, ...]) -> Block | None:
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
        low, high = (0, 0) if index.is_passed else intervals[_own_name(nest, index)]
        if index.is_passed or index.tags.has_any(skip) or (low, high) == (0, index.range - 1):
            indices.append(index)
            continue
        indices.append(replace(index, range=high - low + 1))
        if low:
            starts[index.name] = Affine.var(index.name) + low
    return (
        block
        if tuple(indices) == block.indices
        else replace(substitute(block, starts), indices=tuple(indices))
    )


def _own_name(nest: Nest, index: Index) -> str:
    name = nest.local[index.name].single_name
    assert name is not None
    return name
