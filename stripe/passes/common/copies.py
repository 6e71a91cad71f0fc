"""Blocks that move or fill whole buffers, the temporaries that they need, and their place among the statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Constant,
    Dim,
    Direction,
    Index,
    Load,
    Location,
    Refinement,
    Statement,
    Store,
    Tags,
    fresh,
    map_statements,
)


@dataclass(frozen=True, slots=True)
class Place:
    """One element of a refinement of the block outside, over the indices of a block that moves it."""

    ref: Refinement
    access: tuple[Affine, ...]

    def view(self, name: str, direction: Direction, agg: Agg = Agg.ASSIGN) -> Refinement:
        """The element as a refinement of the block that moves it."""
        dims = tuple(Dim(1, dim.stride) for dim in self.ref.dims)
        return Refinement(
            name,
            direction,
            self.ref.name,
            self.access,
            self.ref.dtype,
            dims,
            agg,
            self.ref.location,
        )


def copy_block(
    name: str,
    indices: Sequence[Index],
    source: Place,
    target: Place,
    tags: Tags,
    *,
    agg: Agg = Agg.ASSIGN,
    location: Location = Location(),
) -> Block:
    """A kernel that takes an element of `source` to `target` at each point, merged there by `agg`."""
    refs = (
        source.view(source.ref.name, Direction.IN),
        target.view(target.ref.name, Direction.OUT, agg),
    )
    body = (Load(source.ref.name, source.ref.name), Store(target.ref.name, source.ref.name))
    return Block(name, tuple(indices), (), refs, body, location, tags=tags)


def fill_block(
    name: str,
    indices: Sequence[Index],
    target: Place,
    value: bool | int | float,
    tags: Tags,
    *,
    location: Location = Location(),
) -> Block:
    """A kernel that assigns one value to the element of `target` at each point."""
    body = (Constant("c", value, target.ref.dtype), Store(target.ref.name, "c"))
    refs = (target.view(target.ref.name, Direction.OUT),)
    return Block(name, tuple(indices), (), refs, body, location, tags=tags)


def names_in(entry: Block) -> set[str]:
    """The names that buffers of the entry and views of main have."""
    taken = {ref.name for ref in entry.refinements}
    return taken | {ref.name for block in entry.blocks for ref in block.refinements}


def temporary(like: Refinement, suffix: str, sizes: Sequence[int], taken: set[str]) -> Refinement:
    """A new row-major allocation of `sizes` with the dtype and memory of `like`; its name is added to `taken`."""
    name = fresh(f"{like.name}_{suffix}", taken)
    taken.add(name)
    return Refinement.alloc(name, like.dtype, tuple(sizes), location=like.location, tags=Tags.of("tmp"))


def with_temporaries(entry: Block, refs: Sequence[Refinement]) -> Block:
    """`entry` with further allocations, which its main block sees under the same names."""

    def seen(statement: Statement) -> Statement:
        if not isinstance(statement, Block) or "main" not in statement.tags:
            return statement
        return replace(statement, refinements=(*statement.refinements, *map(main_view, refs)))

    return replace(map_statements(entry, seen), refinements=(*entry.refinements, *refs))


def main_view(ref: Refinement) -> Refinement:
    """The view of an allocation of the entry that main takes."""
    return replace(ref, dir=Direction.INOUT, source=ref.name, tags=Tags(), offset=0)


def beside(statement: Statement) -> Location:
    """Where a block that serves `statement` runs when nothing else is said: on the same unit, if that is one unit."""
    if not isinstance(statement, Block) or statement.location.names():
        return Location()
    return statement.location
