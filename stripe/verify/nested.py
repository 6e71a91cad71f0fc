"""Definitions that differ in the reductions that their terms use: these are compared where both are used.

`mismatch` knows reductions by name only, and two may be equal although they got different names (or equal at those elements
that are used). Here elements are paired by their key, or contributions by the operands that are no reductions, and the
contributions of the paired reductions are compared. What this cannot decide is *unknown*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stripe.poly import Relation
from stripe.verify.canon import COUNTED, Canon, Reduction
from stripe.verify.compare import Mismatch, anything, by_term, mismatch, operand_at, sampled
from stripe.verify.definition import Definition, Group, Part, Unprovable
from stripe.verify.terms import Leaf, Operation, Term

_DEPTH = 8

Aligned = tuple[Term, Term, int, int]
"""Two leaves at the same place of two terms, and where their coordinates begin."""


def difference(canon: Canon, first: Definition, second: Definition, depth: int = _DEPTH) -> Mismatch | None:
    """Some difference between two definitions over the same keys; None when they are equal."""
    found = values_difference(canon, first.values, second.values, first.keys, depth)
    groups = [{(group.agg, group.dtype): group for group in side.groups} for side in (first, second)]
    for kind in dict.fromkeys([*groups[0], *groups[1]]):
        if found is None:
            one, two = (_parts(side.get(kind)) for side in groups)
            found = group_difference(canon, one, two, first.keys, kind[0] in COUNTED, depth)
    if found is None:
        return None
    before = found.before or anything(_all_parts(first), found.key)
    after = found.after or anything(_all_parts(second), found.key)
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
    if found is None or not (_uses_reductions(first) and _uses_reductions(second)):
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
    canon: Canon, first: Sequence[Part], second: Sequence[Part], keys: Sequence[str], counted: bool, depth: int
) -> Mismatch | None:
    """The difference between elements that are merged from contributions."""
    found = mismatch(first, second, counted=counted, keys=keys)
    if found is None:
        return None
    found = Mismatch(
        found.key,
        found.before or anything(first, found.key),
        found.after or anything(second, found.key),
        found.how,
    )
    if not (_uses_reductions(first) and _uses_reductions(second)):
        return found
    if found.before is None or found.after is None or depth == 0:
        return found
    pairs = aligned(found.before.part.term, found.after.part.term)
    if pairs is None or not any(_is_reduction(one) for one, _, _, _ in pairs):
        return found
    one, two = by_term(first)[found.before.part.term], by_term(second)[found.after.part.term]
    if len(by_term(first)) > 1 or len(by_term(second)) > 1:
        raise Unprovable("a sum has several kinds of terms that use reductions")
    extended = [_by_anchor(parts, pairs, side, keys) for side, parts in enumerate((one, two))]
    inner = values_difference(
        canon, [extended[0]], [extended[1]], extended[0].points.ins, depth - 1
    )
    if inner is None:
        return None
    return Mismatch(dict(list(inner.key.items())[: len(keys)]), inner.before, inner.after, inner.how)


def _by_anchor(parts: Sequence[Part], pairs: Sequence[Aligned], side: int, keys: Sequence[str]) -> Part:
    """The contributions as values over (key, coordinates of the leaves that are no reductions)."""
    if len(parts) > 1 or not parts[0].points.paired().then(parts[0].points.keyed(parts[0].at)).injective:
        raise Unprovable("contributions that use reductions occur several times")
    part = parts[0]
    anchors = [
        offset + k
        for pair in pairs
        for offset in (pair[2 + side],)
        for k in range(pair[side].width)
        if not _is_reduction(pair[side])
    ]
    width = len(part.at.outs)
    names = tuple(f"a{number}" for number in range(width))
    anchored = part.at.named(part.at.ins, names).keep([names[k] for k in anchors])
    points = part.points.paired_with(anchored)
    if not points.single_valued:
        raise Unprovable("contributions that use reductions are not told apart by their other operands")
    return replace(part, points=points.named((*keys, *anchored.outs), part.points.outs))


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
        if not (_is_reduction(one) and _is_reduction(two)):
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
    if depth == 0:
        raise Unprovable("reductions are nested too deep")
    first, second = _reduction(canon, one), _reduction(canon, two)
    mine = [replace(p, points=here.then(p.points)) for p in first.parts]
    theirs = [replace(p, points=there.then(p.points)) for p in second.parts]
    if (first.agg, first.dtype) != (second.agg, second.dtype):
        key, _ = sampled(here, keys)
        return Mismatch(key, anything(mine, key), anything(theirs, key), "other operands")
    return group_difference(canon, mine, theirs, keys, first.agg in COUNTED, depth - 1)


def _reduction(canon: Canon, term: Term) -> Reduction:
    assert isinstance(term, Leaf)
    found = canon.find(term.array)
    assert found is not None
    return found


def _is_reduction(term: Term) -> bool:
    return isinstance(term, Leaf) and term.array.startswith("sum")


def _uses_reductions(parts: Sequence[Part]) -> bool:
    return any(_is_reduction(leaf) for part in parts for leaf in _leaves(part.term))


def _leaves(term: Term) -> Iterator[Term]:
    if isinstance(term, Operation):
        for arg in term.args:
            yield from _leaves(arg)
    else:
        yield term


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

