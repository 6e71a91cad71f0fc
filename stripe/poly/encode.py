"""Affines in isl's terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import islpy as isl

from stripe.ir import Affine, FloorDiv
from stripe.poly.limits import CONTEXT

SET = isl.dim_type.set
IN = isl.dim_type.in_
OUT = isl.dim_type.out


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


def affines_of(basic: isl.BasicSet, names: Sequence[str]) -> Iterator[Affine]:
    """The constraints of a basic set with explicit floors."""
    floors: list[Affine] = []
    for place in range(basic.dim(isl.dim_type.div)):
        floor = basic.get_div(place)
        divisor = floor.get_denominator_val().to_python()
        scaled = floor.scale_val(isl_val(divisor))
        terms = Affine(scaled.get_constant_val().to_python())
        for position, name in enumerate(names):
            terms = terms + Affine.var(name) * scaled.get_coefficient_val(IN, position).to_python()
        for position, inner in enumerate(floors):
            terms = terms + inner * scaled.get_coefficient_val(isl.dim_type.div, position).to_python()
        floors.append(terms.floordiv(divisor))
    for constraint in basic.get_constraints():
        affine = Affine(constraint.get_constant_val().to_python())
        for position, name in enumerate(names):
            affine = affine + Affine.var(name) * constraint.get_coefficient_val(SET, position).to_python()
        for position, inner in enumerate(floors):
            coefficient = constraint.get_coefficient_val(isl.dim_type.div, position).to_python()
            affine = affine + inner * coefficient
        if not affine.is_constant:  # what defines a floor holds by itself
            yield affine
            if constraint.is_equality():
                yield -affine


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
