"""Over which variable to sum the slices of a polytope, and where their number of points follows one
quasi-polynomial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import ceil, comb, floor, lcm

from stripe.poly.limits import PolyLimit

_MAX_BASES = 20_000


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """Sum over variable number `variable`: in each chamber (low, high, period), all inclusive, the number of
    points of a
    slice is a quasi-polynomial of that period.
    """

    variable: int
    chambers: tuple[tuple[int, int, int], ...]


def slice_plan(rows: Sequence[tuple[int, ...]]) -> SlicePlan | None:
    """The cheapest variable to sum over in the polytope row[0] + sum of row[1 + k] * x_k >= 0.

    None when the polytope is empty; ValueError when it is unbounded; PolyLimit when it has too many vertices.
    """
    dims = len(rows[0]) - 1
    if comb(len(rows), dims) > _MAX_BASES:
        raise PolyLimit("a set has too many constraints to count its points")
    corners = _vertices(rows, dims)
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
            plan = _chambers(rows, dims, variable, corners)
            cost = sum(min(h - lo + 1, period * dims) for lo, h, period in plan.chambers)
        if best is None or cost < best[0]:
            best = (cost, plan)
    assert best is not None
    return best[1]


def _vertices(rows: Sequence[tuple[int, ...]], dims: int) -> list[tuple[Fraction, ...]]:
    found: dict[tuple[Fraction, ...], None] = {}
    for basis in combinations(rows, dims):
        corner = _solve([list(row[1:]) for row in basis], [[-row[0]] for row in basis])
        if corner is None:
            continue
        point = tuple(values[0] for values in corner)
        if point not in found and all(_value(row, point) >= 0 for row in rows):
            found[point] = None
    return list(found)


def _check_bounded(rows: Sequence[tuple[int, ...]], dims: int) -> None:
    """Each variable must be bounded on both sides: no ray leaves the polytope along an edge."""
    for basis in combinations(rows, dims - 1):
        direction = _kernel([list(row[1:]) for row in basis], dims)
        if direction is None:
            continue
        for sign in (1, -1):
            ray = tuple(sign * d for d in direction)
            if all(sum(c * r for c, r in zip(row[1:], ray, strict=True)) >= 0 for row in rows):
                raise ValueError("the set is infinite")


def _chambers(
    rows: Sequence[tuple[int, ...]], dims: int, variable: int, corners: Sequence[tuple[Fraction, ...]]
) -> SlicePlan:
    breaks = sorted({corner[variable] for corner in corners})
    edges = _edges(rows, dims, variable)
    others = [k for k in range(dims) if k != variable]
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


def _edges(
    rows: Sequence[tuple[int, ...]], dims: int, variable: int
) -> list[list[tuple[Fraction, Fraction]]]:
    """The vertices of a slice as functions of its place: per other coordinate (slope, value at 0)."""
    others = [k for k in range(dims) if k != variable]
    found: list[list[tuple[Fraction, Fraction]]] = []
    for basis in combinations(rows, dims - 1):
        matrix = [[row[1 + k] for k in others] for row in basis]
        solved = _solve(matrix, [[-row[1 + variable], -row[0]] for row in basis])
        if solved is not None:
            found.append([(values[0], values[1]) for values in solved])
    return found


def _period(
    rows: Sequence[tuple[int, ...]],
    edges: Sequence[list[tuple[Fraction, Fraction]]],
    others: Sequence[int],
    variable: int,
    place: Fraction,
) -> int:
    """The common denominator of the vertices that slices around `place` have."""
    result = 1
    for edge in edges:
        point = [Fraction(0)] * (len(others) + 1)
        point[variable] = place
        for k, (slope, start) in zip(others, edge, strict=True):
            point[k] = slope * place + start
        if all(_value(row, point) >= 0 for row in rows):
            result = lcm(result, *(slope.denominator for slope, _ in edge))
    return result


def _value(row: Sequence[int], point: Sequence[Fraction]) -> Fraction:
    return row[0] + sum((c * x for c, x in zip(row[1:], point, strict=True)), Fraction(0))


def _solve(matrix: list[list[int]], right: list[list[int]]) -> list[list[Fraction]] | None:
    """x with matrix * x = right (several right sides), or None when the matrix is singular."""
    size = len(matrix)
    work = [[Fraction(c) for c in row + side] for row, side in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = next((r for r in range(column, size) if work[r][column]), None)
        if pivot is None:
            return None
        work[column], work[pivot] = work[pivot], work[column]
        head = work[column][column]
        work[column] = [c / head for c in work[column]]
        for r in range(size):
            factor = work[r][column]
            if r != column and factor:
                work[r] = [a - factor * b for a, b in zip(work[r], work[column], strict=True)]
    return [row[size:] for row in work]


def _kernel(matrix: list[list[int]], dims: int) -> tuple[Fraction, ...] | None:
    """The one direction that dims - 1 independent rows leave, else None."""
    for free in range(dims):
        columns = [k for k in range(dims) if k != free]
        solved = _solve([[row[k] for k in columns] for row in matrix], [[-row[free]] for row in matrix])
        if solved is not None:
            direction = [Fraction(1)] * dims
            for k, values in zip(columns, solved, strict=True):
                direction[k] = values[0]
            return tuple(direction)
    return None
