"""Value numbering: merged elements inside larger terms, under names that both programs share.

A consumer of a reduction (`relu` of a sum, a sum of products of sums) sees it as an element of an array. Whether two
reductions are the same array is decided by their contributions: the first (and last) operand tuple of an element says
which element of the other it must be, and then all contributions are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import TypeAlias

from stripe.ir import Agg, DType, Path
from stripe.ir.frozen import replace
from stripe.poly import Points, Relation, check_time, union
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.contributions import (
    Contribution,
    Definition,
    Images,
    Merge,
    by_term,
    image,
    reordering,
)
from stripe.verify.proof.definitions import Definitions
from stripe.verify.proof.relations import all_pairs, miscounted_keys, mismatch, once_each
from stripe.verify.proof.rules import Unprovable, remembered
from stripe.verify.proof.terms import (
    Atom,
    Called,
    Leaf,
    Operation,
    Read,
    Reduced,
    Term,
    fold,
    leaves,
    operand_order,
    ordered,
)


@dataclass(frozen=True)
class Reduction:
    """A reduction with a name: its contributions over its keys. `distinct`: no two elements have the same
    ones."""

    name: str
    agg: Agg
    dtype: DType
    contributions: tuple[Contribution, ...]
    keys: Points
    starts: frozenset[bool]
    distinct: bool

    @cached_property
    def terms(self) -> frozenset[Term]:
        return frozenset(c.term for c in self.contributions)

    @cached_property
    def once(self) -> bool:
        """Whether no operand tuple contributes twice to an element."""
        return all(once_each(contributions) for contributions in by_term(self.contributions).values())


@dataclass(frozen=True)
class NumberedSpecial:
    """A special with a name: its operation, the sizes of its outputs, and each operand's elements
    over (indices, place)."""

    op: str
    sizes: tuple[tuple[int, ...], ...]
    operands: tuple[tuple[Contribution, ...], ...]

    def same_as(self, other: NumberedSpecial) -> bool:
        """Whether the operation is the same and all operands are proved to hold the same."""
        return (self.op, self.sizes) == (other.op, other.sizes) and all(
            len(one[0].points.ins) == len(two[0].points.ins)
            and mismatch(one, two, counted=False, keys=one[0].points.ins) is None
            for one, two in zip(self.operands, other.operands, strict=True)
        )


@dataclass(frozen=True)
class _LeafMap:
    """The coordinates of a leaf from `offset` on, and where they lead."""

    offset: int
    relation: Relation


_Renamed: TypeAlias = tuple[Term, list[_LeafMap]]
"""A term over shared arrays, and where the coordinates of its leaves lead."""


class Numbering:
    """The value numbers: named reductions and specials of both programs.

    `incomplete` says why two elements of different names may yet be equal; while it is empty they are not. `relied` are
    the assumptions behind the merges that were found equal.
    """

    def __init__(self) -> None:
        self.reductions: dict[str, Reduction] = {}
        self.calls: list[NumberedSpecial] = []
        self.incomplete = ""
        self.relied: set[Assumption] = set()
        self._calls: dict[tuple[int, Path], int] = {}
        self._known: dict[tuple[int, Read], list[tuple[Leaf, Relation]] | Unprovable] = {}
        self._normal: dict[tuple[int, Read], Definition] = {}

    def prepare(self, definitions: Definitions, read: Read) -> None:
        """Names the reductions and specials that define a read. From the first read on this needs no deep recursion,
        and what comes later meets small terms."""
        definition = definitions.definition(read)
        if definition.merges:
            self.normal(definitions, read)
        for value in definition.values:
            for leaf in leaves(value.term):
                if isinstance(leaf, Called):
                    self._called(definitions, leaf)

    def normal(self, definitions: Definitions, read: Read) -> Definition:
        """The definition of a read in shared names alone."""
        key = (id(definitions), read)
        if key in self._normal:
            return self._normal[key]
        check_time()
        definition = definitions.definition(read)
        values: list[Contribution] = []
        merged: dict[tuple[Agg, DType], list[Merge]] = {}
        for merge in definition.merges:
            merged.setdefault((merge.agg, merge.dtype), []).append(merge)
        for contribution in definition.values:
            if not isinstance(contribution.term, Reduced):
                values += self.plain(definitions, contribution)
                continue
            # keys that hold a copy of merged elements are merges of the same contributions
            for merge in definitions.definition(contribution.term.read).merges:
                here = contribution.image.into(merge.keys)
                copies = _nonempty(replace(c, points=here.then(c.points)) for c in merge.contributions)
                if copies:
                    copy = replace(merge, contributions=copies, keys=here.domain)
                    merged.setdefault((merge.agg, merge.dtype), []).append(copy)
        merges = tuple(self._joined(definitions, *kind, found) for kind, found in merged.items())
        self._normal[key] = Definition(definition.keys, tuple(values), merges, definition.covered)
        return self._normal[key]

    def _joined(self, definitions: Definitions, agg: Agg, dtype: DType, merges: Sequence[Merge]) -> Merge:
        contributions = [
            plain for merge in merges for c in merge.contributions for plain in self.plain(definitions, c)
        ]
        keys = merges[0].keys
        if len(merges) > 1:
            keys = union([merge.keys for merge in merges], keys.names).coalesced()
        starts = frozenset[bool]().union(*(merge.starts for merge in merges))
        return Merge(agg, dtype, tuple(contributions), keys, starts)

    def plain(self, definitions: Definitions, contribution: Contribution) -> list[Contribution]:
        """The contribution with its reductions under their shared names: several where these differ by element."""
        found = [contribution]
        if any(isinstance(leaf, Reduced | Called) for leaf in leaves(contribution.term)):
            options = [
                (term, _through(contribution.at, steps))
                for term, steps in self._renamed(definitions, contribution.term)
            ]
            found = [replace(contribution, term=term, at=at) for term, at in options]
            if len(found) > 1:
                found = [*_nonempty(replace(c, points=c.points.into(c.at.domain)) for c in found)]
        if definitions.rules.thorough:
            return [replace(each, at=ordered(each.term, each.at)) for each in found]
        return found

    def _renamed(self, definitions: Definitions, term: Term) -> list[_Renamed]:
        """The term over shared arrays, in all ways; leaf by leaf, the place of its old coordinates and where they
        lead."""
        offset = 0

        def atom(leaf: Atom) -> list[_Renamed]:
            nonlocal offset
            start, offset = offset, offset + leaf.width
            if isinstance(leaf, Reduced):
                named = self.named(definitions, leaf.read)
                return [(name, [_LeafMap(start, relation)]) for name, relation in named]
            if isinstance(leaf, Called):
                leaf = self._called(definitions, leaf)
            names = tuple(f"{number}" for number in range(leaf.width))
            same = Relation.identity(Points.universe(names), "'")
            return [(leaf, [_LeafMap(start, same)] if names else [])]

        return fold(term, atom, _over_options)

    def _called(self, definitions: Definitions, term: Called) -> Leaf:
        """The shared name of a special's output: equal specials on equal operands have one name."""
        key = (id(definitions), term.path)
        if key not in self._calls:
            operands: list[tuple[Contribution, ...]] = []
            for access, values in definitions.operands(term.path):
                contributions = [
                    Contribution(p.term, Relation.identity(p.at.domain, ""), p.at, access) for p in values
                ]
                operands.append(tuple(plain for c in contributions for plain in self.plain(definitions, c)))
            outputs = (access for access in definitions.reaching.by_path[term.path] if access.is_write)
            fresh = NumberedSpecial(term.op, tuple(each.sizes for each in outputs), tuple(operands))
            equal = (number for number, known in enumerate(self.calls) if known.same_as(fresh))
            number = next(equal, len(self.calls))
            if number == len(self.calls):
                self.calls.append(fresh)
            self._calls[key] = number
        return Leaf(f"call{self._calls[key]}.{term.output}:{term.op}", term.width, term.dtype)

    def named(self, definitions: Definitions, read: Read) -> list[tuple[Leaf, Relation]]:
        """The shared names of a reduction, and from the keys of the read to the coordinates under each name. Elements
        that an earlier reduction has too take its name.
        """
        return remembered(self._known, (id(definitions), read), lambda: self._name(definitions, read))

    def _name(self, definitions: Definitions, read: Read) -> list[tuple[Leaf, Relation]]:
        (own,) = definitions.definition(read).merges
        merge = self._joined(definitions, own.agg, own.dtype, [own])
        found: list[tuple[Leaf, Relation]] = []
        for known in self.reductions.values():
            if (known.agg, known.dtype) != (merge.agg, merge.dtype) or not known.terms & set(
                by_term(merge.contributions)
            ):
                continue
            same = self.matched(merge, known)
            if same is not None:
                self.relied |= reordering(merge.agg, merge.dtype, merge.starts, known.starts)
                found.append((Leaf(known.name, len(known.keys.names), known.dtype), same))
                rest = _nonempty(
                    replace(c, points=c.points.outside(same.domain)) for c in merge.contributions
                )
                merge = replace(merge, contributions=rest, keys=merge.keys - same.domain)
                if not merge.contributions:
                    return found
        name = f"sum{len(self.reductions)}:{read.buffer}"
        repeats = _may_repeat(merge)
        fresh = Reduction(
            name, merge.agg, merge.dtype, merge.contributions, merge.keys, merge.starts, distinct=not repeats
        )
        self.reductions[name] = fresh
        leaf = Leaf(name, read.width, merge.dtype)
        # elements with the same contributions (of a broadcast) take the name of the first of them
        same = self.matched(merge, fresh) if repeats else None
        if same is None:
            return [*found, (leaf, Relation.identity(merge.keys, "'"))]
        return [*found, (leaf, same | Relation.identity(merge.keys - same.domain, "'"))]

    def matched(self, merge: Merge, known: Reduction) -> Relation | None:
        """From keys of `merge` to the keys of `known` whose elements have the same contributions; None when there
        are none.
        """
        mine, theirs = by_term(merge.contributions), by_term(known.contributions)
        # Matching of all contributions would take too long: the first and last operand tuples pair the keys.
        candidates, sure = _candidate_keys(merge.keys, mine, known.keys, theirs)
        if candidates.is_empty:
            return None
        # A pair stays where both sides have the same operand tuples under each term.
        different = Points.empty(merge.keys.names)
        for term in {**mine, **theirs}:
            here = image(mine[term]).within(candidates.domain) if term in mine else None
            there = candidates.then(image(theirs[term])) if term in theirs else None
            if here is None or there is None:
                only = there if here is None else here
                different = different if only is None else different | only.domain
            elif not here.equals(there):
                different = different | (here - there).domain | (there - here).domain
        same = candidates.outside(different)
        unclear = f"which elements of '{known.name.partition(':')[2]}' are equal is not clear"
        if not sure and not different.is_empty:
            self.incomplete = unclear
        if same.is_empty:
            return None
        if merge.agg.counts(merge.dtype) and not (known.once and all(map(once_each, mine.values()))):
            # The operands are equal as sets; sums and products count how often each contributes.
            left = _nonempty(replace(c, points=c.points.within(same.domain)) for c in merge.contributions)
            right = _nonempty(replace(c, points=same.then(c.points)) for c in known.contributions)
            try:
                different = miscounted_keys(left, right, merge.keys)
            except Unprovable as reason:
                self.incomplete = str(reason)
                return None
            if not sure and not different.is_empty:
                self.incomplete = unclear
            same = same.outside(different)
        return None if same.is_empty else same


_MOST_NAMES = 100


def _over_options(term: Operation, operands: list[list[_Renamed]]) -> list[_Renamed]:
    """An operation on each choice of its operands, in canonical order."""
    if prod(map(len, operands)) > _MOST_NAMES:
        raise Unprovable("an operation uses reductions that agree in too many pieces")
    result: list[_Renamed] = []
    for chosen in product(*operands):
        order = operand_order(term.op, [option[0] for option in chosen])
        args = tuple(chosen[k][0] for k in order)
        result.append((replace(term, args=args), [step for k in order for step in chosen[k][1]]))
    return result


def _nonempty(contributions: Iterable[Contribution]) -> tuple[Contribution, ...]:
    return tuple(c for c in contributions if not c.points.is_empty)


def _candidate_keys(keys: Points, mine: Images, known: Points, theirs: Images) -> tuple[Relation, bool]:
    """Pairs of keys whose first operand tuples agree by each term (and the last ones, if the first leave a choice),
    one for each key; and whether no other pair can have the same contributions.
    """
    candidates = _keys_with_same_ends(keys, mine, known, theirs, last=False)
    if candidates.is_empty or candidates.single_valued:
        return candidates.as_affine(), True
    candidates = candidates & _keys_with_same_ends(keys, mine, known, theirs, last=True)
    return (
        (candidates.as_affine(), True)
        if candidates.single_valued
        else (candidates.first().as_affine(), False)
    )


def _keys_with_same_ends(
    keys: Points, mine: Images, known: Points, theirs: Images, *, last: bool
) -> Relation:
    candidates: Relation | None = None
    for term in {**mine, **theirs}:
        images = [image(side[term]) if term in side else None for side in (mine, theirs)]
        ends = [each and (each.last() if last else each.first()) for each in images]
        step = Relation.empty(keys.names, known.names)
        if ends[0] is not None and ends[1] is not None:
            step = ends[0].then(ends[1].reversed())
        lacking = [
            all_keys if each is None else all_keys - each.domain
            for all_keys, each in zip((keys, known), images, strict=True)
        ]
        if not lacking[0].is_empty and not lacking[1].is_empty:  # neither side has the term there
            step = step | all_pairs(*lacking)
        candidates = step if candidates is None else candidates & step
    assert candidates is not None
    return candidates


def _may_repeat(merge: Merge) -> bool:
    """Whether two keys may have the same contributions."""
    terms = by_term(merge.contributions)
    for contributions in terms.values():
        each = image(contributions)
        if each.injective and merge.keys.subset_of(each.domain):
            return False
    first = _keys_with_same_ends(merge.keys, terms, merge.keys, terms, last=False)
    if first.single_valued:
        return False
    return not (first & _keys_with_same_ends(merge.keys, terms, merge.keys, terms, last=True)).single_valued


def _through(at: Relation, steps: Sequence[_LeafMap]) -> Relation:
    """Applies a step to each leaf's coordinates."""
    if not steps:
        return at
    if all(a.offset < b.offset for a, b in pairwise(steps)):
        whole = steps[0].relation
        for step in steps[1:]:
            whole = whole.across(step.relation)
        return at.then(whole)
    names = tuple(f"{number}" for number in range(len(at.outs)))
    select = Relation.identity(Points.universe(names), "'")
    result: Relation | None = None
    for step in steps:
        kept = [f"{name}'" for name in names[step.offset : step.offset + len(step.relation.ins)]]
        mapped = at.then(select.keep(kept)).then(step.relation)
        result = mapped if result is None else result.beside(mapped)
    assert result is not None
    return result
