"""The number of integer points that satisfy linear equalities and inequalities.

Equalities are eliminated. The rest splits into components that share no variable, whose counts multiply. In a component
one variable is summed out: over its few values, or, where these are many, by the quasi-polynomial that the number of
points of a slice is between two vertices (Ehrhart; Clauss 1996, "Counting solutions to linear and nonlinear constraints
through Ehrhart polynomials").
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import comb, gcd, prod

from stripe.poly.connected import connected
from stripe.poly.count.vertices import slice_plan
from stripe.poly.encode import Row
from stripe.poly.limits import PolyLimit

_MAX_SLICES = 200_000
_FEW = 1 << 14
"""Points of a box that are tested one by one: that takes less time than the vertices of a polytope."""
_ROUNDS = 2
"""Passes over the rows that look for the box."""
_MAX_INT = 1 << 62


@lru_cache(maxsize=4096)
def count_rows(equalities: tuple[Row, ...], inequalities: tuple[Row, ...], width: int) -> int:
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
