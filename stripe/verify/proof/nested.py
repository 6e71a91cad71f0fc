"""Definitions that differ in the reductions that their terms use: these are compared where both are used.

`mismatch` knows reductions by name only, and two may be equal although they got different names (or equal at those
elements that are used). Here elements are paired by their key, or contributions by the operands that are no
reductions, and the contributions of the paired reductions are compared. What this cannot decide is *unknown*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from stripe.poly import Relation
from stripe.verify.proof.contributions import Definition, Group, Part, is_counted
from stripe.verify.proof.definitions import Unprovable
from stripe.verify.proof.numbering import Canon, Reduction
from stripe.verify.proof.relations import Mismatch, anything, mismatch, operand_at, sampled
from stripe.verify.proof.terms import Leaf, Operation, Term, leaves

DEPTH = 8
"""How many reductions of reductions are looked into."""

Aligned = tuple[Term, Term, int, int]
"""Two leaves at the same place of two terms, and where their coordinates begin."""


def difference(canon: Canon, first: Definition, second: Definition, depth: int = DEPTH) -> Mismatch | None:
    """Some difference between two definitions over the same keys; None when they are equal.

    With `depth` 0 reductions are not looked into: two of different names count as different.
    """
    found = values_difference(canon, first.values, second.values, first.keys, depth)
    groups = [{(group.agg, group.dtype): group for group in side.groups} for side in (first, second)]
    for kind in dict.fromkeys([*groups[0], *groups[1]]):
        if found is None:
            one, two = (_parts(side.get(kind)) for side in groups)
            found = group_difference(canon, one, two, first.keys, is_counted(*kind), depth)
    if found is None:
        return None
    return _filled(found, _all_parts(first), _all_parts(second))


def _filled(found: Mismatch, first: Sequence[Part], second: Sequence[Part]) -> Mismatch:
    """The difference with something on both sides, where there is something."""
    before = found.before or anything(first, found.key, found.after)
    after = found.after or anything(second, found.key, found.before)
    return Mismatch(found.key, before, after, found.how)


def _parts(group: Group | None) -> tuple[Part, ...]:
    return () if group is None else group.parts


def _all_parts(definition: Definition) -> list[Part]:
    return [*definition.values, *(part for group in definition.groups for part in group.parts)]


def values_difference(
    canon: Canon, first: Sequence[Part], second: Sequence[Part], keys: Sequence[str], depth: int
) -> Mismatch | None:
    """The difference between elements that have one definition each."""
    found = mismatch(first, second, counted=False, keys=keys)
    if found is None or depth == 0 or not (_uses_reductions(first) and _uses_reductions(second)):
        return found
    mine, theirs = ([(part, part.image) for part in parts] for parts in (first, second))
    for side, other in ((mine, theirs), (theirs, mine)):
        for part, at in side:
            left = at
            for _, opposite in other:
                left = left.outside(opposite.domain)
            if not left.is_empty:
                key, coordinates = sampled(left, keys)
                own = operand_at([part], key, coordinates)
                return Mismatch(key, own, None, "other operands") if side is mine else Mismatch(key, None, own, "other operands")  # fmt: skip  # noqa: E501
    for part, at in mine:
        for opposite, other_at in theirs:
            both = at.domain & other_at.domain
            if both.is_empty:
                continue
            found = _paired(canon, (part, at.within(both)), (opposite, other_at.within(both)), keys, depth)
            if found is not None:
                return found
    return None


def group_difference(
    canon: Canon,
    first: Sequence[Part],
    second: Sequence[Part],
    keys: Sequence[str],
    counted: bool,
    depth: int,
) -> Mismatch | None:
    """The difference between elements that are merged from contributions."""
    found = mismatch(first, second, counted=counted, keys=keys)
    if found is None:
        return None
    if depth == 0 or not (_uses_reductions(first) and _uses_reductions(second)):
        return _filled(found, first, second)
    if depth == 1:
        raise Unprovable("reductions are nested too deep")
    veiled = [[_veiled(part) for part in side] for side in (first, second)]
    found = mismatch(*veiled, counted=counted, keys=keys)
    if found is not None:  # other operands, whatever the reductions are
        return _filled(found, *veiled)
    kinds = [_by_kind(side) for side in (first, second)]
    for kind, parts in kinds[0].items():
        mine, theirs = (_by_anchor(side, keys) for side in (parts, kinds[1][kind]))
        inner = values_difference(canon, mine, theirs, mine[0].points.ins, depth - 1)
        if inner is not None:
            key = dict(list(inner.key.items())[: len(keys)])
            return Mismatch(key, inner.before, inner.after, inner.how)
    return None


def _by_kind(parts: Sequence[Part]) -> dict[Term, list[Part]]:
    """The parts by their terms, reductions told apart by nothing."""
    found: dict[Term, list[Part]] = {}
    for part in parts:
        found.setdefault(_veil(part.term), []).append(part)
    return found


def _veil(term: Term) -> Term:
    if isinstance(term, Operation):
        return replace(term, args=tuple(_veil(arg) for arg in term.args))
    return Leaf("sum:a reduction", 0, term.dtype) if _is_reduction(term) else term


def _veiled(part: Part) -> Part:
    """The contribution without the coordinates of its reductions."""
    return replace(part, term=_veil(part.term), at=_anchors(part))


def _anchors(part: Part) -> Relation:
    """To the coordinates of the leaves that are no reductions."""
    names: list[str] = []
    offset = 0
    for leaf in leaves(part.term):
        if not _is_reduction(leaf):
            names += [f"a{number}" for number in range(offset, offset + leaf.width)]
        offset += leaf.width
    return part.at.named(part.at.ins, [f"a{number}" for number in range(offset)]).keep(names)


def _by_anchor(parts: Sequence[Part], keys: Sequence[str]) -> list[Part]:
    """The contributions as values over (key, coordinates of the leaves that are no reductions)."""
    result: list[Part] = []
    for part in parts:
        anchors = _anchors(part)
        names = tuple(f"a{len(keys) + number}" for number in range(len(anchors.outs)))
        points = part.points.paired_with(anchors.named(anchors.ins, names))
        if not points.single_valued:
            raise Unprovable("contributions that use reductions are not told apart by their other operands")
        result.append(replace(part, points=points.named((*keys, *names), part.points.outs)))
    domains = [part.points.domain for part in result]
    if any(not a.disjoint(b) for a, b in combinations(domains, 2)):
        raise Unprovable("contributions that use reductions are not told apart by their other operands")
    return result


def _paired(
    canon: Canon, mine: tuple[Part, Relation], theirs: tuple[Part, Relation], keys: Sequence[str], depth: int
) -> Mismatch | None:
    """The difference between two values over the same keys."""
    (part, at), (other, other_at) = mine, theirs
    pairs = aligned(part.term, other.term)
    if pairs is None:
        return _sample(mine, theirs, at, keys)
    for one, two, left, right in pairs:
        here, there = _slice(at, left, one.width), _slice(other_at, right, two.width)
        if one == two and here.equals(there):
            continue
        known = one == two and _is_reduction(one) and _reduction(canon, one).distinct
        if known or not (_is_reduction(one) and _is_reduction(two)):
            extra = (here - there).domain if one == two else at.domain
            return _sample(mine, theirs, at.within(extra), keys)
        found = _reductions(canon, one, two, here, there, keys, depth)
        if found is not None:
            return found
    return None


def _sample(
    mine: tuple[Part, Relation], theirs: tuple[Part, Relation], at: Relation, keys: Sequence[str]
) -> Mismatch:
    key, coordinates = sampled(at, keys)
    return Mismatch(
        key, operand_at([mine[0]], key, coordinates), anything([theirs[0]], key), "other operands"
    )


def _reductions(
    canon: Canon, one: Term, two: Term, here: Relation, there: Relation, keys: Sequence[str], depth: int
) -> Mismatch | None:
    """The difference between a reduction's elements `here` and another's `there`, both over the same keys."""
    if depth == 1:
        raise Unprovable("reductions are nested too deep")
    first, second = _reduction(canon, one), _reduction(canon, two)
    mine, theirs = _used(first, here), _used(second, there)
    if (first.agg, first.dtype) != (second.agg, second.dtype):
        key, _ = sampled(here, keys)
        return Mismatch(key, anything(mine, key), anything(theirs, key), "other operands")
    return group_difference(canon, mine, theirs, keys, is_counted(first.agg, first.dtype), depth - 1)


def _used(reduction: Reduction, at: Relation) -> list[Part]:
    """The contributions to the elements that `at` leads to; some get none by one or the other term."""
    parts = (replace(part, points=at.then(part.points)) for part in reduction.parts)
    return [part for part in parts if not part.points.is_empty]


def _reduction(canon: Canon, term: Term) -> Reduction:
    assert isinstance(term, Leaf)
    return canon.reductions[term.array]


def _is_reduction(term: Term) -> bool:
    return isinstance(term, Leaf) and term.array.startswith("sum")


def _uses_reductions(parts: Sequence[Part]) -> bool:
    return any(_is_reduction(leaf) for part in parts for leaf in leaves(part.term))


def _slice(at: Relation, offset: int, width: int) -> Relation:
    names = tuple(f"{number}" for number in range(len(at.outs)))
    return at.named(at.ins, names).keep(names[offset : offset + width])


def aligned(first: Term, second: Term, left: int = 0, right: int = 0) -> list[Aligned] | None:
    """The leaves of two terms side by side; None when the terms differ in more than their reductions."""
    if isinstance(first, Operation) and isinstance(second, Operation):
        if (first.op, first.dtype, len(first.args)) != (second.op, second.dtype, len(second.args)):
            return None
        found: list[Aligned] = []
        for one, two in zip(first.args, second.args, strict=True):
            inner = aligned(one, two, left, right)
            if inner is None:
                return None
            found += inner
            left, right = left + one.width, right + two.width
        return found
    if first == second or (_is_reduction(first) and _is_reduction(second)):
        return [(first, second, left, right)]
    return None
