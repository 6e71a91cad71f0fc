"""Builds the fused block: both blocks split by the plan, their views merged, the rest of each inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from stripe.ir import (
    Affine,
    Block,
    Constraint,
    Dim,
    Direction,
    Index,
    Location,
    Refinement,
    Statement,
    fresh,
    map_views,
    reads_of,
    rename_indices,
    rename_refinements,
    rename_scalars,
    retarget,
    row_major,
    scalar_defined,
    substitute,
    writes_of,
)
from stripe.passes.fusion.plan import Plan
from stripe.rewrite.refusal import Refusal
from stripe.rewrite.tile import Split, split_block, used_indices


@dataclass(frozen=True, slots=True)
class _Half:
    """One block split: its shared part (indices, views, location) and what runs inside."""

    outer: Block
    inner: Block


@dataclass(frozen=True, slots=True)
class Fused:
    """A fused block: its first `first` statements are the rest of the first block, and the buffers outside that became
    allocations of it have the names `local` there."""

    block: Block
    first: int
    local: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Seat:
    """Where a view of a half went: the merged view's name, and how far its origin lies from the merged one's."""

    name: str
    shift: tuple[int, ...]


def fuse_blocks(a: Block, b: Block, plan: Plan) -> Block | Refusal:
    """The block that runs, for each point of the shared indices, the rest of `a` and then the rest of `b`."""
    found = fuse_halves(a, b, plan)
    return found if isinstance(found, Refusal) else found.block


def fuse_halves(a: Block, b: Block, plan: Plan) -> Fused | Refusal:
    """As `fuse_blocks`, and what is where in it.

    Inner blocks that would have one point and no constraint dissolve into the fused one. Tags of `a` and `b` go inside.
    """
    a_half = _split(a, {entry.a_index: (entry.a_split, entry.name) for entry in plan.shared})
    b_half = _split(b, {entry.b_index: (entry.b_split, entry.name) for entry in plan.shared})
    indices, renamed = _merge_indices(a_half.outer, b_half.outer, [entry.name for entry in plan.shared])
    b_half = _rename_outer(b_half, renamed)
    location = _merge_locations(a_half.outer.location, b_half.outer.location)
    if isinstance(location, Refusal):
        return location
    merged = _merge_views(a_half.outer, b_half.outer)
    if isinstance(merged, Refusal):
        return merged
    views, a_seats, b_seats = merged
    constraints = _common_constraints(a_half.inner, b_half.inner)
    fused = Block(
        f"{a.name}+{b.name}",
        indices,
        constraints,
        views,
        location=location,
        comments=tuple(dict.fromkeys((*a.comments, *b.comments))),
    )
    ends: list[int] = []
    for half, seats, tags in ((a_half, a_seats, a.tags), (b_half, b_seats, b.tags)):
        inner = replace(half.inner, tags=tags, constraints=_without(half.inner, constraints))
        fused = _add_half(fused, inner, seats)
        ends.append(len(fused.statements))
    views = {ref.source: ref.name for ref in fused.refinements if ref.source in plan.local}
    for name in views.values():
        fused = _localize(fused, name)
    return Fused(fused, ends[0], views)


def _split(block: Block, chosen: Mapping[str, tuple[Split, str]]) -> _Half:
    """Splits, and drops the outer indices that are not shared: they have range 1 and nobody uses them."""
    outer = split_block(block, {name: split for name, (split, _) in chosen.items()})
    inner = next(outer.blocks)
    kept = tuple(index for index in outer.indices if index.is_passed or index.name in chosen)
    outer = replace(outer, indices=kept)
    renames = {name: new for name, (_, new) in chosen.items() if name != new}
    if renames:
        outer = _renamed(outer, renames)
        inner = next(outer.blocks)
    intervals = {index.name: (0, index.range - 1) for index in outer.iterated}
    return _Half(outer, _without_trivial(inner, inner.intervals(intervals) if not outer.passed else None))


def _renamed(outer: Block, renames: Mapping[str, str]) -> Block:
    """Renames indices; others that are called so already give way."""
    taken = {index.name for index in outer.indices} | set(renames.values())
    clashes = {index.name for index in outer.indices if index.name not in renames} & set(renames.values())
    away = {name: fresh(f"{name}_p", taken) for name in sorted(clashes)}
    return rename_indices(outer, {**away, **renames})


def _without_trivial(inner: Block, intervals: Mapping[str, tuple[int, int]] | None) -> Block:
    """Drops the constraints that hold for all values of the indices."""
    if intervals is None:
        return inner
    kept = tuple(c for c in inner.constraints if c.affine.bounds(intervals)[0] < 0)
    return inner if len(kept) == len(inner.constraints) else replace(inner, constraints=kept)


def _merge_indices(a: Block, b: Block, shared: list[str]) -> tuple[tuple[Index, ...], dict[str, str]]:
    """The indices of the fused block, and the new names of indices of `b` that are passed in."""
    found = {index.name: index for index in a.indices}
    renamed: dict[str, str] = {}
    taken = set(found) | {index.name for index in b.indices}
    for index in b.passed:
        same = [other.name for other in found.values() if other.is_passed and other.affine == index.affine]
        if same:
            renamed[index.name] = same[0]
        elif index.name in found:
            renamed[index.name] = fresh(index.name, taken)
            taken.add(renamed[index.name])
            found[renamed[index.name]] = replace(index, name=renamed[index.name])
        else:
            found[index.name] = index
    ordered = [found[name] for name in shared] + [index for index in found.values() if index.is_passed]
    return tuple(ordered), {old: new for old, new in renamed.items() if old != new}


def _rename_outer(half: _Half, renames: Mapping[str, str]) -> _Half:
    if not renames:
        return half
    outer = rename_indices(replace(half.outer, statements=(half.inner,)), renames)
    return _Half(outer, next(outer.blocks))


def _merge_locations(a: Location, b: Location) -> Location | Refusal:
    if a and b and a != b:
        return Refusal(f"they are located on {a} and on {b}")
    return a or b


def _merge_views(
    a: Block, b: Block
) -> tuple[tuple[Refinement, ...], dict[str, _Seat], dict[str, _Seat]] | Refusal:
    """One view for those that have the same source and move together, where one of them writes or both are equal."""
    merged = {ref.name: ref for ref in a.refinements}
    a_seats = {ref.name: _Seat(ref.name, (0,) * ref.rank) for ref in a.refinements}
    b_seats: dict[str, _Seat] = {}
    taken = set(merged) | {ref.name for ref in b.refinements}
    for ref in b.refinements:
        partners = [other for other in merged.values() if other.source == ref.source]
        home = next((other for other in partners if _belong_together(other, ref)), None)
        if home is None:
            writer = next((other for other in partners if other.dir.writes or ref.dir.writes), None)
            if writer is not None:
                return Refusal(
                    f"their views of {ref.source} move differently: {_text(writer)} and {_text(ref)}"
                )
            name = ref.name if ref.name not in merged else fresh(ref.name, taken)
            taken.add(name)
            merged[name] = replace(ref, name=name)
            b_seats[ref.name] = _Seat(name, (0,) * ref.rank)
            continue
        distance = _distance(home, ref)
        assert distance is not None
        low = tuple(min(0, d) for d in distance)
        merged[home.name] = _union(home, ref, distance, low)
        for seats in (a_seats, b_seats):
            for name, seat in seats.items():
                if seat.name == home.name:
                    moved = tuple(s - lo for s, lo in zip(seat.shift, low, strict=True))
                    seats[name] = _Seat(seat.name, moved)
        b_seats[ref.name] = _Seat(home.name, tuple(d - lo for d, lo in zip(distance, low, strict=True)))
    return tuple(merged.values()), a_seats, b_seats


def _text(ref: Refinement) -> str:
    return f"[{', '.join(map(str, ref.access))}]"


def _distance(home: Refinement, ref: Refinement) -> tuple[int, ...] | None:
    """How far the origin of `ref` lies from that of `home`, when that is the same for all points."""
    differences = [theirs - ours for ours, theirs in zip(home.access, ref.access, strict=True)]
    return tuple(d.offset for d in differences) if all(d.is_constant for d in differences) else None


def _belong_together(home: Refinement, ref: Refinement) -> bool:
    distance = _distance(home, ref)
    if distance is None:
        return False
    same = not any(distance) and home.sizes == ref.sizes and home.location == ref.location
    return same or home.dir.writes or ref.dir.writes


def _union(home: Refinement, ref: Refinement, distance: tuple[int, ...], low: tuple[int, ...]) -> Refinement:
    """The box around both views."""
    sizes = [max(h, d + r) - lo for h, d, r, lo in zip(home.sizes, distance, ref.sizes, low, strict=True)]
    strides = [h.stride if h.size > 1 else r.stride for h, r in zip(home.dims, ref.dims, strict=True)]
    reads, writes = home.dir.reads or ref.dir.reads, home.dir.writes or ref.dir.writes
    direction = (Direction.INOUT if reads else Direction.OUT) if writes else Direction.IN
    return replace(
        home,
        dir=direction,
        access=tuple(affine + lo for affine, lo in zip(home.access, low, strict=True)),
        dims=tuple(Dim(size, stride) for size, stride in zip(sizes, strides, strict=True)),
        agg=home.agg if home.dir.writes else ref.agg,
        tags=home.tags | ref.tags,
    )


def _common_constraints(a: Block, b: Block) -> tuple[Constraint, ...]:
    """The constraints over shared indices alone that both blocks have, in the names of the fused block."""
    theirs = set(_outside_constraints(b).values())
    return tuple(dict.fromkeys(c for c in _outside_constraints(a).values() if c in theirs))


def _outside_constraints(inner: Block) -> dict[Constraint, Constraint]:
    """The constraints over passed-in indices alone -> the same in the names of the outside."""
    passed = {index.name: index.affine for index in inner.indices if index.affine is not None}
    return {
        constraint: Constraint(constraint.affine.subs(passed))
        for constraint in inner.constraints
        if constraint.affine.names() <= passed.keys()
    }


def _without(inner: Block, lifted: Iterable[Constraint]) -> tuple[Constraint, ...]:
    gone = set(lifted)
    outside = _outside_constraints(inner)
    return tuple(c for c in inner.constraints if outside.get(c) not in gone)


def _add_half(fused: Block, inner: Block, seats: Mapping[str, _Seat]) -> Block:
    """Appends one half, dissolved where nothing of a loop is left of it."""
    inner = _drop_unused(inner)
    if _dissolves(fused, inner, seats):
        return _dissolve(fused, inner, seats)
    refs = tuple(ref if ref.is_alloc else _reseated(ref, seats[ref.source]) for ref in inner.refinements)
    return replace(fused, statements=(*fused.statements, replace(inner, refinements=refs)))


def _drop_unused(inner: Block) -> Block:
    """Without the passed-in indices that only the lifted constraints used."""
    used = used_indices(inner)
    kept = tuple(index for index in inner.indices if not index.is_passed or index.name in used)
    return inner if len(kept) == len(inner.indices) else replace(inner, indices=kept)


def _reseated(ref: Refinement, seat: _Seat) -> Refinement:
    access = tuple(affine + shift for affine, shift in zip(ref.access, seat.shift, strict=True))
    return replace(ref, source=seat.name, access=access)


def _dissolves(fused: Block, inner: Block, seats: Mapping[str, _Seat]) -> bool:
    """Whether the statements of `inner` mean the same in the fused block itself, views of blocks moved along."""
    if inner.points > 1 or inner.constraints or inner.location:
        return False
    for ref in inner.refinements:
        if ref.is_alloc:
            continue
        seat = seats[ref.source]
        if any(affine.terms for affine in ref.access):
            return False
        if any(_displacement(ref, seat)) and any(
            ref.name in (*reads_of(s), *writes_of(s)) for s in inner.statements if not isinstance(s, Block)
        ):
            return False
        if ref.dir.writes and ref.agg is not fused.ref(seat.name).agg:
            return False
    return True


def _displacement(ref: Refinement, seat: _Seat) -> tuple[int, ...]:
    """How far a view that does not move lies from the origin of the merged view that it looks at."""
    return tuple(affine.offset + shift for affine, shift in zip(ref.access, seat.shift, strict=True))


def _moved(statement: Statement, distances: Mapping[str, tuple[int, ...]]) -> Statement:
    """A statement with the views of a block moved by the distances of their sources."""
    if not isinstance(statement, Block) or not any(r.source in distances for r in statement.refinements):
        return statement
    refs = tuple(
        replace(r, access=tuple(a + d for a, d in zip(r.access, distances[r.source], strict=True)))
        if r.source in distances
        else r
        for r in statement.refinements
    )
    return replace(statement, refinements=refs)


def _dissolve(fused: Block, inner: Block, seats: Mapping[str, _Seat]) -> Block:
    values = {index.name: index.affine if index.affine is not None else Affine() for index in inner.indices}
    inner = substitute(inner, values)
    taken = {ref.name for ref in fused.refinements} | {ref.name for ref in inner.refinements}
    names: dict[str, str] = {}
    distances: dict[str, tuple[int, ...]] = {}
    for ref in inner.refinements:
        if not ref.is_alloc:
            names[ref.name] = seats[ref.source].name
            distances[ref.name] = _displacement(ref, seats[ref.source])
        elif any(other.name == ref.name for other in fused.refinements):
            names[ref.name] = fresh(ref.name, taken)
            taken.add(names[ref.name])
    renamed = {old: new for old, new in names.items() if old != new}
    statements = tuple(retarget(_moved(s, distances), renamed) for s in inner.statements)
    allocs = tuple(
        ref for ref in rename_refinements(replace(inner, statements=()), names).refinements if ref.is_alloc
    )
    defined = {name for s in fused.statements if (name := scalar_defined(s)) is not None}
    mine = [name for s in statements if (name := scalar_defined(s)) is not None]
    used = defined | set(mine)
    scalars: dict[str, str] = {}
    for name in mine:
        if name in defined:
            scalars[name] = fresh(name, used)
            used.add(scalars[name])
    offset = len(fused.statements)
    moved = [_later(s, offset) for s in rename_scalars(statements, scalars)]
    return replace(fused, refinements=(*fused.refinements, *allocs), statements=(*fused.statements, *moved))


def _later(statement: Statement, offset: int) -> Statement:
    """With its dependences renumbered for a place `offset` further down."""
    return (
        replace(statement, deps=tuple(dep + offset for dep in statement.deps))
        if statement.deps
        else statement
    )


def _localize(fused: Block, name: str) -> Block:
    """Turns the view `name` into an allocation of its size, with compact strides."""
    view = fused.ref(name)
    strides = [dim.stride for dim in row_major(view.sizes)]
    fused = map_views(fused, {view.name: lambda ref: ref.with_strides(strides)})
    local = replace(
        view.with_strides(strides), dir=Direction.NONE, source="", access=(Affine(),) * view.rank, offset=0
    )
    refs = tuple(local if ref.name == view.name else ref for ref in fused.refinements)
    return replace(fused, refinements=refs)
