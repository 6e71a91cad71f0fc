"""Elements that the output access of a contraction touches: whether twice, and which elements not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

from stripe.ir import Affine, Domain
from stripe.poly.access import element_names
from stripe.poly.connected import connected
from stripe.poly.encode import Row
from stripe.poly.index_sets import IndexSet, Range, solve
from stripe.poly.lattice import Lattice, Polynomial
from stripe.poly.limits import operation_limit
from stripe.poly.relations import Relation
from stripe.poly.sets import Points, pieces, points_of
from stripe.poly.simplify import related


@dataclass(frozen=True, slots=True)
class Collision:
    """An element that two points of a domain reach."""

    element: tuple[int, ...]
    first: dict[str, int]
    second: dict[str, int]


def find_collision(domain: Domain, access: Sequence[Affine]) -> Collision | None:
    """Two points of the domain with one element under `access` (linear), or None when the access is injective.

    Raises `stripe.poly.limits.PolyLimit` when isl would take too long.
    """
    columns = tuple(tuple(affine.coeff(name) for affine in access) for name in domain.names)
    if not columns or len(Lattice((0,) * len(access), columns).hermite(range(len(access)))[1]) == len(
        columns
    ):
        return None  # a linear map without a kernel: no two integer points collide
    primed = {name: Affine.var(f"{name}%") for name in domain.names}
    names = (*domain.names, *(f"{name}%" for name in domain.names))
    ranges = {**domain.ranges, **{f"{name}%": domain.ranges[name] for name in domain.names}}
    constraints = [*domain.constraints, *(affine.subs(primed) for affine in domain.constraints)]
    equal = [affine - affine.subs(primed) for affine in access]
    with operation_limit():
        for name in domain.names:  # the first index in which the points differ
            found = Points.build(
                names, ranges, [*constraints, primed[name] - Affine.var(name) - 1], equal
            ).lexmin()
            if found is not None:
                first = {name: found[name] for name in domain.names}
                second = {name: found[f"{name}%"] for name in domain.names}
                return Collision(tuple(affine.evaluate(first) for affine in access), first, second)
            equal.append(primed[name] - Affine.var(name))
    return None


@lru_cache(maxsize=4096)
def uncovered(
    domain: Domain, access: tuple[Affine, ...], sizes: tuple[int, ...], names: tuple[str, ...]
) -> tuple[IndexSet, ...]:
    """The elements of a tensor of `sizes` that no point of `domain` reaches through `access`, as disjoint sets.

    Each set has indices of its own; its `values` give the coordinates of an element, called `names`, over them.
    Raises `stripe.poly.limits.PolyLimit` when isl would take too long.
    """
    groups = connected([*(affine.names() for affine in domain.constraints), *(a.names() for a in access)])
    dims = [[place for place, affine in enumerate(access) if affine.names() & set(group)] for group in groups]
    dims += [[place] for place, affine in enumerate(access) if affine.is_constant]
    with operation_limit():
        if all(_covers(domain, access, sizes, group) for group in dims if group):
            return ()
        everything = range(len(sizes))
        missing = _box(sizes, everything) - _image(domain, access, everything)
        return tuple(_index_set(piece, names) for piece in pieces(missing.coalesced()))


def _covers(domain: Domain, access: Sequence[Affine], sizes: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether the points reach every combination of the dimensions `dims`, which share no index with others."""
    inside = related(domain, frozenset[str]().union(*(access[place].names() for place in dims)))
    if not inside.names:
        return sizes[dims[0]] == 1
    points, elements = prod(high + 1 for _, high in inside.intervals), prod(sizes[place] for place in dims)
    if len(dims) == len(inside.names) == 1 and not inside.constraints:
        return abs(access[dims[0]].coeff(inside.names[0])) == 1 and points == elements
    return points >= elements and _box(sizes, dims).subset_of(_image(domain, access, dims))


def _box(sizes: Sequence[int], dims: Sequence[int]) -> Points:
    names = element_names(len(sizes))
    return Points.build([names[d] for d in dims], {names[d]: (0, sizes[d] - 1) for d in dims})


def _image(domain: Domain, access: Sequence[Affine], dims: Sequence[int]) -> Points:
    """The elements of the dimensions `dims` that the domain reaches; indices that cannot matter are left out."""
    names = element_names(len(access))
    inside = related(domain, frozenset[str]().union(*(access[place].names() for place in dims)))
    return Relation.function(points_of(inside), {names[place]: access[place] for place in dims}).range


def _index_set(piece: Points, names: tuple[str, ...]) -> IndexSet:
    """A convex set as a domain: a floor that an equality ties to coordinates (a stride) goes into the basis, others
    stay as quasi-affine constraints.
    """
    equalities, inequalities, floors = piece.rows()
    extra = tuple(f"q%{place}" for place in range(len(floors)))

    def polynomial(row: Row) -> Polynomial:
        return Polynomial.of(dict(zip((*names, *extra), map(Fraction, row[1:]), strict=True)), row[0])

    ranges = [Range(polynomial(row), 1) for row in equalities]
    ranges += [Range(polynomial(row), None) for row in inequalities]
    ranges += [Range(polynomial(row), divisor) for row, divisor in floors]
    found = solve((*names, *extra), tuple(ranges))
    if not set(found.domain.names) & set(extra):
        return found
    known = piece.renamed(dict(zip(piece.names, names, strict=True)))
    box = known.box()
    assert box is not None
    constraints = dict.fromkeys(affine for affine in known.affines() if affine.bounds(box)[0] < 0)
    return IndexSet.of(box, constraints, [(name, Affine.var(name)) for name in names])
