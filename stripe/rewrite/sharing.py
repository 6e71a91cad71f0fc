"""Points of a block that read the same elements of a view, and the nest in which they run together."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from stripe.ir import Block, Index, Refinement, indices_of, step
from stripe.ir.factors import divisors
from stripe.rewrite.options import TagSet
from stripe.rewrite.tile import tile_block


def sharing(block: Block, ref: Refinement) -> tuple[Index, ...]:
    """The iterated indices of `block` that do not move the view: points that differ only in them read the same
    elements."""
    moving = indices_of(ref.access)
    return tuple(index for index in block.iterated if index.range > 1 and index.name not in moving)


def split_shared(block: Block, shared: Sequence[Index], most: int, inner_set: TagSet) -> Block:
    """`block` as a nest: outside the indices that are not `shared`, inside these, `most` points at most (0: all).

    Points inside follow memory: indices with small steps come first.
    """
    sizes = {index.name: 1 for index in block.iterated}
    left = most or prod(index.range for index in shared)
    views = [ref for ref in block.refinements if not ref.is_alloc]

    def moved(index: Index) -> int:
        return sum(ref.dtype.bytes * abs(step(ref, index.name) or 0) for ref in views)

    for index in sorted(shared, key=moved):
        sizes[index.name] = _part(index.range, left)
        left //= sizes[index.name]
    return tile_block(block, sizes, inner_set=inner_set)


def _part(points: int, most: int) -> int:
    """The size of parts of at most `most` points: a divisor, so that none is partial, unless the parts would be more
    than twice as many as they have to be, as of a prime number of points."""
    fewest = -(-points // most)
    divisor = max(size for size in divisors(points) if size <= most)
    return divisor if points // divisor <= 2 * fewest else -(-points // fewest)
