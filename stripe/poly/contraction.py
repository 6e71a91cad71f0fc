"""The exact index set of a contraction: from rational access polynomials with sizes to a box with constraints.

`solve` finds all integer points at which every polynomial is an integer inside its range, on a lattice basis on which
all of them are integer (Hermite normal form), with the exact minimum and maximum of each index (by isl), every index
shifted to start at 0, and only those constraints that neither the box nor the others imply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd

from stripe.ir.affine import Affine
from stripe.poly.bands import Band, BoundedSet, EmptyDomain, bound_bands
from stripe.poly.lattice import Lattice, Polynomial, Vector


@dataclass(frozen=True, slots=True)
class Range:
    """The demand that `polynomial` be an integer with 0 <= polynomial < size (None: no upper end)."""

    polynomial: Polynomial
    size: int | None


@dataclass(frozen=True, slots=True)
class IndexSet:
    """A set of integer points: `indices` with ranges [0, range), restricted by `constraints` (each affine >= 0).

    `values` gives every index of the source as an affine over `indices`; those with a single value are constants there.
    """

    indices: tuple[tuple[str, int], ...]
    constraints: tuple[Affine, ...]
    values: tuple[tuple[str, Affine], ...]

    @property
    def ranges(self) -> dict[str, int]:
        return dict(self.indices)

    def affine(self, polynomial: Polynomial) -> Affine:
        """`polynomial`, one of those that were made integer, over the new indices."""
        denominator = polynomial.denominator()
        values = dict(self.values)
        total = Affine.constant(int(polynomial.offset * denominator))
        for name, coefficient in polynomial.terms:
            total = total + values[name] * int(coefficient * denominator)
        return _divide(total, denominator)


def _divide(affine: Affine, divisor: int) -> Affine:
    if divisor == 1:
        return affine
    assert affine.offset % divisor == 0 and all(c % divisor == 0 for _, c in affine.terms), (
        "not on the lattice"
    )
    return Affine(affine.offset // divisor, tuple((atom, c // divisor) for atom, c in affine.terms))


@lru_cache(maxsize=4096)
def solve(names: tuple[str, ...], ranges: tuple[Range, ...]) -> IndexSet:
    """The points of the indices `names` that satisfy all `ranges`. Index names stay where nothing is fractional.

    Raises EmptyDomain, UnboundedIndex, and `stripe.poly.limits.PolyLimit` when isl would take too long.
    """
    rows = [_integer_row(names, item) for item in ranges]
    lattice = Lattice.full(len(names))
    for row, item in zip(rows, ranges, strict=True):
        if row.scale > 1:
            lattice = _checked(lattice.where_divisible(row.coefficients, row.offset, row.scale), item)
    order = _pivot_order(names, rows, ranges)
    while True:
        lattice, pivots = _normalised(lattice, order)
        bands = _bands(lattice, rows, ranges)
        fixed = next(
            ((vector, low) for vector, (low, high) in bands.items() if low is not None and low == high), None
        )
        if fixed is None:
            break
        lattice = _checked(lattice.where_local(*fixed), None)
    boxed = bound_bands(tuple(names[place] for place in pivots), tuple(bands.items()))
    return _domain(names, lattice, boxed)


@dataclass(frozen=True, slots=True)
class _Row:
    """(coefficients . x + offset) / scale, all integers."""

    coefficients: Vector
    offset: int
    scale: int


def _integer_row(names: Sequence[str], item: Range) -> _Row:
    polynomial = item.polynomial
    scale = polynomial.denominator()
    lookup = dict(polynomial.terms)
    coefficients = tuple(int(lookup.get(name, Fraction(0)) * scale) for name in names)
    return _Row(coefficients, int(polynomial.offset * scale), scale)


def _checked(lattice: Lattice | None, item: Range | None) -> Lattice:
    if lattice is None:
        raise EmptyDomain("no integer point satisfies all conditions", item.polynomial if item else None)
    return lattice


def _pivot_order(names: Sequence[str], rows: Sequence[_Row], ranges: Sequence[Range]) -> Vector:
    """Indices with small ranges first: as pivots of the normal form they keep the boxes around the points small."""
    extent: dict[int, Fraction] = {}
    for row, item in zip(rows, ranges, strict=True):
        live = [place for place, value in enumerate(row.coefficients) if value]
        if len(live) == 1 and item.size is not None:
            size = Fraction(item.size * row.scale, abs(row.coefficients[live[0]]))
            extent[live[0]] = min(size, extent.get(live[0], size))
    known = sorted(extent, key=lambda place: (extent[place], names[place]))
    return (*known, *(place for place in range(len(names)) if place not in extent))


def _normalised(lattice: Lattice, order: Vector) -> tuple[Lattice, Vector]:
    """The lattice in Hermite normal form and its pivots; untouched where nothing restricts it, so that names stay."""
    if lattice == Lattice.full(len(order)):
        return lattice, tuple(range(len(order)))
    return lattice.hermite(order)


def _bands(lattice: Lattice, rows: Sequence[_Row], ranges: Sequence[Range]) -> dict[Vector, Band]:
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
        band = _meet(bands.get(vector, (None, None)), limits)
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


def _meet(one: Band, other: Band) -> Band:
    lows = [low for low in (one[0], other[0]) if low is not None]
    highs = [high for high in (one[1], other[1]) if high is not None]
    return max(lows, default=None), min(highs, default=None)


def _domain(names: Sequence[str], lattice: Lattice, boxed: BoundedSet) -> IndexSet:
    """The set in coordinates that start at 0, without those that have a single value."""
    locals_: list[Affine] = []
    indices: list[tuple[str, int]] = []
    for name, (low, high) in zip(boxed.names, boxed.box, strict=True):
        if low == high:
            locals_.append(Affine.constant(low))
        else:
            indices.append((name, high - low + 1))
            locals_.append(Affine.var(name) + low)
    values = [
        (name, _combine([column[row] for column in lattice.basis], locals_, lattice.origin[row]))
        for row, name in enumerate(names)
    ]
    constraints = tuple(_combine(vector, locals_, offset) for vector, offset in boxed.constraints)
    return IndexSet(tuple(sorted(indices)), constraints, tuple(values))


def _combine(coefficients: Sequence[int], affines: Sequence[Affine], offset: int) -> Affine:
    terms: list[tuple[str, int]] = []
    for coefficient, affine in zip(coefficients, affines, strict=True):
        offset += coefficient * affine.offset
        terms += [(str(atom), coefficient * inner) for atom, inner in affine.terms]
    totals: dict[str, int] = {}
    for name, coefficient in terms:
        totals[name] = totals.get(name, 0) + coefficient
    return Affine.linear(totals, offset)
