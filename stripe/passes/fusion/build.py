"""Builds the fused block: both blocks split by the plan, their views merged, the rest of each inside."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import sub

from stripe.ir import (
    Affine,
    Block,
    Constraint,
    Dim,
    Direction,
    Index,
    Refinement,
    fresh,
    map_views,
    moved_down,
    reads_of,
    rename_indices,
    rename_scalars,
    retarget,
    scalar_defined,
    substitute,
    views_moved,
    with_statements,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.passes.fusion.candidates import Contents
from stripe.passes.fusion.legality import FusionPlan
from stripe.rewrite.refusal import Refusal
from stripe.rewrite.tile import Split, split_block, used_indices


@dataclass(frozen=True, slots=True)
class Fused:
    """A fused block: its first `first` statements are the rest of the first block, and `local` gives the names of its
    allocations by the buffers outside that they replace. Where the first block is its beginning, `changed` names the
    views that differ; else None."""

    block: Block
    first: int
    local: Mapping[str, str]
    changed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Merged:
    """The merged view for a view of a half: its name, and the distance of the view's origin from its origin."""

    name: str
    shift: tuple[int, ...]


@lru_cache(maxsize=1024)
def fuse(a: Block, b: Block, plan: FusionPlan) -> Fused | Refusal:
    """The block that runs, for each point of the shared indices, the rest of `a` and then the rest of `b`.

    Inner blocks that would have one point and no constraint dissolve into the fused one. Tags of `a` and `b` go inside.
    Answers are kept, as by `split_block`.
    """
    a_half = _split(a, {entry.a_index: (entry.a_split, entry.name) for entry in plan.shared})
    b_half = _split(b, {entry.b_index: (entry.b_split, entry.name) for entry in plan.shared})
    indices, renamed = _merge_indices(a_half, b_half, [entry.name for entry in plan.shared])
    b_half = rename_indices(b_half, renamed)
    if a_half.location and b_half.location and a_half.location != b_half.location:
        return Refusal(f"they are located on {a_half.location} and on {b_half.location}")
    merged = _merge_views(a_half.refinements, Contents.of(a_half), b_half)
    if isinstance(merged, Refusal):
        return merged
    for source in sorted(plan.local):
        views = [ref.name for ref in merged.views if ref.source == source]
        if len(views) > 1:
            return Refusal(
                f"the fused block would hold its part of {source}, which has the views {' and '.join(views)}"
            )
    a_homes = {ref.name: _Merged(ref.name, merged.shift(ref)) for ref in a_half.refinements}
    homes = (a_homes, merged.homes)
    # Constraints over shared indices alone that both halves have move to the fused block; of two that differ by their
    # constants the weaker moves, and the other stays with its half.
    inners = [next(half.blocks) for half in (a_half, b_half)]
    theirs = [c.affine for c in _outside_constraints(inners[1]).values()]
    common = tuple(
        dict.fromkeys(
            Constraint(max(mine.affine, other, key=lambda affine: affine.offset))
            for mine in _outside_constraints(inners[0]).values()
            for other in theirs
            if other.terms == mine.affine.terms
        )
    )
    fused = _around(a_half, b_half, indices, common, merged)
    ends: list[int] = []
    for inner, home, tags in zip(inners, homes, (a.tags, b.tags), strict=True):
        outside = _outside_constraints(inner)
        kept = tuple(c for c in inner.constraints if outside.get(c) not in common)
        defined = dict.fromkeys([name for s in fused.statements if (name := scalar_defined(s)) is not None])
        fused = _add_half(fused, replace(inner, tags=tags, constraints=kept), home, merged, defined)
        ends.append(len(fused.statements))
    # buffers between the halves become allocations of the size of the view, with compact strides
    local = {ref.source: ref.name for ref in fused.refinements if ref.source in plan.local}
    for name in local.values():
        view = fused.ref(name)
        alloc = Refinement.alloc(name, view.dtype, view.sizes)
        fused = map_views(fused, {name: lambda ref, alloc=alloc: ref.with_strides(alloc.strides)})
        alloc = replace(view, dir=Direction.NONE, source="", access=alloc.access, dims=alloc.dims)
        refs = tuple(alloc if ref.name == name else ref for ref in fused.refinements)
        fused = replace(fused, refinements=refs)
    return Fused(fused, ends[0], local)


def extended(a: Block, b: Block, plan: FusionPlan, contents: Contents) -> Fused | Refusal | None:
    """As `fuse`, where `a` walks the shared indices alone, value by value, so that it is the beginning of the fused
    block as it stands and only `b` makes work. None for other blocks."""
    whole = {entry.a_index: entry for entry in plan.shared}
    if plan.local or a.constraints or a.passed or len(whole) < len(a.indices) or "" in contents.by_source:
        return None
    for index in a.indices:
        entry = whole[index.name]
        if entry.name != index.name or entry.a_split != Split(1, index.range, 1) or index.range < 2:
            return None
    b_half = _split(b, {entry.b_index: (entry.b_split, entry.name) for entry in plan.shared})
    (inner,) = b_half.blocks
    if b_half.passed or (a.location and b_half.location and a.location != b_half.location):
        return None
    merged = _merge_views(a.refinements, contents, b_half)
    if isinstance(merged, Refusal):
        return merged
    if any(map(any, merged.shifts.values())):
        return None  # the origins of views of `a` move
    fused = replace(_around(a, b_half, a.indices, (), merged), statements=a.statements)
    fused = _add_half(fused, replace(inner, tags=b.tags), merged.homes, merged, contents.scalars)
    return Fused(fused, len(a.statements), {}, tuple(merged.changed))


def _around(
    a: Block, b: Block, indices: tuple[Index, ...], constraints: tuple[Constraint, ...], merged: _MergedViews
) -> Block:
    """The fused block of two halves, still without statements."""
    comments = tuple(dict.fromkeys((*a.comments, *b.comments)))
    location = a.location or b.location
    name, views = f"{a.name}+{b.name}", tuple(merged.views)
    return Block(name, indices, constraints, views, location=location, comments=comments)


def _split(block: Block, chosen: Mapping[str, tuple[Split, str]]) -> Block:
    """A block over the shared indices, under their names in the fused block, with the rest of `block` inside."""
    outer = split_block(block, {name: split for name, (split, _) in chosen.items()})
    # Outer indices that are not shared have range 1.
    kept = tuple(index for index in outer.indices if index.is_passed or index.name in chosen)
    gone = {index.name: Affine() for index in outer.indices if index not in kept}
    outer = replace(substitute(outer, gone), indices=kept)
    renames = {name: new for name, (_, new) in chosen.items() if name != new}
    taken = {index.name for index in kept} | set(renames.values())
    clashes = {index.name for index in kept if index.name not in renames} & set(renames.values())
    away = {name: fresh(f"{name}_p", taken) for name in sorted(clashes)}
    outer = rename_indices(outer, {**away, **renames})
    if outer.passed:
        return outer
    # Constraints that hold for all values of the indices are dropped.
    (inner,) = outer.blocks
    intervals = inner.intervals({index.name: (0, index.range - 1) for index in outer.iterated})
    needed = tuple(c for c in inner.constraints if c.affine.bounds(intervals)[0] < 0)
    return with_statements(outer, [replace(inner, constraints=needed)])


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


@dataclass(slots=True)
class _MergedViews:
    """The views of both halves: views of the first half, of which some `changed`, then further views of the second;
    `places` has the place of each by name. `shifts` has the distances of old origins of the first half from the new
    ones, by name, `homes` the merged view for each view of the second half."""

    views: list[Refinement]
    places: ChainMap[str, int]
    changed: dict[str, None] = field(default_factory=dict[str, None])
    shifts: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    homes: dict[str, _Merged] = field(default_factory=dict[str, _Merged])

    def shift(self, ref: Refinement) -> tuple[int, ...]:
        """The distance of a view of the first half from the origin of its merged view."""
        return self.shifts.get(ref.name, (0,) * ref.rank)


def _merge_views(first: Sequence[Refinement], contents: Contents, b: Block) -> _MergedViews | Refusal:
    """Merges views with the same source that move together, where either writes or both are equal."""
    added: dict[str, int] = {}
    merged = _MergedViews(list(first), ChainMap(added, contents.places))
    views = merged.views
    for ref in b.refinements:
        places = [*contents.by_source.get(ref.source, ()), *added.values()]
        partners = [place for place in places if views[place].source == ref.source]
        for home in partners:
            other = views[home]
            distance = _distance(other, ref)
            same = (other.sizes, other.location) == (ref.sizes, ref.location)
            if distance is not None and (other.dir.writes or ref.dir.writes or (same and not any(distance))):
                break
        else:
            writer = next((views[n] for n in partners if views[n].dir.writes or ref.dir.writes), None)
            if writer is not None:
                ours, theirs = (f"[{', '.join(map(str, view.access))}]" for view in (writer, ref))
                return Refusal(f"their views of {ref.source} move differently: {ours} and {theirs}")
            name = ref.name
            if name in merged.places:
                others = dict.fromkeys([view.name for view in b.refinements], 0)
                name = fresh(name, ChainMap(others, *merged.places.maps))
            added[name] = len(views)
            views.append(replace(ref, name=name))
            merged.homes[ref.name] = _Merged(name, (0,) * ref.rank)
            continue
        # The merged view begins at the lower of both origins, in each dimension.
        low = tuple(min(0, d) for d in distance)
        views[home] = _union(other, ref, distance, low)
        if other.name not in added:
            merged.changed[other.name] = None
            merged.shifts[other.name] = tuple(map(sub, merged.shift(other), low))
        for name, known in merged.homes.items():
            if known.name == other.name:
                merged.homes[name] = _Merged(known.name, tuple(map(sub, known.shift, low)))
        merged.homes[ref.name] = _Merged(other.name, tuple(map(sub, distance, low)))
    return merged


def _distance(home: Refinement, ref: Refinement) -> tuple[int, ...] | None:
    """The distance of the origin of `ref` from the origin of `home`, when it is the same for all points."""
    differences = [theirs - ours for ours, theirs in zip(home.access, ref.access, strict=True)]
    return tuple(d.offset for d in differences) if all(d.is_constant for d in differences) else None


def _union(home: Refinement, ref: Refinement, distance: tuple[int, ...], low: tuple[int, ...]) -> Refinement:
    """The box around both views."""
    sizes = [max(h, d + r) - lo for h, d, r, lo in zip(home.sizes, distance, ref.sizes, low, strict=True)]
    strides = [h.stride if h.size > 1 else r.stride for h, r in zip(home.dims, ref.dims, strict=True)]
    reads, writes = home.dir.reads or ref.dir.reads, home.dir.writes or ref.dir.writes
    direction = (Direction.INOUT if reads else Direction.OUT) if writes else Direction.IN
    return replace(
        home.moved(low),
        dir=direction,
        dims=tuple(Dim(size, stride) for size, stride in zip(sizes, strides, strict=True)),
        agg=home.agg if home.dir.writes else ref.agg,
        tags=home.tags | ref.tags,
    )


def _outside_constraints(inner: Block) -> dict[Constraint, Constraint]:
    """The constraints over passed-in indices alone -> the same in the names of the outside."""
    passed = {index.name: index.affine for index in inner.indices if index.affine is not None}
    return {
        constraint: Constraint(constraint.affine.subs(passed))
        for constraint in inner.constraints
        if constraint.affine.names() <= passed.keys()
    }


def _add_half(
    fused: Block, inner: Block, homes: Mapping[str, _Merged], merged: _MergedViews, defined: dict[str, None]
) -> Block:
    """Appends one half, dissolved where it is no loop any more; `defined` are the scalars of the block before."""
    # Passed-in indices that only the lifted constraints used are dropped.
    used = used_indices(inner)
    inner = replace(inner, indices=tuple(i for i in inner.indices if not i.is_passed or i.name in used))
    # The distance of each view from the origin of the merged view around it.
    origins = {
        ref.name: tuple(a + s for a, s in zip(ref.access, homes[ref.source].shift, strict=True))
        for ref in inner.refinements
        if not ref.is_alloc
    }
    if _dissolves(inner, homes, merged, origins):
        return _dissolve(fused, inner, homes, origins, defined)
    refs = tuple(
        ref if ref.is_alloc else replace(ref, source=homes[ref.source].name, access=origins[ref.name])
        for ref in inner.refinements
    )
    return replace(fused, statements=(*fused.statements, replace(inner, refinements=refs)))


_Origins = Mapping[str, tuple[Affine, ...]]


def _dissolves(inner: Block, homes: Mapping[str, _Merged], merged: _MergedViews, origins: _Origins) -> bool:
    """Whether the statements of `inner` mean the same in the fused block itself, views of blocks moved along."""
    if inner.points > 1 or inner.constraints or inner.location:
        return False
    scalar = {n for s in inner.statements if not isinstance(s, Block) for n in (*reads_of(s), *writes_of(s))}
    for ref in inner.refinements:
        if ref.is_alloc:
            continue
        if any(affine.terms for affine in ref.access):
            return False
        if ref.name in scalar and any(affine.offset for affine in origins[ref.name]):
            return False
        if ref.dir.writes and ref.agg is not merged.views[merged.places[homes[ref.source].name]].agg:
            return False
    return True


def _dissolve(
    fused: Block, inner: Block, homes: Mapping[str, _Merged], origins: _Origins, defined: dict[str, None]
) -> Block:
    """Appends the statements of `inner`, on the views of the fused block and under names that it does not have."""
    inner = substitute(inner, {index.name: index.affine or Affine() for index in inner.indices})
    here = {ref.name for ref in fused.refinements} if inner.allocs else set[str]()
    taken = here | {ref.name for ref in inner.refinements}
    names: dict[str, str] = {}
    for ref in inner.refinements:
        if not ref.is_alloc:
            names[ref.name] = homes[ref.source].name
        elif ref.name in here:
            names[ref.name] = fresh(ref.name, taken)
            taken.add(names[ref.name])
    renamed = {old: new for old, new in names.items() if old != new}
    statements = [retarget(views_moved(statement, origins), renamed) for statement in inner.statements]
    allocs = tuple(replace(ref, name=names.get(ref.name, ref.name)) for ref in inner.allocs)
    # Scalars that both halves define get a new name in the second.
    mine = dict.fromkeys([name for s in statements if (name := scalar_defined(s)) is not None])
    scalars: dict[str, str] = {}
    for name in tuple(mine):
        if name in defined:
            scalars[name] = fresh(name, ChainMap(mine, defined))
            mine[scalars[name]] = None
    below = [moved_down(s, len(fused.statements)) for s in rename_scalars(statements, scalars)]
    return replace(fused, refinements=(*fused.refinements, *allocs), statements=(*fused.statements, *below))
