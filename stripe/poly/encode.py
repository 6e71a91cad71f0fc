"""Affines in isl's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import islpy as isl

from stripe.ir import Affine, FloorDiv
from stripe.poly.limits import CONTEXT, PolyLimit

SET = isl.dim_type.set
IN, DIV = isl.dim_type.in_, isl.dim_type.div
OUT = isl.dim_type.out


def number_of(val: isl.Val) -> int:
    """An integer of isl, which is read as text. Raises PolyLimit past the limit of operations, where isl gives none."""
    try:
        number: int = val.to_python()
    except TypeError:
        raise PolyLimit("more isl operations than allowed") from None
    return number


def isl_val(number: int) -> isl.Val:
    return isl.Val.int_from_si(CONTEXT, number) if abs(number) < 1 << 62 else isl.Val(str(number), CONTEXT)


def isl_space(dims: int) -> isl.Space:
    return isl.Space.set_alloc(CONTEXT, 0, dims)


def isl_constraint(
    local: isl.LocalSpace, affine: Affine, position: Mapping[str, int], *, equality: bool
) -> isl.Constraint:
    """affine >= 0, or = 0, for one without floors."""
    made = isl.Constraint.equality_alloc(local) if equality else isl.Constraint.inequality_alloc(local)
    if affine.offset:
        made = made.set_constant_val(isl_val(affine.offset))
    for atom, coefficient in affine.terms:
        assert isinstance(atom, str)
        made = made.set_coefficient_val(SET, position[atom], isl_val(coefficient))
    return made


Row: TypeAlias = tuple[int, ...]
"""row[0] + sum of row[1 + k] * variable k, over the coordinates of a set and then its floors."""


def rows_of(basic: isl.BasicSet) -> tuple[list[Row], list[Row], list[tuple[Row, int]]]:
    """The constraints of a basic set with explicit floors: rows that are 0, rows that are at least 0, and for each
    floor with its divisor the row `divisor * (argument - floor)`, which is in [0, divisor)."""
    kinds = (isl.dim_type.cst, SET, isl.dim_type.div, isl.dim_type.param)
    dims, divs = basic.dim(SET), basic.dim(isl.dim_type.div)
    floors: list[tuple[Row, int]] = []
    for number in range(divs):
        floor = basic.get_div(number)
        divisor: int = number_of(floor.get_denominator_val())
        scaled = floor.scale_val(isl_val(divisor))
        row = [number_of(scaled.get_constant_val())]
        row += [number_of(scaled.get_coefficient_val(IN, k)) for k in range(dims)]
        row += [number_of(scaled.get_coefficient_val(isl.dim_type.div, k)) for k in range(divs)]
        row[1 + dims + number] -= divisor
        floors.append((tuple(row), divisor))
    return _matrix(basic.equalities_matrix(*kinds)), _matrix(basic.inequalities_matrix(*kinds)), floors


def _matrix(matrix: isl.Mat) -> list[Row]:
    columns = range(matrix.cols())
    return [tuple(number_of(matrix.get_element_val(r, c)) for c in columns) for r in range(matrix.rows())]


def affines_of(basic: isl.BasicSet, names: Sequence[str]) -> list[Affine]:
    """The constraints of a basic set with explicit floors as affines that are at least 0, two for an equality; without
    the constraints that define floors."""
    equalities, inequalities, floors = rows_of(basic)
    terms = [Affine.var(name) for name in names]

    def affine(row: Row) -> Affine:
        return sum(
            (term * factor for term, factor in zip(terms, row[1:], strict=False) if factor), Affine(row[0])
        )

    defining: set[Row] = set()
    for number, (row, divisor) in enumerate(floors):
        defining |= {row, (divisor - 1 - row[0], *(-c for c in row[1:]))}
        column = 1 + len(names) + number
        terms.append(affine((*row[:column], 0, *row[column + 1 :])).floordiv(divisor))
    found = [side for row in equalities for side in (affine(row), -affine(row))]
    return found + [affine(row) for row in inequalities if row not in defining]


def isl_aff(local: isl.LocalSpace, affine: Affine, position: Mapping[str, int]) -> isl.Aff:
    """isl's quasi-affine; floors become its integer divisions."""
    result = isl.Aff.zero_on_domain(local).set_constant_val(isl_val(affine.offset))
    for atom, coefficient in affine.terms:
        if isinstance(atom, str):
            result = result.add_coefficient_val(IN, position[atom], isl_val(coefficient))
            continue
        inner = isl_aff(local, atom.arg, position)
        if isinstance(atom, FloorDiv):
            part = inner.scale_down_val(isl_val(atom.divisor)).floor()
        else:
            part = inner.mod_val(isl_val(atom.modulus))
        result = result.add(part.scale_val(isl_val(coefficient)))
    return result


def affine_of(aff: isl.Aff, names: Sequence[str]) -> Affine:
    """An integer-valued quasi-affine of isl over coordinates called `names`; the reverse of `isl_aff`."""
    scale = number_of(aff.get_denominator_val())
    total = Affine(number_of(aff.get_constant_val()) * scale)
    for number, name in enumerate(names):
        total = total + Affine.var(name) * number_of(aff.get_coefficient_val(IN, number)) * scale
    for number in range(aff.dim(DIV)):
        factor = number_of(aff.get_coefficient_val(DIV, number)) * scale
        if factor:
            inner = aff.get_div(number)
            divisor = number_of(inner.get_denominator_val())
            total = total + affine_of(inner.scale_val(isl_val(divisor)), names).floordiv(divisor) * factor
    return total
