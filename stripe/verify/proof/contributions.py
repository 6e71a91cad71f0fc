"""Contributions to elements, and what follows from them without looking at another program: which keys get just one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from stripe.ir import Agg, DType
from stripe.poly import Access, Points, Relation, union
from stripe.verify.proof.terms import Term


def is_counted(agg: Agg, dtype: DType) -> bool:
    """Whether it matters how often an operand is merged: of bools, a sum is their *or*, a product their *and*."""
    return agg in (Agg.ADD, Agg.MUL) and dtype.kind != "bool"


@dataclass(frozen=True)
class Piece:
    """A value at some points: the term, and from these points to the coordinates of its leaves."""

    term: Term
    at: Relation


@dataclass(frozen=True)
class Part:
    """A contribution, or the one value, of elements: `points` leads from the keys to the points of the writes that
    contribute to them, `at` from these points to the coordinates of the term's leaves.

    `origin` is the store that the term comes from; its point is made of the last coordinates of `points`' images. What
    an input holds where nobody writes comes from none.
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
class Group:
    """Keys whose element is the merge of all contributions of `parts`."""

    agg: Agg
    dtype: DType
    parts: tuple[Part, ...]
    keys: Points


@dataclass(frozen=True)
class Definition:
    """The elements of one node. `values` and `groups` are about different keys."""

    keys: tuple[str, ...]
    values: tuple[Part, ...]
    groups: tuple[Group, ...]
    covered: Points


Images = dict[Term, list[Part]]


def by_term(parts: Iterable[Part]) -> Images:
    found: Images = {}
    for part in parts:
        found.setdefault(part.term, []).append(part)
    return found


def image(parts: Sequence[Part]) -> Relation:
    """From keys to the coordinates of the operands that contribute by one term.

    In few pieces: comparing two relations takes time with the product of theirs (an unrolled block has one for each
    statement).
    """
    result = parts[0].image
    for part in parts[1:]:
        result = result | part.image
    return result if len(parts) == 1 else result.coalesced()


def composed(points: Relation, at: Relation, inner: Part) -> Part:
    """The contributions of `inner` to what the points of an outer contribution read (`at`: from these points to the
    keys of the inner merge).
    """
    if at.injective and inner.points.injective:  # then an inner point tells which outer point read it
        return Part(inner.term, points.then(at).then(inner.points), inner.at, inner.origin)
    outer = _apart(at.ins, inner.points.outs)
    known = at.domain.identity("").beside(at.then(inner.points))
    both = (*outer, *inner.points.outs)
    back = Points.universe(both).identity("'").keep([f"{name}'" for name in inner.points.outs])
    return Part(
        inner.term,
        points.then(known.named(at.ins, both)),
        back.then(inner.at),
        inner.origin,
    )


def _apart(names: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """`names` changed so that none is `taken`: the inner merge may have outer points of its own."""
    mark = "^"
    while any(f"{name}{mark}" in taken for name in names):
        mark += "^"
    return tuple(f"{name}{mark}" for name in names)


def all_alike(parts: list[Part], keys: Sequence[str]) -> tuple[list[Part], Points]:
    """As `told_apart`, but where some key has several contributions all keys count as such: that costs little."""
    domains = [part.points.domain for part in parts]
    if all(part.points.single_valued for part in parts) and all(
        a.disjoint(b) for a, b in combinations(domains, 2)
    ):
        return parts, Points.empty(keys)
    return [], union(domains, keys).coalesced()


def told_apart(parts: Sequence[Part], keys: Sequence[str], *, counted: bool) -> tuple[list[Part], Points]:
    """(the contributions of keys that have just one, which is their value; the keys that have several). Unless it is
    `counted` how often an operand contributes, the same operand several times is one contribution.
    """
    sources = [[part] for part in parts] if counted else list(by_term(parts).values())
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
    return [part for same in sources for part in first_only(same, several)], several


def first_only(parts: list[Part], full: Points) -> list[Part]:
    """One contribution a key, for keys that are not in `full`."""
    result: list[Part] = []
    for part in parts:
        points = part.points.outside(full).first()
        if not points.is_empty:
            result.append(Part(part.term, points, part.at, part.origin))
            full = full | points.domain
    return result
