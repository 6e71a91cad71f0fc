"""Contributions to elements: values, merges and definitions; the keys with one contribution and those with several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import combinations

from stripe.ir import Agg, DType
from stripe.poly import Access, Points, Relation, union
from stripe.poly.sets import united
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.rules import Unprovable
from stripe.verify.proof.terms import Term, operand_order, operation, size


@dataclass(frozen=True)
class Value:
    """A value at some points: the term, and from these points to the coordinates of its leaves."""

    term: Term
    at: Relation


@dataclass(frozen=True)
class Contribution:
    """A contribution to elements, or their value: `points` leads from the keys to the points of the writes that
    contribute to them, `at` from these points to the coordinates of the term's leaves.

    `origin` is the store that the term comes from; its point is made of the last coordinates of `points`' images. The
    initial contents of an input come from none.
    """

    term: Term
    points: Relation
    at: Relation
    origin: Access | None

    @cached_property
    def image(self) -> Relation:
        """From the keys to the coordinates of the operands."""
        return self.points.then(self.at)


@dataclass(frozen=True)
class Merge:
    """Keys whose element is the merge of all `contributions`. `starts`: whether merges of keys begin at the identity;
    the others begin at one of the contributions."""

    agg: Agg
    dtype: DType
    contributions: tuple[Contribution, ...]
    keys: Points
    starts: frozenset[bool]


FROM_IDENTITY = frozenset({True})


def reordering(agg: Agg, dtype: DType, *starts: frozenset[bool]) -> frozenset[Assumption]:
    """The assumptions behind the equality of two merges by `agg` of the same contributions, in any order. A minimum of
    floats tells 0 from -0 by it, and so does a sum that begins at 0: 0 + -0 is 0.
    """
    if not dtype.is_float or agg is Agg.ASSIGN:
        return frozenset()
    if agg not in (Agg.ADD, Agg.MUL):
        return frozenset({Assumption.ZERO_SIGN})
    if agg is Agg.ADD and len(frozenset[bool]().union(*starts)) > 1:
        return frozenset({Assumption.FLOAT_ORDER, Assumption.ZERO_SIGN})
    return frozenset({Assumption.FLOAT_ORDER})


@dataclass(frozen=True)
class Definition:
    """The elements of a buffer at one read: keys with a value, and keys whose element is a merge."""

    keys: tuple[str, ...]
    values: tuple[Contribution, ...]
    merges: tuple[Merge, ...]
    covered: Points

    def values_at(self, keys: Points) -> Iterator[Contribution]:
        """The values that may be those of some of the `keys`, in order: of straight code, where each statement writes
        one element, the most are other elements' values."""
        key = keys.only_point
        others, single = self._values_by_key
        numbers = range(len(self.values)) if key is None else merge(others, single.get(key, ()))
        return (self.values[number] for number in numbers)

    @cached_property
    def _values_by_key(self) -> tuple[list[int], dict[tuple[int, ...], list[int]]]:
        """The numbers of values of several keys, and those of values of one key."""
        others: list[int] = []
        single: dict[tuple[int, ...], list[int]] = {}
        for number, value in enumerate(self.values):
            key = value.image.domain.only_point
            (others if key is None else single.setdefault(key, [])).append(number)
        return others, single


Images = dict[Term, list[Contribution]]


def by_term(contributions: Iterable[Contribution]) -> Images:
    """The contributions by their term."""
    found: Images = {}
    for contribution in contributions:
        found.setdefault(contribution.term, []).append(contribution)
    return found


def image(contributions: Sequence[Contribution]) -> Relation:
    """From keys to the coordinates of the operands of one term's contributions.

    In few pieces: comparing two relations takes time with the product of theirs (an unrolled block has one for each
    statement).
    """
    result = united([contribution.image for contribution in contributions])
    return result if len(contributions) == 1 else result.coalesced()


def composed(points: Relation, at: Relation, inner: Contribution) -> Contribution:
    """The contributions of `inner` to the elements that the points of an outer contribution read (`at`: from these
    points to the keys of the inner merge)."""
    if at.injective and inner.points.injective:  # then an inner point tells which outer point read it
        return Contribution(inner.term, points.then(at).then(inner.points), inner.at, inner.origin)
    mark = "^"  # the inner merge may have outer points of its own, under marked names
    while any(f"{name}{mark}" in inner.points.outs for name in at.ins):
        mark += "^"
    outer = tuple(f"{name}{mark}" for name in at.ins)
    known = Relation.identity(at.domain, "").beside(at.then(inner.points))
    both = (*outer, *inner.points.outs)
    back = Relation.identity(Points.universe(both), "'").keep([f"{name}'" for name in inner.points.outs])
    return Contribution(inner.term, points.then(known.named(at.ins, both)), back.then(inner.at), inner.origin)


def one_each_or_merged(
    contributions: list[Contribution], keys: Sequence[str]
) -> tuple[list[Contribution], Points]:
    """As `split_by_number`, but coarse and cheap: all keys count as merged when some key has several contributions."""
    domains = [c.points.domain for c in contributions]
    if all(c.points.single_valued for c in contributions) and all(
        a.disjoint(b) for a, b in combinations(domains, 2)
    ):
        return contributions, Points.empty(keys)
    return [], union(domains, keys).coalesced()


def split_by_number(
    contributions: Sequence[Contribution], keys: Sequence[str], *, counted: bool
) -> tuple[list[Contribution], Points]:
    """(contributions that are the value of their key, keys with several contributions). Unless the number of
    contributions of an operand is `counted`, the same operand several times is one contribution.
    """
    sources = [[c] for c in contributions] if counted else list(by_term(contributions).values())
    several = Points.empty(keys)
    touched = Points.empty(keys)
    for same in sources:
        relation = same[0].points if counted else image(same)
        if not relation.single_valued:
            several = several | (relation - relation.first()).domain
        domain = relation.domain
        several = several | (domain & touched)
        touched = touched | domain
    several = several.coalesced()
    if touched.subset_of(several):
        return [], several
    return [c for same in sources for c in first_only(same, several)], several


def first_only(contributions: list[Contribution], full: Points) -> list[Contribution]:
    """One contribution a key, for keys that are not in `full`."""
    result: list[Contribution] = []
    for contribution in contributions:
        points = contribution.points.outside(full).first()
        if not points.is_empty:
            result.append(Contribution(contribution.term, points, contribution.at, contribution.origin))
            full = full | points.domain
    return result


_MOST_COORDINATES = 400
_MOST_PARTS = 20_000
"""Operations and leaves of a term. Many have no coordinates: numbers, elements of buffers without dimensions."""


def applied(op: str, operands: tuple[Value, ...], dtype: DType | None) -> Value:
    """An intrinsic on one value of each operand: defined where all of them are."""
    terms = [operand.term for operand in operands]
    order = operand_order(op, terms)
    at = operands[order[0]].at
    for k in order[1:]:
        at = at.beside(operands[k].at)
    if sum(term.width for term in terms) > _MOST_COORDINATES or sum(map(size, terms)) > _MOST_PARTS:
        raise Unprovable("an element-wise chain is too long")
    term = operation(op, [terms[k] for k in order], dtype)
    return Value(term, at if term.width else at.keep(()))
