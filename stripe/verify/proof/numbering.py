"""Merged elements inside larger terms, under names that both programs share.

A consumer of a reduction (`relu` of a sum, a sum of products of sums) sees it as an element of an array. Whether two
reductions are the same array is decided by their contributions: the first (and last) operand tuple of an element says
which element of the other it must be, and then all contributions are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import prod

from stripe.ir import Agg, DType, Path, Special, TagValue
from stripe.poly import Points, Relation, union
from stripe.verify.proof.commute import ordered
from stripe.verify.proof.contributions import Definition, Group, Images, Part, by_term, image, is_counted
from stripe.verify.proof.definitions import Definer, Unprovable
from stripe.verify.proof.relations import miscounted_keys, mismatch, once_each
from stripe.verify.proof.terms import Called, Leaf, Node, Operation, Reduced, Term, leaves, operand_order


@dataclass(frozen=True)
class Reduction:
    """A reduction that has a name: its contributions over its keys. `distinct`: no two elements have the same
    ones."""

    name: str
    agg: Agg
    dtype: DType
    parts: tuple[Part, ...]
    keys: Points
    distinct: bool

    @cached_property
    def terms(self) -> frozenset[Term]:
        return frozenset(part.term for part in self.parts)

    @cached_property
    def once(self) -> bool:
        """Whether no operand tuple contributes twice to an element."""
        return all(once_each(parts) for parts in by_term(self.parts).values())


@dataclass(frozen=True)
class Call:
    """A special that has a name: its operation with parameters, the sizes of its outputs, and each operand's elements
    over (indices, place)."""

    op: tuple[str, tuple[tuple[str, TagValue | None], ...]]
    sizes: tuple[tuple[int, ...], ...]
    operands: tuple[tuple[Part, ...], ...]

    def same_as(self, other: Call) -> bool:
        """Whether the operation is the same and all operands are proved to hold the same."""
        return (self.op, self.sizes) == (other.op, other.sizes) and all(
            len(one[0].points.ins) == len(two[0].points.ins)
            and mismatch(one, two, counted=False, keys=one[0].points.ins) is None
            for one, two in zip(self.operands, other.operands, strict=True)
        )


@dataclass(frozen=True)
class _Step:
    """The coordinates of a leaf from `offset` on, and where they lead."""

    offset: int
    relation: Relation


class Canon:
    """The pool of named reductions and specials of both programs.

    `incomplete` says why two elements of different names may yet be equal; while it is empty they are not.
    """

    def __init__(self) -> None:
        self.reductions: dict[str, Reduction] = {}
        self.calls: list[Call] = []
        self.incomplete = ""
        self._calls: dict[tuple[int, Path], int] = {}
        self._known: dict[tuple[int, Node], list[tuple[Leaf, Relation]]] = {}
        self._normal: dict[tuple[int, Node], Definition] = {}

    def normal(self, definer: Definer, node: Node) -> Definition:
        """The definition of a node without any reference to the program's own nodes."""
        key = (id(definer), node)
        if key not in self._normal:
            self._normal[key] = self._normalized(definer, definer.definition(node))
        return self._normal[key]

    def _normalized(self, definer: Definer, definition: Definition) -> Definition:
        values: list[Part] = []
        merged: dict[tuple[Agg, DType], list[Group]] = {}
        for group in definition.groups:
            merged.setdefault((group.agg, group.dtype), []).append(group)
        for part in definition.values:
            if not isinstance(part.term, Reduced):
                values += self.plain(definer, part)
                continue
            for group in definer.definition(part.term.node).groups:
                copy = _copied(part, group)
                if copy.parts:
                    merged.setdefault((group.agg, group.dtype), []).append(copy)
        groups = [self._joined(definer, agg, dtype, parts) for (agg, dtype), parts in merged.items()]
        return Definition(definition.keys, tuple(values), tuple(groups), definition.covered)

    def _joined(self, definer: Definer, agg: Agg, dtype: DType, groups: Sequence[Group]) -> Group:
        parts = [plain for group in groups for part in group.parts for plain in self.plain(definer, part)]
        keys = groups[0].keys
        if len(groups) > 1:
            keys = union([group.keys for group in groups], keys.names).coalesced()
        return Group(agg, dtype, tuple(parts), keys)

    def plain(self, definer: Definer, part: Part) -> list[Part]:
        """The contribution with its reductions under their shared names: several where these differ by element."""
        if not any(isinstance(leaf, Reduced | Called) for leaf in leaves(part.term)):
            found = [part]
        else:
            found = self._shared(definer, part)
        if definer.rules.thorough:
            return [replace(each, at=ordered(each.term, each.at)) for each in found]
        return found

    def _shared(self, definer: Definer, part: Part) -> list[Part]:
        options = self._renamed(definer, part.term, 0)
        if len(options) == 1:
            term, steps = options[0]
            return [replace(part, term=term, at=_through(part.at, steps))]
        result: list[Part] = []
        for term, steps in options:
            at = _through(part.at, steps)
            points = part.points.into(at.domain)
            if not points.is_empty:
                result.append(replace(part, term=term, at=at, points=points))
        return result

    def _renamed(self, definer: Definer, term: Term, offset: int) -> list[tuple[Term, list[_Step]]]:
        """The term over shared arrays, in all ways; leaf by leaf, the place of its old coordinates and where they
        lead."""
        if isinstance(term, Reduced):
            return [(leaf, [_Step(offset, relation)]) for leaf, relation in self.named(definer, term.node)]
        if isinstance(term, Called):
            term = self._called(definer, term)
        if not isinstance(term, Operation):
            names = tuple(f"{number}" for number in range(term.width))
            return [(term, [_Step(offset, Points.universe(names).identity("'"))] if names else [])]
        operands: list[list[tuple[Term, list[_Step]]]] = []
        for arg in term.args:
            operands.append(self._renamed(definer, arg, offset))
            offset += arg.width
        if prod(map(len, operands)) > _MOST_NAMES:
            raise Unprovable("an operation uses reductions that agree in too many pieces")
        result: list[tuple[Term, list[_Step]]] = []
        for chosen in product(*operands):
            order = operand_order(term.op, [option[0] for option in chosen])
            args = tuple(chosen[k][0] for k in order)
            result.append((replace(term, args=args), [step for k in order for step in chosen[k][1]]))
        return result

    def _called(self, definer: Definer, term: Called) -> Leaf:
        """The shared name of a special's output: that of another special of the same kind on the same operands."""
        key = (id(definer), term.path)
        if key not in self._calls:
            self._calls[key] = self._call_name(definer, term)
        return Leaf(f"call{self._calls[key]}.{term.output}:{term.op}", term.width, term.dtype)

    def _call_name(self, definer: Definer, term: Called) -> int:
        statement = definer.flow.by_path[term.path][0].statement
        assert isinstance(statement, Special)
        operands: list[tuple[Part, ...]] = []
        for access, pieces in definer.operands(term.path):
            parts = [Part(p.term, p.at.domain.identity(""), p.at, access) for p in pieces]
            operands.append(tuple(plain for part in parts for plain in self.plain(definer, part)))
        values = tuple((word, statement.tags.get(word)) for word in statement.tags)
        parameters = tuple(pair for pair in values if pair[1] is not None)
        outputs = (access for access in definer.flow.by_path[term.path] if access.is_write)
        fresh = Call((statement.op, parameters), tuple(each.sizes for each in outputs), tuple(operands))
        for number, known in enumerate(self.calls):
            if known.same_as(fresh):
                return number
        self.calls.append(fresh)
        return len(self.calls) - 1

    def named(self, definer: Definer, node: Node) -> list[tuple[Leaf, Relation]]:
        """The shared names of a reduction, and from the node's keys to the coordinates under each name: elements that
        another reduction has go by that one's name.
        """
        key = (id(definer), node)
        if key not in self._known:
            self._known[key] = self._name(definer, node)
        return self._known[key]

    def _name(self, definer: Definer, node: Node) -> list[tuple[Leaf, Relation]]:
        (own,) = definer.definition(node).groups
        group = self._joined(definer, own.agg, own.dtype, [own])
        found: list[tuple[Leaf, Relation]] = []
        for known in self.reductions.values():
            if (known.agg, known.dtype) != (group.agg, group.dtype) or not known.terms & set(
                by_term(group.parts)
            ):
                continue
            same = self.matched(group, known)
            if same is not None:
                found.append((Leaf(known.name, len(known.keys.names), known.dtype), same))
                group = _without(group, same.domain)
                if not group.parts:
                    return found
        name = f"sum{len(self.reductions)}:{node.buffer}"
        repeats = _may_repeat(group)
        fresh = Reduction(name, group.agg, group.dtype, group.parts, group.keys, distinct=not repeats)
        self.reductions[name] = fresh
        leaf = Leaf(name, node.width, group.dtype)
        # elements with the same contributions (of a broadcast) go by the name of the first of them
        same = self.matched(group, fresh) if repeats else None
        if same is None:
            return [*found, (leaf, group.keys.identity("'"))]
        return [*found, (leaf, same | (group.keys - same.domain).identity("'"))]

    def matched(self, group: Group, known: Reduction) -> Relation | None:
        """From keys of `group` to those keys of `known` whose elements have the same contributions; None when there
        are none.
        """
        mine, theirs = by_term(group.parts), by_term(known.parts)
        guess, sure = _guess(group.keys, mine, known.keys, theirs)
        if guess.is_empty:
            return None
        different = Points.empty(group.keys.names)
        for term in {**mine, **theirs}:
            here = image(mine[term]).within(guess.domain) if term in mine else None
            there = guess.then(image(theirs[term])) if term in theirs else None
            different = different | _unequal(here, there, group.keys.names)
        same = guess.outside(different)
        if not sure and not different.is_empty:
            self.incomplete = f"which elements of '{known.name.partition(':')[2]}' are equal is not clear"
        if same.is_empty:
            return None
        if is_counted(group.agg, group.dtype):
            same = same.outside(self._miscounted(group, known, same))
        return None if same.is_empty else same

    def _miscounted(self, group: Group, known: Reduction, same: Relation) -> Points:
        """Keys of `same`, which have the same operands, where these contribute a different number of times."""
        if known.once and all(once_each(parts) for parts in by_term(group.parts).values()):
            return Points.empty(group.keys.names)
        mine = [replace(part, points=part.points.within(same.domain)) for part in group.parts]
        theirs = [replace(part, points=same.then(part.points)) for part in known.parts]
        left, right = ([part for part in side if not part.points.is_empty] for side in (mine, theirs))
        try:
            return miscounted_keys(left, right, group.keys)
        except Unprovable as reason:
            self.incomplete = str(reason)
            return same.domain


_MOST_NAMES = 100


def _copied(part: Part, group: Group) -> Group:
    """The contributions of a merge, for the keys that hold a copy of its elements."""
    here = part.image.into(group.keys)
    copies = (replace(sub, points=here.then(sub.points)) for sub in group.parts)
    return replace(group, parts=tuple(sub for sub in copies if not sub.points.is_empty), keys=here.domain)


def _without(group: Group, keys: Points) -> Group:
    """The group for its other keys."""
    rest = group.keys - keys
    narrowed = (replace(part, points=part.points.outside(keys)) for part in group.parts)
    return replace(group, parts=tuple(part for part in narrowed if not part.points.is_empty), keys=rest)


def _unequal(first: Relation | None, second: Relation | None, names: Sequence[str]) -> Points:
    """The points that two relations lead to different images."""
    if first is None or second is None:
        only = first if second is None else second
        return Points.empty(names) if only is None else only.domain
    if first.equals(second):
        return Points.empty(names)
    return (first - second).domain | (second - first).domain


def _guess(keys: Points, mine: Images, known: Points, theirs: Images) -> tuple[Relation, bool]:
    """Pairs of keys whose first operand tuples agree by each term (and the last ones, if the first leave a choice),
    one for each key; and whether no other pair can have the same contributions.
    """
    guess = _paired_ends(keys, mine, known, theirs, last=False)
    if guess.is_empty or guess.single_valued:
        return guess.as_affine(), True
    guess = guess & _paired_ends(keys, mine, known, theirs, last=True)
    return (guess.as_affine(), True) if guess.single_valued else (guess.first().as_affine(), False)


def _paired_ends(keys: Points, mine: Images, known: Points, theirs: Images, *, last: bool) -> Relation:
    guess: Relation | None = None
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
            step = step | _all_pairs(*lacking)
        guess = step if guess is None else guess & step
    assert guess is not None
    return guess


def _all_pairs(first: Points, second: Points) -> Relation:
    primed = second.renamed({name: f"{name}'" for name in second.names})
    return Relation.from_points(first.times(primed), first.names, primed.names)


def _may_repeat(group: Group) -> bool:
    """Whether two keys may have the same contributions."""
    terms = by_term(group.parts)
    for parts in terms.values():
        each = image(parts)
        if each.injective and group.keys.subset_of(each.domain):
            return False
    first = _paired_ends(group.keys, terms, group.keys, terms, last=False)
    if first.single_valued:
        return False
    return not (first & _paired_ends(group.keys, terms, group.keys, terms, last=True)).single_valued


def _through(at: Relation, steps: Sequence[_Step]) -> Relation:
    """Applies a step to each leaf's coordinates."""
    if not steps:
        return at
    if all(a.offset < b.offset for a, b in pairwise(steps)):
        whole = steps[0].relation
        for step in steps[1:]:
            whole = whole.across(step.relation)
        return at.then(whole)
    names = tuple(f"{number}" for number in range(len(at.outs)))
    select = Points.universe(names).identity("'")
    result: Relation | None = None
    for step in steps:
        kept = [f"{name}'" for name in names[step.offset : step.offset + len(step.relation.ins)]]
        piece = at.then(select.keep(kept)).then(step.relation)
        result = piece if result is None else result.beside(piece)
    assert result is not None
    return result
