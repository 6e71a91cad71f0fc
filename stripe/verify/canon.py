"""Merged elements inside larger terms, under names that both programs share.

A consumer of a reduction (`relu` of a sum, a sum of products of sums) sees it as an element of an array. Whether two
reductions are the same array is decided by their contributions: the first (and last) operand tuple of an element
says which
element of the other it must be, and then all contributions are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from stripe.ir import Agg, DType, Path, Special, TagValue
from stripe.poly import Points, Relation, union
from stripe.verify.compare import by_term, image, mismatch
from stripe.verify.definition import Definer, Definition, Group, Part
from stripe.verify.terms import Called, Leaf, Node, Operation, Reduced, Term, leaves, operand_order

COUNTED = frozenset({Agg.ADD, Agg.MUL})
"""Aggregations for which it matters how often an operand occurs."""


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


@dataclass(frozen=True)
class Call:
    """A special that has a name: its operation with parameters, and each operand's elements over (indices, place)."""

    op: tuple[str, tuple[tuple[str, TagValue | None], ...]]
    operands: tuple[tuple[Part, ...], ...]

    def same_as(self, other: Call) -> bool:
        """Whether the operation is the same and all operands are proved to hold the same."""
        return self.op == other.op and all(
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
    """The pool of named reductions of both programs."""

    def __init__(self) -> None:
        self.reductions: dict[str, Reduction] = {}
        self._by_kind: dict[tuple[Agg, DType, frozenset[Term]], list[Reduction]] = {}
        self.calls: list[Call] = []
        self._calls: dict[tuple[int, Path], int] = {}
        self._known: dict[tuple[int, Node], tuple[Leaf, Relation]] = {}
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
                values.append(part)
                continue
            for group in definer.definition(part.term.node).groups:
                here = part.image.into(group.keys)
                copied = tuple(
                    Part(sub.term, here.then(sub.points), sub.at, sub.origin) for sub in group.parts
                )
                copied = tuple(sub for sub in copied if not sub.points.is_empty)
                if copied:
                    copy = Group(group.agg, group.dtype, copied, here.domain)
                    merged.setdefault((group.agg, group.dtype), []).append(copy)
        groups = [self._joined(definer, agg, dtype, parts) for (agg, dtype), parts in merged.items()]
        plain = tuple(self.plain(definer, part) for part in values)
        return Definition(definition.keys, plain, tuple(groups), definition.covered)

    def _joined(self, definer: Definer, agg: Agg, dtype: DType, groups: Sequence[Group]) -> Group:
        parts = tuple(self.plain(definer, part) for group in groups for part in group.parts)
        keys = groups[0].keys
        if len(groups) > 1:
            keys = union([group.keys for group in groups], keys.names).coalesced()
        return Group(agg, dtype, parts, keys)

    def plain(self, definer: Definer, part: Part) -> Part:
        """The contribution with its reductions under their shared names."""
        if not any(isinstance(leaf, Reduced | Called) for leaf in leaves(part.term)):
            return part
        term, steps = self._renamed(definer, part.term, 0)
        return replace(part, term=term, at=_through(part.at, steps))

    def _renamed(self, definer: Definer, term: Term, offset: int) -> tuple[Term, list[_Step]]:
        """The term over shared arrays; leaf by leaf, the place of its old coordinates and where they lead."""
        if isinstance(term, Reduced):
            leaf, relation = self.named(definer, term.node)
            return leaf, [_Step(offset, relation)]
        if isinstance(term, Called):
            term = self._called(definer, term)
        if not isinstance(term, Operation):
            names = tuple(f"{number}" for number in range(term.width))
            return term, [_Step(offset, Points.universe(names).identity("'"))] if names else []
        results: list[tuple[Term, list[_Step]]] = []
        for arg in term.args:
            results.append(self._renamed(definer, arg, offset))
            offset += arg.width
        order = operand_order(term.op, [result[0] for result in results])
        args = tuple(results[k][0] for k in order)
        return replace(term, args=args), [step for k in order for step in results[k][1]]

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
            parts = [Part(p.term, p.at.domain.identity("'"), p.at, access) for p in pieces]
            operands.append(tuple(self.plain(definer, part) for part in parts))
        values = tuple((word, statement.tags.get(word)) for word in statement.tags)
        parameters = tuple(pair for pair in values if pair[1] is not None)
        fresh = Call((statement.op, parameters), tuple(operands))
        for number, known in enumerate(self.calls):
            if known.same_as(fresh):
                return number
        self.calls.append(fresh)
        return len(self.calls) - 1

    def named(self, definer: Definer, node: Node) -> tuple[Leaf, Relation]:
        """The shared name of a reduction, and from the node's keys to the coordinates under that name."""
        key = (id(definer), node)
        if key not in self._known:
            self._known[key] = self._name(definer, node)
        return self._known[key]

    def _name(self, definer: Definer, node: Node) -> tuple[Leaf, Relation]:
        (own,) = definer.definition(node).groups
        group = self._joined(definer, own.agg, own.dtype, [own])
        kind = (group.agg, group.dtype, frozenset(part.term for part in group.parts))
        for known in self._by_kind.get(kind, []):
            found = matched(group, known)
            if found is not None:
                return Leaf(known.name, len(known.keys.names), known.dtype), found
        name = f"sum{len(self.reductions)}:{node.buffer}"
        # elements with the same contributions (of a broadcast) go by the name of the first of them
        alike = _alike(group)
        fresh = Reduction(name, group.agg, group.dtype, group.parts, group.keys, alike is None)
        self.reductions[name] = fresh
        self._by_kind.setdefault(kind, []).append(fresh)
        same = None if alike is None else matched(group, fresh)
        return Leaf(name, node.width, group.dtype), group.keys.identity("'") if same is None else same


def matched(group: Group, known: Reduction) -> Relation | None:
    """From the keys of `group` to those of `known`, which has the same terms, such that the elements have the same
    contributions; None when
    there is
    no such relation for all keys, or none was found.
    """
    mine, theirs = by_term(group.parts), by_term(known.parts)
    guess = _guess([(image(parts), image(theirs[term])) for term, parts in mine.items()])
    if not group.keys.subset_of(guess.domain):
        return None
    moved = [replace(part, points=guess.then(part.points)) for part in known.parts]
    moved = [part for part in moved if not part.points.is_empty]
    same = mismatch(group.parts, moved, counted=group.agg in COUNTED, keys=group.keys.names)
    return guess if same is None else None


def _guess(images: Sequence[tuple[Relation, Relation]]) -> Relation:
    """Pairs of keys whose first operand tuples agree (and the last ones, if the first leave a choice)."""
    guess: Relation | None = None
    for mine, theirs in images:
        step = mine.first().then(theirs.first().reversed())
        guess = step if guess is None else guess & step
    assert guess is not None
    if guess.single_valued:
        return guess
    for mine, theirs in images:
        guess = guess & mine.last().then(theirs.last().reversed())
    return guess if guess.single_valued else guess.first()


def _alike(group: Group) -> Relation | None:
    """Pairs of different keys that may have the same contributions; None when there are none."""
    images = [image(parts) for parts in by_term(group.parts).values()]
    if images[0].injective:
        return None
    guess: Relation | None = None
    for each in images:
        for end in (each.first(), each.last()):
            step = end.then(end.reversed())
            guess = step if guess is None else guess & step
    return None if guess is None or guess.single_valued else guess


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
