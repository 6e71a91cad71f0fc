"""Affine lattices of integer vectors, and rational polynomials of degree one, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import TypeAlias

Vector: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """offset + the sum of coefficient * index; rational, of degree one, terms sorted and without zeros."""

    offset: Fraction = Fraction(0)
    terms: tuple[tuple[str, Fraction], ...] = ()

    @staticmethod
    def of(terms: Mapping[str, Fraction | int], offset: Fraction | int = 0) -> Polynomial:
        """The sum of `terms` and `offset`; terms of coefficient 0 go."""
        kept = sorted((name, Fraction(value)) for name, value in terms.items() if value)
        return Polynomial(Fraction(offset), tuple(kept))

    @staticmethod
    def var(name: str) -> Polynomial:
        return Polynomial(Fraction(0), ((name, Fraction(1)),))

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def single_name(self) -> str | None:
        """The index when the polynomial is exactly that index."""
        plain = self.offset == 0 and len(self.terms) == 1 and self.terms[0][1] == 1
        return self.terms[0][0] if plain else None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    def coeff(self, name: str) -> Fraction:
        return next((value for other, value in self.terms if other == name), Fraction(0))

    def __add__(self, other: Polynomial) -> Polynomial:
        totals = dict(self.terms)
        for name, value in other.terms:
            totals[name] = totals.get(name, Fraction(0)) + value
        return Polynomial.of(totals, self.offset + other.offset)

    def scale(self, factor: Fraction) -> Polynomial:
        return Polynomial.of({name: value * factor for name, value in self.terms}, self.offset * factor)

    def denominator(self) -> int:
        """The least positive integer that makes all coefficients and the offset whole."""
        return lcm(self.offset.denominator, *(value.denominator for _, value in self.terms))


@dataclass(frozen=True, slots=True)
class Lattice:
    """The integer vectors origin + sum of y_k * basis[k] over all integers y; the basis is independent."""

    origin: Vector
    basis: tuple[Vector, ...]

    @staticmethod
    def full(rank: int) -> Lattice:
        """All integer vectors."""
        unit = tuple(tuple(int(row == column) for row in range(rank)) for column in range(rank))
        return Lattice((0,) * rank, unit)

    def compose(self, coefficients: Sequence[int], offset: int) -> tuple[Vector, int]:
        """coefficients . x + offset as a function of y: its coefficients and its offset."""
        return tuple(_dot(coefficients, column) for column in self.basis), offset + _dot(
            coefficients, self.origin
        )

    def where_divisible(self, coefficients: Sequence[int], offset: int, modulus: int) -> Lattice | None:
        """The vectors x with coefficients . x + offset divisible by `modulus`; None when there are none."""
        vector, constant = self.compose(coefficients, offset)
        columns, common = _eliminate(self.basis, vector)
        shared = gcd(common, modulus)
        if shared == 0 or constant % shared:
            return None
        if common == 0:
            return self
        # common * z = -constant (mod modulus) has the solutions first + step * t
        step = modulus // shared
        first = (-constant // shared) * pow(common // shared, -1, step) % step if step > 1 else 0
        head, *tail = columns
        return Lattice(_add(self.origin, head, first), (_scale(head, step), *tail))

    def where_local(self, vector: Vector, value: int) -> Lattice | None:
        """The vectors whose y has vector . y = value (vector is not zero); None when there are none."""
        columns, common = _eliminate(self.basis, vector)
        if value % common:
            return None
        head, *tail = columns
        return Lattice(_add(self.origin, head, value // common), tuple(tail))

    def hermite(self, order: Iterable[int]) -> tuple[Lattice, tuple[int, ...]]:
        """The same lattice with its basis in column Hermite normal form over the rows in `order`, and the pivot rows.

        Column k is the first that is not zero in its pivot row, and positive there; the columns before it are
        reduced by it.
        """
        columns = list(self.basis)
        pivots: list[int] = []
        for row in order:
            done = len(pivots)
            if done == len(columns):
                break
            rest, common = _eliminate(tuple(columns[done:]), tuple(column[row] for column in columns[done:]))
            if common == 0:
                continue
            columns[done:] = rest
            for place in range(done):
                columns[place] = _add(columns[place], columns[done], -(columns[place][row] // common))
            pivots.append(row)
        return Lattice(self.origin, tuple(columns)), tuple(pivots)


def _dot(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _scale(vector: Vector, factor: int) -> Vector:
    return tuple(value * factor for value in vector)


def _add(vector: Vector, other: Vector, factor: int) -> Vector:
    return tuple(a + factor * b for a, b in zip(vector, other, strict=True))


def _eliminate(columns: tuple[Vector, ...], values: Vector) -> tuple[tuple[Vector, ...], int]:
    """Unimodular column operations that turn the row `values` into (g, 0, …, 0); returns the columns and g >= 0."""
    work = list(zip(values, columns, strict=True))
    while True:
        live = [place for place, (value, _) in enumerate(work) if value]
        if not live:
            return columns, 0
        least = min(live, key=lambda place: (abs(work[place][0]), place))
        if len(live) == 1:
            break
        value, column = work[least]
        for place in live:
            if place != least:
                factor = work[place][0] // value
                work[place] = (work[place][0] - factor * value, _add(work[place][1], column, -factor))
    value, column = work.pop(least)
    if value < 0:
        value, column = -value, _scale(column, -1)
    return (column, *(other for _, other in work)), value
