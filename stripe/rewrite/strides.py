"""Changing the order in memory of a buffer's dimensions: the strides of the allocation and of all its views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from stripe.ir import Block, IndexMap, Path, Refinement, Role, walk, with_statements
from stripe.ir.frozen import replace

Maps: TypeAlias = Mapping[Path, Mapping[str, IndexMap]]
"""Maps without floors for allocations, by the path of the block that holds them and their names."""


def mapped(entry: Block, maps: Maps) -> Block:
    """`entry` with the strides of the maps for allocations and for every view of them inside."""

    def visit(block: Block, path: Path, outside: Mapping[str, tuple[int, ...]]) -> Block:
        own = maps.get(path, {})
        new = {ref.name: own[ref.name].strides(ref.sizes) for ref in block.allocs if ref.name in own}
        new |= {ref.name: outside[ref.source] for ref in block.refinements if ref.source in outside}
        statements = [
            visit(statement, (*path, number), new) if isinstance(statement, Block) else statement
            for number, statement in enumerate(block.statements)
        ]
        inner = with_statements(block, statements)
        if not new:
            return inner
        refs = tuple(ref.with_strides(new[ref.name]) if ref.name in new else ref for ref in inner.refinements)
        return replace(inner, refinements=refs)

    return visit(entry, (0,), {}) if maps else entry


def memory_order(ref: Refinement) -> tuple[int, ...]:
    """The dimensions of a buffer as they lie in memory, the outermost first; equal strides in their own order."""
    return tuple(sorted(range(ref.rank), key=lambda dim: (-abs(ref.dims[dim].stride), dim)))


def movable(entry: Block) -> Iterator[tuple[Path, Refinement]]:
    """The allocations that may be laid out anew: all but the tensors of the user."""
    for path, block in walk(entry):
        for ref in block.allocs:
            if ref.rank > 1 and ref.role is not Role.USER:
                yield path, ref


def layout_text(ref: Refinement, strides: Sequence[int]) -> str:
    """`8:1, 6:8 instead of 8:6, 6:1`: sizes and strides, the new ones first."""
    new = ", ".join(f"{size}:{stride}" for size, stride in zip(ref.sizes, strides, strict=True))
    old = ", ".join(f"{dim.size}:{dim.stride}" for dim in ref.dims)
    return f"{new} instead of {old}"
