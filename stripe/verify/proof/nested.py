"""Definitions that differ in the reductions that their terms use: the reductions are compared where both are used.

`mismatch` knows reductions by name only, and two may be equal although they got different names (or equal at those
elements that are used). Here elements are paired by their key, or contributions by the operands that are no
reductions, and the contributions of the paired reductions are compared. An undecided comparison is *unknown*.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from stripe.ir.frozen import replace
from stripe.poly import Relation
from stripe.verify.proof.contributions import Contribution, Definition, reordering
from stripe.verify.proof.numbering import Numbering, Reduction
from stripe.verify.proof.relations import Mismatch, anything, mismatch, operand_at, sampled
from stripe.verify.proof.rules import Unprovable
from stripe.verify.proof.terms import Leaf, Operation, Term, fold, leaves

DEPTH = 8
"""How many reductions of reductions are looked into."""

Aligned = tuple[Term, Term, int, int]
"""Two leaves at the same place of two terms, and where their coordinates begin."""


def difference(
    numbering: Numbering, first: Definition, second: Definition, depth: int = DEPTH
) -> Mismatch | None:
    """Some difference between two definitions over the same keys; None when they are equal.

    With `depth` 0 reductions are not looked into: two of different names count as different.
    """
    found = values_difference(numbering, first.values, second.values, first.keys, depth)
    merges = [{(merge.agg, merge.dtype): merge for merge in side.merges} for side in (first, second)]
    for kind in dict.fromkeys([*merges[0], *merges[1]]):
        numbering.relied |= reordering(*kind, *(side[kind].starts for side in merges if kind in side))
        if found is None:
            one, two = (side[kind].contributions if kind in side else () for side in merges)
            found = merge_difference(numbering, one, two, first.keys, kind[0].counts(kind[1]), depth)
    if found is None:
        return None
    every = [
        [*side.values, *(c for merge in side.merges for c in merge.contributions)] for side in (first, second)
    ]
    return _filled(found, *every)


def _filled(found: Mismatch, first: Sequence[Contribution], second: Sequence[Contribution]) -> Mismatch:
    """The difference with an operand tuple of both sides, where these have one for the key."""
    before = found.before or anything(first, found.key, found.after)
    after = found.after or anything(second, found.key, found.before)
    return Mismatch(found.key, before, after, found.how)


def values_difference(
    numbering: Numbering,
    first: Sequence[Contribution],
    second: Sequence[Contribution],
    keys: Sequence[str],
    depth: int,
) -> Mismatch | None:
    """The difference between elements with one value each."""
    found = mismatch(first, second, counted=False, keys=keys)
    if found is None or depth == 0 or not (_uses_reductions(first) and _uses_reductions(second)):
        return found
    mine, theirs = ([(c, c.image) for c in contributions] for contributions in (first, second))
    for side, other in ((mine, theirs), (theirs, mine)):
        for contribution, at in side:
            left = at
            for _, opposite in other:
                left = left.outside(opposite.domain)
            if not left.is_empty:
                key, coordinates = sampled(left, keys)
                own = operand_at([contribution], key, coordinates)
                pair = (own, None) if side is mine else (None, own)
                return Mismatch(key, *pair, "other operands")
    for contribution, at in mine:
        for opposite, other_at in theirs:
            both = at.domain & other_at.domain
            if both.is_empty:
                continue
            found = _paired(
                numbering, (contribution, at.within(both)), (opposite, other_at.within(both)), keys, depth
            )
            if found is not None:
                return found
    return None


def merge_difference(
    numbering: Numbering,
    first: Sequence[Contribution],
    second: Sequence[Contribution],
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
    # without the coordinates of reductions: other operands differ, whatever the reductions are
    veiled = [[replace(c, term=_veil(c.term), at=_anchors(c)) for c in side] for side in (first, second)]
    found = mismatch(*veiled, counted=counted, keys=keys)
    if found is not None:
        return _filled(found, *veiled)
    # contributions with the same term, all reductions taken as equal, are compared with each other
    kinds: list[dict[Term, list[Contribution]]] = [{}, {}]
    for kind_of, side in zip(kinds, (first, second), strict=True):
        for contribution in side:
            kind_of.setdefault(_veil(contribution.term), []).append(contribution)
    for kind, contributions in kinds[0].items():
        mine, theirs = (_by_anchor(side, keys) for side in (contributions, kinds[1][kind]))
        inner = values_difference(numbering, mine, theirs, mine[0].points.ins, depth - 1)
        if inner is not None:
            key = dict(list(inner.key.items())[: len(keys)])
            return Mismatch(key, inner.before, inner.after, inner.how)
    return None


def _veil(term: Term) -> Term:
    """The term with all its reductions as one leaf."""
    return fold(
        term,
        lambda leaf: Leaf("sum:a reduction", 0, leaf.dtype) if _is_reduction(leaf) else leaf,
        lambda operation, args: replace(operation, args=tuple(args)),
    )


def _anchors(contribution: Contribution) -> Relation:
    """To the coordinates of the leaves besides reductions."""
    names: list[str] = []
    offset = 0
    for leaf in leaves(contribution.term):
        if not _is_reduction(leaf):
            names += [f"a{number}" for number in range(offset, offset + leaf.width)]
        offset += leaf.width
    return contribution.at.named(contribution.at.ins, [f"a{number}" for number in range(offset)]).keep(names)


def _by_anchor(contributions: Sequence[Contribution], keys: Sequence[str]) -> list[Contribution]:
    """The contributions as values over (key, coordinates of the leaves that are no reductions)."""
    result: list[Contribution] = []
    for contribution in contributions:
        anchors = _anchors(contribution)
        names = tuple(f"a{len(keys) + number}" for number in range(len(anchors.outs)))
        points = contribution.points.paired_with(anchors.named(anchors.ins, names))
        if not points.single_valued:
            raise Unprovable(
                "contributions that use reductions are not distinguished by their other operands"
            )
        result.append(replace(contribution, points=points.named((*keys, *names), contribution.points.outs)))
    domains = [c.points.domain for c in result]
    if any(not a.disjoint(b) for a, b in combinations(domains, 2)):
        raise Unprovable("contributions that use reductions are not distinguished by their other operands")
    return result


def _paired(
    numbering: Numbering,
    mine: tuple[Contribution, Relation],
    theirs: tuple[Contribution, Relation],
    keys: Sequence[str],
    depth: int,
) -> Mismatch | None:
    """The difference between two values over the same keys."""
    (contribution, at), (other, other_at) = mine, theirs
    pairs = aligned(contribution.term, other.term)
    if pairs is None:
        return _sample(mine, theirs, at, keys)
    for one, two, left, right in pairs:
        here, there = _slice(at, left, one.width), _slice(other_at, right, two.width)
        if one == two and here.equals(there):
            continue
        known = one == two and _is_reduction(one) and _reduction(numbering, one).distinct
        if known or not (_is_reduction(one) and _is_reduction(two)):
            extra = (here - there).domain if one == two else at.domain
            return _sample(mine, theirs, at.within(extra), keys)
        found = _reductions(numbering, one, two, here, there, keys, depth)
        if found is not None:
            return found
    return None


def _sample(
    mine: tuple[Contribution, Relation],
    theirs: tuple[Contribution, Relation],
    at: Relation,
    keys: Sequence[str],
) -> Mismatch:
    key, coordinates = sampled(at, keys)
    return Mismatch(
        key, operand_at([mine[0]], key, coordinates), anything([theirs[0]], key), "other operands"
    )


def _reductions(
    numbering: Numbering,
    one: Term,
    two: Term,
    here: Relation,
    there: Relation,
    keys: Sequence[str],
    depth: int,
) -> Mismatch | None:
    """The difference between a reduction's elements `here` and another's `there`, both over the same keys."""
    if depth == 1:
        raise Unprovable("reductions are nested too deep")
    first, second = _reduction(numbering, one), _reduction(numbering, two)
    mine, theirs = _used(first, here), _used(second, there)
    if (first.agg, first.dtype) != (second.agg, second.dtype):
        key, _ = sampled(here, keys)
        return Mismatch(key, anything(mine, key), anything(theirs, key), "other operands")
    numbering.relied |= reordering(first.agg, first.dtype, first.starts, second.starts)
    return merge_difference(numbering, mine, theirs, keys, first.agg.counts(first.dtype), depth - 1)


def _used(reduction: Reduction, at: Relation) -> list[Contribution]:
    """The contributions to the elements that `at` leads to; some elements get none by some terms."""
    contributions = (replace(c, points=at.then(c.points)) for c in reduction.contributions)
    return [c for c in contributions if not c.points.is_empty]


def _reduction(numbering: Numbering, term: Term) -> Reduction:
    assert isinstance(term, Leaf)
    return numbering.reductions[term.array]


def _is_reduction(term: Term) -> bool:
    return isinstance(term, Leaf) and term.array.startswith("sum")


def _uses_reductions(contributions: Sequence[Contribution]) -> bool:
    return any(_is_reduction(leaf) for c in contributions for leaf in leaves(c.term))


def _slice(at: Relation, offset: int, width: int) -> Relation:
    names = tuple(f"{number}" for number in range(len(at.outs)))
    return at.named(at.ins, names).keep(names[offset : offset + width])


def aligned(first: Term, second: Term) -> list[Aligned] | None:
    """The leaves of two terms side by side; None when the terms differ in more than their reductions."""
    found: list[Aligned] = []
    waiting = [(first, second, 0, 0)]
    while waiting:
        one, two, left, right = waiting.pop()
        if isinstance(one, Operation) and isinstance(two, Operation):
            if (one.op, one.dtype, len(one.args)) != (two.op, two.dtype, len(two.args)):
                return None
            inner: list[Aligned] = []
            for mine, theirs in zip(one.args, two.args, strict=True):
                inner.append((mine, theirs, left, right))
                left, right = left + mine.width, right + theirs.width
            waiting += reversed(inner)
        elif one == two or (_is_reduction(one) and _is_reduction(two)):
            found.append((one, two, left, right))
        else:
            return None
    return found
