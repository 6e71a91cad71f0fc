"""Random index polynomials of contractions."""

from __future__ import annotations

from hypothesis import strategies as st

from stripe.tile import ast


def _scaled(name: str, top: int, bottom: int) -> ast.Expr:
    index = ast.IndexName(name)
    expr: ast.Expr = index if top == 1 else ast.Chain(ast.IntLit(top), (("*", index),))
    if bottom == 1:
        return expr
    rest = (("/", ast.IntLit(bottom)),)
    return ast.Chain(expr.first, expr.rest + rest) if isinstance(expr, ast.Chain) else ast.Chain(expr, rest)


@st.composite
def polynomials(draw: st.DrawFn, names: tuple[str, ...]) -> ast.Expr:
    """A small sum of scaled indices and an offset."""
    parts: list[ast.Expr] = []
    for name in draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else []:
        top = draw(st.sampled_from([1, 1, 1, 1, 2, 3, -1, -2]))
        parts.append(_scaled(name, top, draw(st.sampled_from([1, 1, 1, 2, 3]))))
    offset = draw(st.sampled_from([0, 0, 0, 1, 2, -1, -2]))
    if offset or not parts:
        parts.append(ast.IntLit(offset))
    return parts[0] if len(parts) == 1 else ast.Chain(parts[0], tuple(("+", part) for part in parts[1:]))


def anchor(draw: st.DrawFn, name: str) -> ast.Expr:
    """A polynomial that bounds its index alone."""
    top, bottom = draw(st.sampled_from([(1, 1), (1, 1), (1, 1), (-1, 1), (2, 1), (1, 2)]))
    scaled = _scaled(name, top, bottom)
    offset = draw(st.sampled_from([0, 0, 0, 1, -1, 3]))
    return ast.Chain(scaled, (("+", ast.IntLit(offset)),)) if offset else scaled
