"""Which points of a block read the same elements of a view, and a nest in which these run together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from stripe.ir import Affine, Block, Index, Refinement
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


def moves_all_outputs(block: Block, index: Index) -> bool:
    """Whether distinct values of the index touch distinct elements of each output: in some dimension one step of it is
    longer than all that the other indices and the view's size cover."""
    return bool(block.outputs) and all(separates_points(block, ref, index.name) for ref in block.outputs)


def separates_points(block: Block, ref: Refinement, name: str) -> bool:
    for access, dim in zip(ref.access, ref.dims, strict=True):
        step = abs(access.coeff(name))
        rest = access - Affine.linear({name: access.coeff(name)})
        if (
            step == 0
            or name in rest.names()
            or any(rest.coeff(i.name) for i in block.passed)
            or not rest.is_linear
        ):
            continue
        low, high = rest.bounds({i.name: (0, i.range - 1) for i in block.iterated})
        if step >= high - low + dim.size:
            return True
    return False


def step(ref: Refinement, name: str) -> int | None:
    """Elements by which a step of an index moves a view; None where floors and remainders decide."""
    address = sum((a * dim.stride for a, dim in zip(ref.access, ref.dims, strict=True)), Affine())
    coefficient = address.coeff(name)
    return None if name in (address - Affine.var(name) * coefficient).names() else coefficient


def is_packed(ref: Refinement, innermost: int) -> bool:
    """Whether the elements of a view lie in memory without gaps, those along the dimension `innermost` side by side."""
    if ref.dims[innermost].stride != 1 and ref.dims[innermost].size > 1:
        return False
    extent = 1
    for dim in sorted(ref.dims, key=lambda dim: abs(dim.stride)):
        if dim.size > 1 and abs(dim.stride) != extent:
            return False
        extent *= dim.size
    return True
