"""Copy blocks and fill blocks, the temporaries that they need, and their place among the statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    Interval,
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
    loaded_refs,
    map_statements,
    surround,
    walk,
    with_entry,
    with_main,
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
    ref: Refinement,
    box: Sequence[Interval],
    value: bool | int | float,
    tags: Tags = Tags.of("init"),
    *,
    location: Location = Location(),
) -> Block:
    """A kernel that assigns `value` to the elements of `ref` whose coordinates lie in the intervals of `box`. Index
    `dN` runs along dimension N."""
    indices = tuple(Index(f"d{dim}", high - low + 1) for dim, (low, high) in enumerate(box))
    origin = tuple(Affine.var(f"d{dim}") + low for dim, (low, _) in enumerate(box))
    body = (Constant("c", value, ref.dtype), Store(ref.name, "c"))
    return Block(name, indices, (), (Element(ref, origin).view(Direction.OUT),), body, location, tags=tags)


def with_beginnings(before: Program, after: Program) -> Program:
    """`after`, rewritten from `before`, with fills of the buffers that began at the identity of an aggregation and
    whose merges, in blocks without points, are gone. `before` where points of main share such a buffer, and where the
    buffer has an address, since until the merges its bytes may be another's.

    Blocks and allocations are known by their names; `before`, too, where names are not unique.
    """
    old: dict[tuple[str, str], set[Agg]] = {}
    for _, block in walk(before.entry):
        for name, agg in beginnings(block).items() if block.allocs else ():
            if agg is not Agg.ASSIGN:
                old.setdefault((block.name, name), set()).add(agg)

    def lost_in(block: Block) -> dict[str, set[Agg]]:
        begun = {ref: old[block.name, ref.name] for ref in block.allocs if (block.name, ref.name) in old}
        if not begun:
            return {}
        new, used = beginnings(block), loaded_refs(block)
        return {
            ref.name: aggs
            for ref, aggs in begun.items()
            if new[ref.name] is Agg.ASSIGN and (ref.name in used or ref.is_kept)
        }

    def filled(statement: Statement) -> Statement:
        if not isinstance(statement, Block):
            return statement
        block = map_statements(statement, filled)
        lost = lost_in(block) if block.statements else {}
        unclear.extend(n for n, aggs in lost.items() if len(aggs) > 1 or block.ref(n).offset is not None)
        return _with_fills(block, {block.ref(name): next(iter(aggs)) for name, aggs in lost.items()})

    unclear: list[str] = []
    entry = map_statements(after.entry, filled) if old else after.entry
    given = {ref.name for ref in before.inputs} | {constant.name for constant in before.constants}
    lost = {name: aggs for name, aggs in lost_in(entry).items() if name not in given}
    if unclear or any(len(aggs) > 1 or entry.ref(n).offset is not None for n, aggs in lost.items()):
        return before
    main = next((block for block in entry.blocks if block.is_main), None)
    if not lost or main is None or not main.statements:
        return with_entry(after, entry)
    if main.points > 1:
        return before
    views: dict[Refinement, Agg] = {}
    more: list[Refinement] = []
    for name, (agg,) in lost.items():
        whole = main_view(entry.ref(name))
        seen = [ref for ref in main.refinements if ref.source == name]
        view = next((ref for ref in seen if (ref.access, ref.dims) == (whole.access, whole.dims)), None)
        if view is None:
            taken = {ref.name for ref in (*main.refinements, *more)}
            more.append(replace(whole, name=fresh(whole.name, taken), dir=Direction.OUT))
            view = more[-1]
        views[view] = agg
    written = tuple(
        replace(ref, dir=Direction.INOUT if ref.dir.reads else Direction.OUT) if ref in views else ref
        for ref in main.refinements
    )
    started = replace(_with_fills(main, views), refinements=(*written, *more))
    return with_entry(after, with_main(entry, lambda _: started))


def _with_fills(block: Block, views: Mapping[Refinement, Agg]) -> Block:
    """`block` with its `views` filled with identities before its statements."""
    fills: list[Statement] = []
    for view, agg in views.items():
        name, whole = f"fill_{view.source or view.name}", [(0, size - 1) for size in view.sizes]
        place = beside(block.statements[0])
        fills.append(fill_block(name, view, whole, agg.identity(view.dtype), location=place))
    return surround(block, {0: Around(tuple(fills))}) if fills else block


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
    views = tuple(map(main_view, refs))
    entry = with_main(entry, lambda main: replace(main, refinements=(*main.refinements, *views)))
    return replace(entry, refinements=(*entry.refinements, *refs))


def main_view(ref: Refinement) -> Refinement:
    """The view of an allocation of the entry that main takes."""
    return replace(
        ref, dir=Direction.INOUT, source=ref.name, tags=Tags(), role=None, offset=None, copies=1, pitch=None
    )


def beside(statement: Statement) -> Location:
    """The default location of a block that serves `statement`: its unit, where it is on a fixed one."""
    if not isinstance(statement, Block) or statement.location.names():
        return Location()
    return statement.location
