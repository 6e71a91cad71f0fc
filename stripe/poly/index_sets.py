"""The exact index set of a contraction: from rational access polynomials with sizes to a box with constraints.

`solve` finds all integer points at which every polynomial is an integer inside its range, on a lattice basis on which
all of them are integer (Hermite normal form), with the exact minimum and maximum of each index (by isl), every index
shifted to start at 0, and only the constraints that neither the box nor the others imply.

In the coordinates of the lattice the ranges are bands: integer points between parallel hyperplanes. They split into
components of indices that share no band, which keeps each question to isl small; a component whose bands all follow
from plain intervals needs no isl at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd
from typing import TypeAlias

from stripe.ir import Affine, Domain, Interval
from stripe.poly.connected import connected
from stripe.poly.lattice import Lattice, Polynomial, Vector
from stripe.poly.limits import operation_limit
from stripe.poly.sets import Points

Band: TypeAlias = tuple[int | None, int | None]
"""Inclusive lower and upper end, None where there is none."""


class EmptyDomain(ValueError):
    """No integer point satisfies all ranges; `cause` is the polynomial that shows it, when one does alone."""

    def __init__(self, reason: str, cause: Polynomial | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


class UnboundedIndex(ValueError):
    """The points are infinitely many in the direction of the index `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"index '{name}' is not bounded")
        self.name = name


@dataclass(frozen=True, slots=True)
class Range:
    """The demand that `polynomial` be an integer with 0 <= polynomial < size (None: no upper end)."""

    polynomial: Polynomial
    size: int | None


@dataclass(frozen=True, slots=True)
class IndexSet:
    """The points of a domain whose indices start at 0; `values` gives every index of the source as an affine over
    them."""

    domain: Domain
    values: tuple[tuple[str, Affine], ...]

    @staticmethod
    def of(
        box: Mapping[str, Interval], constraints: Iterable[Affine], values: Iterable[tuple[str, Affine]]
    ) -> IndexSet:
        """The points of `box` that satisfy `constraints`: each index shifted to start at 0, none with one value."""
        shifted = {
            name: Affine.var(name) + low if high > low else Affine(low) for name, (low, high) in box.items()
        }
        ranges = {name: (0, high - low) for name, (low, high) in sorted(box.items()) if high > low}
        return IndexSet(
            Domain.of(ranges, tuple(affine.subs(shifted) for affine in constraints)),
            tuple((name, value.subs(shifted)) for name, value in values),
        )

    @property
    def indices(self) -> tuple[tuple[str, int], ...]:
        """The indices with their ranges."""
        return tuple((name, high + 1) for name, (_, high) in self.domain.ranges.items())

    def affine(self, polynomial: Polynomial) -> Affine:
        """A polynomial that is an integer at every point, over the new indices."""
        denominator = polynomial.denominator()
        values = dict(self.values)
        total = Affine(int(polynomial.offset * denominator))
        for name, coefficient in polynomial.terms:
            total = total + values[name] * int(coefficient * denominator)
        assert all(c % denominator == 0 for c in (total.offset, *(c for _, c in total.terms))), "not integer"
        return Affine(total.offset // denominator, tuple((a, c // denominator) for a, c in total.terms))


@lru_cache(maxsize=4096)
def solve(names: tuple[str, ...], ranges: tuple[Range, ...]) -> IndexSet:
    """The points of the indices `names` that satisfy all `ranges`. Index names stay where nothing is fractional.

    Raises EmptyDomain, UnboundedIndex, and `stripe.poly.limits.PolyLimit` when isl would take too long.
    """
    rows: list[_ScaledRow] = []
    for polynomial in (item.polynomial for item in ranges):
        scale = polynomial.denominator()
        coefficients = tuple(int(polynomial.coeff(name) * scale) for name in names)
        rows.append(_ScaledRow(coefficients, int(polynomial.offset * scale), scale))
    lattice = Lattice.full(len(names))
    for row, item in zip(rows, ranges, strict=True):
        if row.scale > 1:
            lattice = _checked(lattice.where_divisible(row.coefficients, row.offset, row.scale), item)
    order = _pivot_order(names, rows, ranges)
    while True:
        # A lattice that nothing restricts keeps its basis, so that names stay.
        whole = lattice == Lattice.full(len(names))
        lattice, pivots = (lattice, tuple(range(len(names)))) if whole else lattice.hermite(order)
        bands = _bands(lattice, rows, ranges)
        fixed = next(
            ((vector, low) for vector, (low, high) in bands.items() if low is not None and low == high), None
        )
        if fixed is None:
            break
        lattice = _checked(lattice.where_local(*fixed), None)
    local = tuple(names[place] for place in pivots)
    found = _bounded(
        local, {Affine.linear(dict(zip(local, v, strict=True))): band for v, band in bands.items()}
    )
    values: list[tuple[str, Affine]] = []
    for row, name in enumerate(names):
        terms = {other: column[row] for other, column in zip(local, lattice.basis, strict=True)}
        values.append((name, Affine.linear(terms, lattice.origin[row])))
    return IndexSet.of(found.ranges, found.constraints, values)


@dataclass(frozen=True, slots=True)
class _ScaledRow:
    """(coefficients . x + offset) / scale, all integers."""

    coefficients: Vector
    offset: int
    scale: int


def _checked(lattice: Lattice | None, item: Range | None) -> Lattice:
    if lattice is None:
        raise EmptyDomain("no integer point satisfies all conditions", item.polynomial if item else None)
    return lattice


def _pivot_order(names: Sequence[str], rows: Sequence[_ScaledRow], ranges: Sequence[Range]) -> Vector:
    """Indices with small ranges first: as pivots of the normal form they keep the boxes around the points small."""
    extent: dict[int, Fraction] = {}
    for row, item in zip(rows, ranges, strict=True):
        live = [place for place, value in enumerate(row.coefficients) if value]
        if len(live) == 1 and item.size is not None:
            size = Fraction(item.size * row.scale, abs(row.coefficients[live[0]]))
            extent[live[0]] = min(size, extent.get(live[0], size))
    known = sorted(extent, key=lambda place: (extent[place], names[place]))
    return (*known, *(place for place in range(len(names)) if place not in extent))


def _bands(lattice: Lattice, rows: Sequence[_ScaledRow], ranges: Sequence[Range]) -> dict[Vector, Band]:
    """The ranges as low <= vector . y <= high with primitive vectors, parallel ones intersected."""
    bands: dict[Vector, Band] = {}
    for row, item in zip(rows, ranges, strict=True):
        scaled, constant = lattice.compose(row.coefficients, row.offset)
        vector = tuple(value // row.scale for value in scaled)
        offset = constant // row.scale
        low, high = -offset, None if item.size is None else item.size - 1 - offset
        if not any(vector):
            if low > 0 or (high is not None and high < 0):
                raise EmptyDomain("no integer point satisfies all conditions", item.polynomial)
            continue
        vector, limits = _primitive(vector, (low, high))
        both = (bands.get(vector, (None, None)), limits)
        band = (
            max((least for least, _ in both if least is not None), default=None),
            min((most for _, most in both if most is not None), default=None),
        )
        if band[0] is not None and band[1] is not None and band[0] > band[1]:
            raise EmptyDomain("no integer point satisfies all conditions", item.polynomial)
        bands[vector] = band
    return bands


def _primitive(vector: Vector, band: Band) -> tuple[Vector, Band]:
    """Divides by the common factor, rounding inwards; the first coefficient becomes positive."""
    common = gcd(*vector)
    if next(value for value in vector if value) < 0:
        common = -common
        band = (band[1], band[0])
    low, high = band
    return tuple(value // common for value in vector), (
        None if low is None else -(-low // common),
        None if high is None else high // common,
    )


def _bounded(names: Sequence[str], bands: Mapping[Affine, Band]) -> Domain:
    """The exact box of the points in all bands, with the constraints that neither box nor others imply."""
    box: dict[str, Interval] = {}
    kept: set[Affine] = set()
    for members in connected([*([name] for name in names), *(affine.names() for affine in bands)]):
        inside = {affine: band for affine, band in bands.items() if affine.names() <= set(members)}
        domain = _component(members, inside)
        box |= domain.ranges
        kept.update(domain.constraints)
    return Domain.of(
        {name: box[name] for name in names}, tuple(side for side in _sides(bands) if side in kept)
    )


def _sides(bands: Mapping[Affine, Band]) -> list[Affine]:
    """The one or two inequalities of each band."""
    found: list[Affine] = []
    for affine, (low, high) in bands.items():
        found += [affine - low] if low is not None else []
        found += [high - affine] if high is not None else []
    return found


def _component(members: Sequence[str], bands: Mapping[Affine, Band]) -> Domain:
    wide = {affine: band for affine, band in bands.items() if len(affine.terms) > 1}
    box: dict[str, Interval] = {}
    for affine, (low, high) in bands.items():
        if affine.single_name is not None and low is not None and high is not None:
            box[affine.single_name] = (low, high)
    if len(box) < len(members) and not wide:
        raise UnboundedIndex(next(name for name in members if name not in box))
    if len(box) < len(members) or _left_over(wide, box):
        box = _exact_box(members, _sides(bands))
    left = _left_over(wide, box)
    directions = {frozenset((side - side.offset, side.offset - side)) for side in left}
    return Domain.of(box, tuple(left if len(directions) <= 1 else _without_implied(left, box)))


def _left_over(bands: Mapping[Affine, Band], box: Mapping[str, Interval]) -> list[Affine]:
    """The inequalities of `bands` that some point of the box violates."""
    return [side for side in _sides(bands) if side.bounds(box)[0] < 0]


def _exact_box(names: Sequence[str], sides: Sequence[Affine]) -> dict[str, Interval]:
    box: dict[str, Interval] = {}
    with operation_limit():
        points = Points.build(names, {}, sides)
        for name in names:
            try:
                found = points.bounds(name)
            except ValueError:
                raise UnboundedIndex(name) from None
            if found is None:
                raise EmptyDomain("no integer point satisfies all conditions")
            box[name] = found
    return box


def _without_implied(sides: Sequence[Affine], box: Mapping[str, Interval]) -> list[Affine]:
    """Drops each inequality that the box and the remaining ones imply, the later ones first."""
    kept = list(sides)
    with operation_limit():
        for side in reversed(sides):
            others = [other for other in kept if other != side]
            if Points.build(tuple(box), box, [*others, -side - 1]).is_empty:
                kept = others
    return kept
