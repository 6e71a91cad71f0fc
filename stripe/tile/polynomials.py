"""Index polynomials: from their syntax to exact rational polynomials of degree one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from stripe.ir.errors import did_you_mean
from stripe.poly.lattice import Polynomial
from stripe.tile import ast
from stripe.tile.diagnostics import Poisoned, SourceText
from stripe.tile.printer import print_polynomial
from stripe.tile.typed import Const, Value

_AFFINE = "index polynomials are sums of indices times constants: 2*i + j/2 - 1"


def polynomial(expr: ast.Expr, env: Mapping[str, Value | None], source: SourceText) -> Polynomial:
    """The value of `expr`; dimension names stand for their sizes and `/` divides exactly.

    Raises StripeError for an expression that is not affine in the indices, for unknown names and for a division by
    zero.
    """
    match expr:
        case ast.IntLit(value):
            return Polynomial(Fraction(value))
        case ast.IndexName(name):
            return Polynomial.var(name)
        case ast.Name():
            return Polynomial(Fraction(_constant(expr, env, source)))
        case ast.Unary("-", operand):
            return polynomial(operand, env, source).scale(Fraction(-1))
        case ast.Chain(first, rest):
            total = polynomial(first, env, source)
            for op, operand in rest:
                total = _combine(total, op, polynomial(operand, env, source), operand, source)
            return total
        case _:
            raise source.error(f"'{print_polynomial(expr)}' cannot stand in an index", expr.span, _AFFINE)


def _constant(expr: ast.Name, env: Mapping[str, Value | None], source: SourceText) -> int:
    value = env.get(expr.name)
    if isinstance(value, Const) and isinstance(value.value, int):
        return int(value.value)
    if expr.name not in env:
        sizes = [name for name, known in env.items() if isinstance(known, Const)]
        hint = did_you_mean(
            expr.name, sizes, "indices are lower case; sizes are named at the inputs, as in A[M, K]"
        )
        raise source.error(f"unknown dimension '{expr.name}'", expr.span, hint)
    if value is None:
        raise Poisoned
    what = f"{value.value}, not an integer" if isinstance(value, Const) else "a tensor"
    raise source.error(
        f"'{expr.name}' is {what}", expr.span, "an index polynomial holds indices, integers and sizes"
    )


def _combine(
    left: Polynomial, op: str, right: Polynomial, operand: ast.Expr, source: SourceText
) -> Polynomial:
    if op == "+":
        return left + right
    if op == "-":
        return left + right.scale(Fraction(-1))
    if op == "*" and left.is_constant:
        return right.scale(left.offset)
    if not right.is_constant:
        reason = (
            "the product of two indices is not affine" if op == "*" else "division by an index is not affine"
        )
        raise source.error(reason, operand.span, _AFFINE)
    if op == "*":
        return left.scale(right.offset)
    if right.offset == 0:
        raise source.error(
            "division by zero", operand.span, "check the sizes that the divisor is computed from"
        )
    return left.scale(1 / right.offset)
