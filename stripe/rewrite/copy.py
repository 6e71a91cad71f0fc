"""Copy blocks and fill blocks, the temporaries that they need, and their place among the statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stripe.ir import (
    Affine,
    Agg,
    Around,
    Block,
    Constant,
    Constraint,
    Dim,
    Direction,
    Index,
    Load,
    Location,
    Program,
    Refinement,
    Role,
    Statement,
    Store,
    Tags,
    beginnings,
    fresh,
    map_statements,
    surround,
    with_entry,
)
from stripe.ir.frozen import replace


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a refinement of the block outside, over the indices of a block inside."""

    ref: Refinement
    access: tuple[Affine, ...]

    def view(self, direction: Direction, agg: Agg = Agg.ASSIGN) -> Refinement:
        """The element as a refinement of the block inside."""
        ref = self.ref
        dims = tuple(Dim(1, dim.stride) for dim in ref.dims)
        return Refinement(ref.name, direction, ref.name, self.access, ref.dtype, dims, agg, ref.location)


def copy_block(
    name: str,
    indices: Sequence[Index],
    source: Element,
    target: Element,
    tags: Tags,
    *,
    agg: Agg = Agg.ASSIGN,
    location: Location = Location(),
    constraints: Sequence[Constraint] = (),
    scalar: str = "",
) -> Block:
    """A copy block: at each point an element of `source` goes to `target`, merged there by `agg`."""
    refs = (source.view(Direction.IN), target.view(Direction.OUT, agg))
    scalar = scalar or source.ref.name
    body = (Load(scalar, source.ref.name), Store(target.ref.name, scalar))
    return Block(name, tuple(indices), tuple(constraints), refs, body, location, tags=tags)


def fill_block(
    name: str,
    indices: Sequence[Index],
    target: Element,
    value: bool | int | float,
    tags: Tags,
    *,
    location: Location = Location(),
) -> Block:
    """A kernel that assigns one value to the element of `target` at each point."""
    body = (Constant("c", value, target.ref.dtype), Store(target.ref.name, "c"))
    refs = (target.view(Direction.OUT),)
    return Block(name, tuple(indices), (), refs, body, location, tags=tags)


def with_beginnings(before: Program, after: Program) -> Program:
    """`after`, rewritten from `before`, with its buffers filled whose beginning was the identity of an aggregation and
    whose merges are gone: blocks without points."""
    old, new = beginnings(before.entry), beginnings(after.entry)
    lost = {name: agg for name, agg in old.items() if agg is not Agg.ASSIGN and new.get(name, agg) is not agg}
    views: dict[str, Refinement] = {}
    for view in after.main.refinements:
        if view.source in lost:
            views.setdefault(view.source, view)
    if not views or not after.main.statements or after.main.points > 1:
        return after
    fills: list[Statement] = []
    for source, view in views.items():
        indices = [Index(f"d{dim}", size) for dim, size in enumerate(view.sizes)]
        whole = Element(view, tuple(Affine.var(index.name) for index in indices))
        value = lost[source].identity(view.dtype)
        first = after.main.statements[0]
        fills.append(
            fill_block(f"fill_{source}", indices, whole, value, Tags.of("init"), location=beside(first))
        )
    main = surround(after.main, {0: Around(tuple(fills))})
    directed = {
        view: replace(view, dir=Direction.INOUT if view.dir.reads else Direction.OUT)
        for view in views.values()
    }
    main = replace(main, refinements=tuple(directed.get(ref, ref) for ref in main.refinements))
    return with_entry(after, map_statements(after.entry, lambda s: main if s is after.main else s))


def names_in(entry: Block) -> set[str]:
    """The names that buffers of the entry and views of main have."""
    taken = {ref.name for ref in entry.refinements}
    return taken | {ref.name for block in entry.blocks for ref in block.refinements}


def temporary(like: Refinement, suffix: str, sizes: Sequence[int], taken: set[str]) -> Refinement:
    """A new row-major allocation of `sizes` with the dtype and memory of `like`; its name is added to `taken`."""
    name = fresh(f"{like.name}_{suffix}", taken)
    taken.add(name)
    return Refinement.alloc(name, like.dtype, tuple(sizes), location=like.location, role=Role.TEMPORARY)


def with_temporaries(entry: Block, refs: Sequence[Refinement]) -> Block:
    """`entry` with further allocations, which its main block sees under the same names."""

    def seen(statement: Statement) -> Statement:
        if not isinstance(statement, Block) or not statement.is_main:
            return statement
        return replace(statement, refinements=(*statement.refinements, *map(main_view, refs)))

    return replace(map_statements(entry, seen), refinements=(*entry.refinements, *refs))


def main_view(ref: Refinement) -> Refinement:
    """The view of an allocation of the entry that main takes."""
    return replace(ref, dir=Direction.INOUT, source=ref.name, tags=Tags(), role=None, offset=None, copies=1)


def beside(statement: Statement) -> Location:
    """Where a block that serves `statement` runs when nothing else is said: on the same unit, if that is one unit."""
    if not isinstance(statement, Block) or statement.location.names():
        return Location()
    return statement.location
