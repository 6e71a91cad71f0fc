"""Exact numbers of integer points: closed forms where dimensions separate, never an enumeration of a large domain.

A set is cut into disjoint convex pieces, floors become variables, and equalities are eliminated. The rest splits
into components that share no variable, whose counts multiply. In a component one variable is summed out: over its few
values, or, where these are many, by the quasi-polynomial that the number of points of a slice is between two vertices
(Ehrhart; Clauss 1996, "Counting solutions to linear and nonlinear constraints through Ehrhart polynomials").
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import comb, gcd, prod

from stripe.ir import Affine, Domain, Interval, coordinates
from stripe.poly.access import Access, element_names
from stripe.poly.connected import connected
from stripe.poly.count.separable import distinct_values
from stripe.poly.count.vertices import slice_plan
from stripe.poly.encode import Row, rows_of
from stripe.poly.limits import PolyLimit, operation_limit, within
from stripe.poly.sets import Points, pieces, points_of, union

_MAX_SLICES = 200_000
_FEW = 1 << 14
"""Points of a box that are tested one by one: that takes less time than the vertices of a polytope."""
_ROUNDS = 2
"""Passes over the rows that look for the box."""
_MAX_INT = 1 << 62
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
    return _count_rows((), (*sides, *rows), width)


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
    constrained = {name for affine in domain.constraints for name in affine.names()}
    if not any(affine.names() & constrained for affine in access.index):
        # no index and no constraint couples the dimensions
        found = distinct_per_point(access)
        if found is not None:
            return 0 if found and constrained and points_of(domain).is_empty else found
    # With floors (packed layouts, reshapes) isl may take minutes to write the set of elements without the indices; a
    # proof that no element is touched twice is quick.
    has_floors = not all(affine.is_linear for affine in access.index)
    if has_floors and within(_INJECTIVITY, lambda: access.relation.injective) is True:
        return count_accesses(access)
    with operation_limit(_OPERATIONS):
        return count_points(access.footprint)


def count_touched(access: Access, prefix: Sequence[str]) -> int:
    """The elements that the access touches at each point of the indices `prefix`, over all these points.

    Indices that no constraint and no dimension couples are counted apart: the pairs of a point and an element are the
    product of the pairs of all groups.
    """
    domain = access.nest.domain
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
    basics = piece.raw.detect_equalities().get_basic_sets()
    if not basics:
        return 0
    equalities, inequalities, floors = rows_of(basics[0])
    for row, divisor in floors:
        inequalities += [row, (divisor - 1 - row[0], *(-c for c in row[1:]))]
    return _count_rows(tuple(equalities), tuple(inequalities), 1 + len(piece.names))


@lru_cache(maxsize=4096)
def _count_rows(equalities: tuple[Row, ...], inequalities: tuple[Row, ...], width: int) -> int:
    """The points of one piece. Answers are kept: equal layers of a network ask for them again."""
    width = max((len(row) for row in equalities + inequalities), default=width)
    reduced = _eliminate(_padded(equalities, width), _padded(inequalities, width), width)
    return 0 if reduced is None else _count(reduced, [_MAX_SLICES])


def _padded(rows: Iterable[Row], width: int) -> list[Row]:
    return [row + (0,) * (width - len(row)) for row in rows]


def _eliminate(equalities: list[Row], inequalities: list[Row], width: int) -> list[Row] | None:
    """Inequalities with as many integer solutions, over fewer variables; None when there are none.

    Each equality is brought to `g * y = c` by unimodular column operations (Euclid's algorithm), which map integer
    points onto integer points one to one; y is then known.
    """
    equalities, inequalities = list(equalities), list(inequalities)
    while equalities:
        row = equalities.pop()
        while True:
            live = [k for k in range(1, width) if row[k]]
            if len(live) <= 1:
                break
            pivot = min(live, key=lambda k: abs(row[k]))
            factors = {k: row[k] // row[pivot] for k in live if k != pivot}
            # column k loses factors[k] times the pivot column
            row, *rows = (
                tuple(c - factors[k] * r[pivot] if k in factors else c for k, c in enumerate(r))
                for r in (row, *equalities, *inequalities)
            )
            equalities, inequalities = rows[: len(equalities)], rows[len(equalities) :]
        if not live:
            if row[0]:
                return None
            continue
        column = live[0]
        if row[0] % row[column]:
            return None
        value = -row[0] // row[column]
        equalities = [_fixed(r, column, value) for r in equalities]
        inequalities = [_fixed(r, column, value) for r in inequalities]
    return inequalities


def _fixed(row: Row, column: int, value: int) -> Row:
    changed = list(row)
    changed[0] += row[column] * value
    changed[column] = 0
    return tuple(changed)


def _count(rows: Iterable[Row], budget: list[int]) -> int:
    tight = _tightened(rows)
    if tight is None:
        return 0
    return prod(_count_component(component, columns, budget) for component, columns in _components(tight))


def _tightened(rows: Iterable[Row]) -> list[Row] | None:
    """Rows with coprime coefficients, of parallel ones the strictest; None when one cannot hold."""
    strictest: dict[Row, int] = {}
    for row in rows:
        divisor = gcd(*row[1:])
        if divisor == 0:
            if row[0] < 0:
                return None
            continue
        key = tuple(c // divisor for c in row[1:])
        constant = row[0] // divisor
        strictest[key] = min(constant, strictest.get(key, constant))
    for key, constant in strictest.items():
        opposite = strictest.get(tuple(-c for c in key))
        if opposite is not None and opposite + constant < 0:
            return None
    return [(constant, *key) for key, constant in strictest.items()]


def _components(rows: Sequence[Row]) -> list[tuple[list[Row], list[int]]]:
    """Groups of rows that share no variable with another group, with their variables."""
    used = [[k for k, c in enumerate(row) if c and k] for row in rows]
    group_of = {column: number for number, group in enumerate(connected(used)) for column in group}
    groups: dict[int, tuple[list[Row], set[int]]] = {}
    for row, columns in zip(rows, used, strict=True):
        group = groups.setdefault(group_of[columns[0]], ([], set()))
        group[0].append(row)
        group[1].update(columns)
    return [(members, sorted(columns)) for members, columns in groups.values()]


def _count_component(rows: list[Row], columns: list[int], budget: list[int]) -> int:
    if len(columns) == 1:
        return _interval(rows, columns[0])
    opposite = next((row for row in rows if (-row[0], *(-c for c in row[1:])) in rows), None)
    if opposite is not None:
        reduced = _eliminate([opposite], rows, len(opposite))
        return 0 if reduced is None else _count(reduced, budget)
    few = _count_few(rows, columns)
    if few is not None:
        return few
    plan = slice_plan(tuple((row[0], *(row[k] for k in columns)) for row in rows))
    if plan is None:
        return 0
    column = columns[plan.variable]

    def at(value: int) -> int:
        budget[0] -= 1
        if budget[0] < 0:
            raise PolyLimit("counting the points of a set needs too many slices")
        return _count([_fixed(row, column, value) for row in rows], budget)

    total = 0
    for low, high, period in plan.chambers:
        samples = len(columns)  # a slice has one dimension less, so its count has degree len(columns) - 1
        if high - low + 1 <= period * samples:
            total += sum(at(value) for value in range(low, high + 1))
            continue
        for start in range(low, low + period):
            known = [at(start + period * k) for k in range(samples)]
            total += _polynomial_sum(known, (high - start) // period + 1)
    return total


def _count_few(rows: list[Row], columns: list[int]) -> int | None:
    """The number of points by a test of each point of the box around them; None where the box has more than _FEW."""
    box = _box([(row[0], *(row[k] for k in columns)) for row in rows])
    if box is None:
        return None
    sizes = [max(0, high - low + 1) for low, high in box]
    farthest = [max(map(abs, interval)) for interval in box]
    largest = max(
        abs(row[0]) + sum(abs(row[k]) * far for k, far in zip(columns, farthest, strict=True)) for row in rows
    )
    if prod(sizes) > _FEW or largest > _MAX_INT:
        return None
    import numpy as np  # takes long to load, and few counts come here

    places = np.indices(sizes).reshape(len(columns), -1) + np.array([[low] for low, _ in box])
    factors = np.array([[row[k] for k in columns] for row in rows])
    constants = np.array([[row[0]] for row in rows])
    return int(np.count_nonzero((factors @ places + constants >= 0).all(axis=0)))


def _box(rows: Sequence[Row]) -> list[tuple[int, int]] | None:
    """Intervals that hold the points of the rows, each row tightened by those of its other variables; None where some
    variable has no bound."""
    low: list[int | None] = [None] * (len(rows[0]) - 1)
    high = low.copy()
    for _ in range(_ROUNDS):
        for constant, *factors in rows:
            live = [k for k, factor in enumerate(factors) if factor]
            most = {k: high[k] if factors[k] > 0 else low[k] for k in live}
            for k in live:
                rest = constant
                for other in live:
                    reach = most[other]
                    if other != k and reach is not None:
                        rest += factors[other] * reach
                    elif other != k:
                        break
                else:
                    if factors[k] > 0:
                        bound = -(rest // factors[k])
                        low[k] = bound if (known := low[k]) is None else max(known, bound)
                    else:
                        bound = rest // -factors[k]
                        high[k] = bound if (known := high[k]) is None else min(known, bound)
    found = [(a, b) for a, b in zip(low, high, strict=True) if a is not None and b is not None]
    return found if len(found) == len(low) else None


def _interval(rows: Iterable[Row], column: int) -> int:
    low: int | None = None
    high: int | None = None
    for row in rows:
        constant, coefficient = row[0], row[column]
        if coefficient > 0:
            bound = -(constant // coefficient)
            low = bound if low is None else max(low, bound)
        else:
            bound = constant // -coefficient
            high = bound if high is None else min(high, bound)
    if low is None or high is None:
        raise ValueError("the set is infinite")
    return max(0, high - low + 1)


def _polynomial_sum(values: Sequence[int], terms: int) -> int:
    """The sum over k < terms of the polynomial p with p(k) = values[k], by Newton's forward differences."""
    total = 0
    differences = list(values)
    for degree in range(len(values)):
        total += differences[0] * comb(terms, degree + 1)
        differences = [b - a for a, b in itertools.pairwise(differences)]
    return total
