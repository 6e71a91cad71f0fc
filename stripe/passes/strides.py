"""Changing the order in memory of a buffer's dimensions: the strides of the allocation and of all its views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stripe.ir import Block, Dim, Path, Refinement, map_views, walk


def compact_strides(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides of a buffer without gaps whose dimensions lie in memory in `order`, the outermost first."""
    strides = [0] * len(sizes)
    stride = 1
    for dim in reversed(order):
        strides[dim] = stride
        stride *= max(sizes[dim], 1)
    return tuple(strides)


def with_strides(block: Block, name: str, strides: Sequence[int]) -> Block:
    """`block` with these strides for its refinement `name` and for every view of it inside."""

    def relaid(ref: Refinement) -> Refinement:
        return replace(
            ref, dims=tuple(Dim(dim.size, stride) for dim, stride in zip(ref.dims, strides, strict=True))
        )

    return map_views(block, name, relaid)


def memory_order(ref: Refinement) -> tuple[int, ...]:
    """The dimensions of a buffer as they lie in memory, the outermost first; equal strides in their own order."""
    return tuple(sorted(range(ref.rank), key=lambda dim: (-abs(ref.dims[dim].stride), dim)))


def movable(entry: Block, alloc_reqs: Sequence[str]) -> Iterator[tuple[Path, Refinement]]:
    """The allocations with all tags of `alloc_reqs` that may be laid out anew: not the tensors of the user."""
    for path, block in walk(entry):
        for ref in block.allocs:
            if ref.rank > 1 and "user" not in ref.tags and ref.tags.has_all(alloc_reqs):
                yield path, ref


def layout_text(ref: Refinement, strides: Sequence[int]) -> str:
    """`8:1, 6:8 instead of 8:6, 6:1`: sizes and strides, the new ones first."""
    new = ", ".join(f"{size}:{stride}" for size, stride in zip(ref.sizes, strides, strict=True))
    old = ", ".join(f"{dim.size}:{dim.stride}" for dim in ref.dims)
    return f"{new} instead of {old}"
