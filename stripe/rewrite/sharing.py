"""Which points of a block read the same elements of a view, and a nest in which these run together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from stripe.ir import Block, Index, Refinement, step
from stripe.rewrite.options import TagSet
from stripe.rewrite.tile import tile_block


def sharing(block: Block, ref: Refinement) -> tuple[Index, ...]:
    """The iterated indices of `block` that do not move the view: points that differ only in them read the same."""
    moving = {name for access in ref.access for name in access.names()}
    return tuple(index for index in block.iterated if index.range > 1 and index.name not in moving)


def split_shared(
    block: Block, shared: Sequence[Index], most: int, outer_set: TagSet, inner_set: TagSet
) -> Block:
    """`block` as a nest: outside the indices that are not `shared`, inside these, `most` points at most (0: all).

    An index whose points inside would be too many is split by a divisor of its range, so that no tile is partial.
    """
    sizes = {index.name: 1 for index in block.iterated}
    left = most or prod(index.range for index in shared)
    for index in reversed(shared):
        sizes[index.name] = max(
            size for size in range(1, min(left, index.range) + 1) if index.range % size == 0
        )
        left //= sizes[index.name]
    split = tile_block(block, sizes)
    (inner,) = split.blocks
    inner = replace(inner, tags=inner.tags.add(*inner_set))
    return replace(split, statements=(inner,), tags=split.tags.add(*outer_set))


def vector_dim(block: Block, name: str, readers: Iterable[Block]) -> int | None:
    """The dimension of the view `name` of `block` along which `readers`, blocks inside, read vectors: that of an index
    that moves all their outputs by one element. None where there is none.
    """
    ref = block.ref(name)
    for reader in readers:
        views = [view for view in reader.refinements if view.source == name]
        for index in reversed(reader.iterated):
            if index.range > 1 and reader.outputs and all(step(o, index.name) == 1 for o in reader.outputs):
                moved = [d for view in views for d in range(ref.rank) if index.name in view.access[d].names()]
                if moved:
                    return moved[0]
    return None


def has_partial(name: str, dim: int, readers: Iterable[Block]) -> bool:
    """Whether `readers` test an index with which the view `name` moves along a dimension: some rows are shorter.

    Compilers make much worse code for short rows of a copy than the copy gains, when the source is contiguous anyway.
    """
    for reader in readers:
        tested = {index for constraint in reader.constraints for index in constraint.affine.names()}
        if any(view.source == name and view.access[dim].names() & tested for view in reader.refinements):
            return True
    return False
