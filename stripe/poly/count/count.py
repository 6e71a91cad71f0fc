"""Exact numbers of points of domains and of elements of accesses: closed forms where dimensions separate, never an
enumeration of a large domain. Other sets are cut into disjoint convex pieces, and floors become variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod

from stripe.ir import Affine, Domain, Interval, coordinates, indices_of
from stripe.poly.access import Access, element_names
from stripe.poly.connected import connected
from stripe.poly.count.rows import count_rows
from stripe.poly.count.separable import distinct_values
from stripe.poly.encode import Row, rows_of
from stripe.poly.limits import operation_limit, within
from stripe.poly.private_copy import private_copy
from stripe.poly.sets import Points, pieces, points_of, union

_OPERATIONS = 2_000_000
"""isl's steps for one count; see `stripe.poly.limits`."""
_INJECTIVITY = 300_000
"""isl's steps for the question whether elements are touched once, a fraction of a second."""


def count_points(points: Points) -> int:
    """The exact number of points. ValueError when the set is infinite, PolyLimit when it is too intricate."""
    with operation_limit(_OPERATIONS):
        if not points.raw.is_bounded():
            raise ValueError("the set is infinite")
        return sum(_count_piece(piece) for piece in pieces(points))


def count_domain(domain: Domain) -> int:
    """The exact number of points of an iteration domain: indices that no constraint couples count apart."""
    coupled = [affine.names() for affine in domain.constraints]
    if any(
        not names and affine.offset < 0 for names, affine in zip(coupled, domain.constraints, strict=True)
    ):
        return 0
    constrained = frozenset[str]().union(*coupled)
    free = (
        each for name, each in zip(domain.names, domain.intervals, strict=True) if name not in constrained
    )
    total = prod(high - low + 1 for low, high in free)
    for group in connected(coupled):
        names = tuple(name for name in domain.names if name in group)
        bounds = tuple(domain.ranges[name] for name in names)
        tied = [c for c, used in zip(domain.constraints, coupled, strict=True) if not used.isdisjoint(group)]
        if all(affine.is_linear for affine in tied):
            rows = tuple((affine.offset, *map(affine.coeff, names)) for affine in tied)
            total *= _count_box(bounds, rows)
        else:
            total *= _count_constrained(tuple(zip(names, bounds, strict=True)), tuple(tied))
        if not total:
            return 0
    return total


@lru_cache(maxsize=4096)
def _count_box(bounds: tuple[Interval, ...], rows: tuple[Row, ...]) -> int:
    """The points of a box that satisfy linear constraints: one convex piece without floors, for which isl has nothing
    to do. Answers are kept: passes and costs ask for the same ones."""
    width = 1 + len(bounds)
    sides: list[Row] = []
    for column, (low, high) in enumerate(bounds, 1):
        unit = [0] * width
        unit[column] = 1
        sides += [(-low, *unit[1:]), (high, *(-c for c in unit[1:]))]
    return count_rows((), (*sides, *rows), width)


@lru_cache(maxsize=1024)
def _count_constrained(bounds: tuple[tuple[str, Interval], ...], constraints: tuple[Affine, ...]) -> int:
    """As `_count_box`, of constraints with floors."""
    return count_points(Points.build(tuple(name for name, _ in bounds), dict(bounds), constraints))


def count_accesses(access: Access) -> int:
    """The number of runs of the statement, times the elements that it touches each time."""
    return count_domain(access.nest.domain) * prod(access.sizes)


def count_elements(access: Access) -> int:
    """The exact number of distinct elements of the buffer that the access ever touches."""
    domain = access.nest.domain
    constrained = indices_of(domain.constraints)
    if not any(affine.names() & constrained for affine in access.index):
        # no index and no constraint couples the dimensions
        found = distinct_per_point(access)
        if found is not None:
            return 0 if found and domain.constraints and points_of(domain).is_empty else found
    # With floors (packed layouts, reshapes) isl may take minutes to write the set of elements without the indices; a
    # proof that no element is touched twice is quick.
    has_floors = not all(affine.is_linear for affine in access.index)
    if has_floors and within(_INJECTIVITY, lambda: access.relation.injective) is True:
        return count_accesses(access)
    with operation_limit(_OPERATIONS):
        return count_points(access.footprint)


def count_touched(access: Access, prefix: Sequence[str]) -> int:
    """The distinct elements that the access touches at each point of the indices `prefix`, over all these points.

    Without a closed form, indices that no constraint and no dimension couples are counted apart: the pairs of a point
    and an element are the product of the pairs of all groups.
    """
    domain = access.nest.domain
    found = None if domain.constraints else distinct_per_point(access, prefix)
    if found is not None:
        return domain.volume(prefix) * found
    if not prefix:
        return count_elements(access)
    if any(c.offset < 0 for c in domain.constraints if not c.names()):
        return 0
    dims = list(zip(access.index, access.sizes, strict=True))
    links = [part.names() for part in (*domain.constraints, *access.index)]
    groups = connected([*links, *([name] for name in domain.names)])
    total = prod(size for affine, size in dims if not affine.names())
    for group in map(frozenset[str], groups):
        names = tuple(name for name in domain.names if name in group)
        total *= _count_touched_in(
            tuple((name, domain.ranges[name]) for name in names),
            tuple(c for c in domain.constraints if not c.names().isdisjoint(group)),
            tuple((affine, size) for affine, size in dims if not affine.names().isdisjoint(group)),
            tuple(name for name in names if name in prefix),
        )
    return total


@lru_cache(maxsize=4096)
def _count_touched_in(
    bounds: tuple[tuple[str, Interval], ...],
    constraints: tuple[Affine, ...],
    dims: tuple[tuple[Affine, int], ...],
    prefix: tuple[str, ...],
) -> int:
    """`count_touched` of one group of indices. Answers are kept: tiles that differ along other indices share them."""
    ranges = dict(bounds)
    lengths = {name: high - low + 1 for name, (low, high) in bounds}
    running = [affine.names().difference(prefix) for affine, _ in dims]
    if not constraints and all(affine.is_linear for affine, _ in dims):
        if not all(length > 0 for length in lengths.values()):
            return 0
        if sum(map(len, running)) == len(frozenset[str]().union(*running)):
            found = [
                distinct_values([*((affine.coeff(n), lengths[n]) for n in sorted(names)), (1, size)])
                for (affine, size), names in zip(dims, running, strict=True)
            ]
            known = [each for each in found if each is not None]
            if len(known) == len(found):
                return prod(known) * prod(lengths[name] for name in prefix)
    elements = element_names(len(dims))
    inner = {f"{name}+": (0, size - 1) for name, (_, size) in zip(elements, dims, strict=True) if size > 1}
    touched = [
        affine + (Affine.var(f"{name}+") if size > 1 else 0) - Affine.var(name)
        for name, (affine, size) in zip(elements, dims, strict=True)
    ]
    points = Points.build((*ranges, *elements, *inner), {**ranges, **inner}, constraints, touched)
    if not prefix and not dims:
        return int(not points.is_empty)
    return count_points(points.onto((*prefix, *elements)))


def count_union(accesses: Iterable[Access]) -> int:
    """The exact number of distinct elements of one buffer that the accesses touch together."""
    unique = list({(access.nest.path, access.index, access.sizes): access for access in accesses}.values())
    if not unique:
        return 0
    if len(unique) == 1:
        return count_elements(unique[0])
    with operation_limit(_OPERATIONS):
        footprints = [access.footprint for access in unique]
        return count_points(union(footprints, footprints[0].names).coalesced())


def distinct_per_point(access: Access, fixed: Iterable[str] = ()) -> int | None:
    """Distinct elements that the access touches at each point of the indices `fixed`, all others running: the product
    over dimensions; None where they share an index or have no closed form. Constraints are not looked at.
    """
    ranges = access.nest.domain.ranges
    used = set(fixed)
    total = 1
    index = [affine.simplified(ranges) for affine in access.index]
    for coordinate in coordinates(index, access.sizes):
        affine, size = coordinate.affine, coordinate.size
        running = affine.names().difference(fixed)
        if not affine.is_linear or running & used:
            return None
        used |= running
        terms = [(affine.coeff(n), ranges[n][1] - ranges[n][0] + 1) for n in sorted(running)]
        found = distinct_values([*terms, (1, size)])
        if found is None:
            return None
        total *= found
    return total


def _count_piece(piece: Points) -> int:
    basics = private_copy(piece.raw).detect_equalities().get_basic_sets()
    if not basics:
        return 0
    equalities, inequalities, floors = rows_of(basics[0])
    for row, divisor in floors:
        inequalities += [row, (divisor - 1 - row[0], *(-c for c in row[1:]))]
    return count_rows(tuple(equalities), tuple(inequalities), 1 + len(piece.names))
