"""Functions of Tile that are written in Tile; a call expands to their statements under fresh names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from stripe.ir.span import Span
from stripe.tile import ast
from stripe.tile.parser import parse_tile

_SOURCES: dict[str, str] = {
    # Subtracting the maximum of a row keeps exp in range.
    "builtin_softmax": """function (X, D0, D1) -> (Y) {
        M[i, 0 : D0, 1] = >(X[i, j]);
        E = exp(X - M);
        S[i, 0 : D0, 1] = +(E[i, j]);
        Y = E / S;
    }""",
    # log(E / S) without computing E / S, which may be 0.
    "builtin_logsoftmax": """function (X, D0, D1) -> (Y) {
        M[i, 0 : D0, 1] = >(X[i, j]);
        Z = X - M;
        E = exp(Z);
        S[i, 0 : D0, 1] = +(E[i, j]);
        Y = Z - log(S);
    }""",
    # N only scales the gradient.
    "builtin_binary_crossentropy": """function (P, T, N) -> (Y) {
        Y = -(T * log(P)) - (1 - T) * log(1 - P);
    }""",
}


@cache
def library() -> Mapping[str, ast.Function]:
    """The functions by name."""
    return {name: parse_tile(text, f"<{name}>") for name, text in _SOURCES.items()}


LIBRARY_NAMES = frozenset(_SOURCES)


def expand(
    function: ast.Function,
    arguments: Mapping[str, ast.Expr],
    target: str,
    fresh: Callable[[str], str],
    span: Span,
) -> tuple[ast.Stmt, ...]:
    """The statements of `function` with `arguments` for its inputs; its one output is called `target`."""
    names: dict[str, ast.Expr] = dict(arguments)
    for statement in function.statements:
        whole = statement.target == function.outputs[0].name
        names[statement.target] = ast.Name(target if whole else fresh(f"{target}_{statement.target}"), span)
    return tuple(_rename(statement, names, span) for statement in function.statements)


def _rename(statement: ast.Stmt, names: Mapping[str, ast.Expr], span: Span) -> ast.Stmt:
    if isinstance(statement, ast.Assignment):
        return ast.Assignment(
            _name(statement.target, names), substitute(statement.value, names, span), (), span, span
        )
    sizes = statement.sizes
    return replace(
        statement,
        output=_access(statement.output, names, span),
        sizes=None if sizes is None else tuple(substitute(size, names, span) for size in sizes),
        inputs=tuple(_access(access, names, span) for access in statement.inputs),
        bounds=tuple(
            ast.Bound(substitute(bound.polynomial, names, span), substitute(bound.limit, names, span), span)
            for bound in statement.bounds
        ),
        span=span,
    )


def _name(name: str, names: Mapping[str, ast.Expr]) -> str:
    found = names.get(name)
    return found.name if isinstance(found, ast.Name) else name


def _access(access: ast.Access, names: Mapping[str, ast.Expr], span: Span) -> ast.Access:
    indices = tuple(substitute(index, names, span) for index in access.indices)
    return ast.Access(_name(access.tensor, names), indices, span)


def substitute(expr: ast.Expr, names: Mapping[str, ast.Expr], span: Span) -> ast.Expr:
    """`expr` with names replaced, all of it placed at `span`."""
    match expr:
        case ast.Name(name):
            return names.get(name, replace(expr, span=span))
        case ast.Unary(op, operand):
            return ast.Unary(op, substitute(operand, names, span), span)
        case ast.Chain(first, rest):
            pairs = tuple((op, substitute(operand, names, span)) for op, operand in rest)
            return ast.Chain(substitute(first, names, span), pairs, span)
        case ast.Cond(condition, then, other):
            parts = [substitute(part, names, span) for part in (condition, then, other)]
            return ast.Cond(parts[0], parts[1], parts[2], span)
        case ast.Call(function, arguments):
            return ast.Call(
                function, tuple(substitute(argument, names, span) for argument in arguments), span
            )
        case _:
            return replace(expr, span=span)
