"""The variable over which to sum the slices of a polytope, and the chambers in which their number of points follows
one quasi-polynomial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise
from math import ceil, comb, floor, gcd, lcm
from operator import mul

from stripe.poly.limits import PolyLimit

_MAX_BASES = 20_000


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """Sum over variable number `variable`: in each chamber (low, high, period), all inclusive, the number of points of
    a slice is a quasi-polynomial of that period.
    """

    variable: int
    chambers: tuple[tuple[int, int, int], ...]


@lru_cache(maxsize=4096)
def slice_plan(rows: tuple[tuple[int, ...], ...]) -> SlicePlan | None:
    """The cheapest variable to sum over in the polytope row[0] + sum of row[1 + k] * x_k >= 0.

    None when the polytope is empty; ValueError when it is unbounded; PolyLimit when it has too many vertices. Plans are
    kept, since layers of a network, and slices of one set, ask for the same ones again and again.
    """
    dims = len(rows[0]) - 1
    if comb(len(rows), dims) > _MAX_BASES:
        raise PolyLimit("a set has too many constraints to count its points")
    corners: dict[tuple[Fraction, ...], None] = {}
    for basis in combinations(rows, dims):
        corner = _solve([[*row[1:], -row[0]] for row in basis])
        if corner is not None:
            numerators = [values[0] for values in corner.numerators]
            if _inside(rows, numerators, corner.denominator):
                corners[tuple(Fraction(value, corner.denominator) for value in numerators)] = None
    if not corners:
        return None
    _check_bounded(rows, dims)
    best: tuple[int, SlicePlan] | None = None
    for variable in range(dims):
        low = min(corner[variable] for corner in corners)
        high = max(corner[variable] for corner in corners)
        extent = floor(high) - ceil(low) + 1
        if extent <= 4 * dims:
            plan = SlicePlan(variable, ((ceil(low), floor(high), max(1, extent)),))
            cost = extent
        else:
            plan = _chambers(rows, dims, variable, [*corners])
            cost = sum(min(h - lo + 1, period * dims) for lo, h, period in plan.chambers)
        if best is None or cost < best[0]:
            best = (cost, plan)
    assert best is not None
    return best[1]


def _inside(rows: Sequence[tuple[int, ...]], numerators: Sequence[int], denominator: int) -> bool:
    """Whether the point numerators / denominator (positive) satisfies all rows."""
    return all(row[0] * denominator + sum(map(mul, row[1:], numerators)) >= 0 for row in rows)


def _check_bounded(rows: Sequence[tuple[int, ...]], dims: int) -> None:
    """Each variable must be bounded on both sides: no ray leaves the polytope along an edge."""
    for basis in combinations(rows, dims - 1):
        direction = _kernel([list(row[1:]) for row in basis], dims)
        if direction is None:
            continue
        for sign in (1, -1):
            ray = tuple(sign * d for d in direction)
            if all(sum(map(mul, row[1:], ray)) >= 0 for row in rows):
                raise ValueError("the set is infinite")


def _chambers(
    rows: Sequence[tuple[int, ...]], dims: int, variable: int, corners: Sequence[tuple[Fraction, ...]]
) -> SlicePlan:
    breaks = sorted({corner[variable] for corner in corners})
    others = [k for k in range(dims) if k != variable]
    # the vertices of a slice as functions of its place: per other coordinate (slope, value at 0)
    solved = (
        _solve([[*(row[1 + k] for k in others), -row[1 + variable], -row[0]] for row in basis])
        for basis in combinations(rows, dims - 1)
    )
    edges = [edge for edge in solved if edge is not None]
    chambers: list[tuple[int, int, int]] = []
    start = ceil(breaks[0])
    for left, right in pairwise(breaks):
        end = floor(right)
        if end >= start:
            chambers.append((start, end, _period(rows, edges, others, variable, (left + right) / 2)))
            start = end + 1
    if len(breaks) == 1 and breaks[0] == start:
        chambers.append((start, start, 1))
    return SlicePlan(variable, tuple(chambers))


def _period(
    rows: Sequence[tuple[int, ...]],
    edges: Sequence[_Solution],
    others: Sequence[int],
    variable: int,
    place: Fraction,
) -> int:
    """The common denominator of the vertices that slices around `place` have."""
    result = 1
    for edge in edges:
        scale = edge.denominator * place.denominator
        point = [0] * (len(others) + 1)
        point[variable] = place.numerator * edge.denominator
        for k, (slope, start) in zip(others, edge.numerators, strict=True):
            point[k] = slope * place.numerator + start * place.denominator
        if _inside(rows, point, scale):
            result = lcm(
                result, *(edge.denominator // gcd(slope, edge.denominator) for slope, _ in edge.numerators)
            )
    return result


@dataclass(frozen=True, slots=True)
class _Solution:
    """Per unknown the numerator for each right side; all have one positive denominator."""

    numerators: list[list[int]]
    denominator: int


def _solve(work: list[list[int]]) -> _Solution | None:
    """The solution of linear equations, one a row: coefficients, then right sides; None when they are singular.

    Elimination without fractions (Bareiss 1968): each division is exact, and in the end all pivots are the determinant.
    """
    size = len(work)
    previous = 1
    for column in range(size):
        pivot = next((r for r in range(column, size) if work[r][column]), None)
        if pivot is None:
            return None
        work[column], work[pivot] = work[pivot], work[column]
        own = work[column]
        head = own[column]
        for r in range(size):
            if r != column:
                factor = work[r][column]
                work[r] = [(head * a - factor * b) // previous for a, b in zip(work[r], own, strict=True)]
        previous = head
    if previous < 0:
        return _Solution([[-value for value in row[size:]] for row in work], -previous)
    return _Solution([row[size:] for row in work], previous)


def _kernel(matrix: list[list[int]], dims: int) -> tuple[int, ...] | None:
    """The one direction that dims - 1 independent rows leave, else None."""
    for free in range(dims):
        columns = [k for k in range(dims) if k != free]
        solved = _solve([[*(row[k] for k in columns), -row[free]] for row in matrix])
        if solved is not None:
            direction = [solved.denominator] * dims
            for k, values in zip(columns, solved.numerators, strict=True):
                direction[k] = values[0]
            return tuple(direction)
    return None
