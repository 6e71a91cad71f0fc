"""The grammar: every form of Tile, printing that parses back, and spans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.ir import StripeError
from stripe.ir.span import Span
from stripe.tile import ast, parse_tile, print_tile
from stripe.tile.printer import print_expr, print_statement


def function(body: str, inputs: str = "A[M, K]", outputs: str = "O") -> ast.Function:
    return parse_tile(f"function ({inputs}) -> ({outputs}) {{ {body} }}", "f.tile")


def statement(text: str) -> ast.Stmt:
    (found,) = function(text).statements
    return found


def expression(text: str) -> ast.Expr:
    found = statement(f"O = {text};")
    assert isinstance(found, ast.Assignment)
    return found.value


FORMS = [
    "O[i, j : M, N] = +(A[i, k] * B[k, j]);",
    "O[i : N] = >(A[i + j]), j < K, i < 3 no_defract default T;",
    "O[i : N] = <(A[i + j]) default T no_defract;",
    "O[] = +(A[i]);",
    "O[:] = +(A[i]);",
    "O[i] = =(A[i]);",
    "O[i : N] = *(A[i] + B[i]);",
    "O[i : N] = =(A[] == B[i]);",
    "O[i, j : M, N]: i32 = +(A[i, k] * B[k, j]), i < 3 default T;",
    "O[]: fp64 = +(A[i]);",
    "O[i]: i8 = =(A[i]);",
    "O[i : N] = +(A[i] == B[i] ? C[i]);",
    "O[i : N] = +(A[i] * B[i] ? C[i]);",  # any operator before the question mark means equality
    "O[3i + 2, -j/2 : 2*N - 1, (N + 3)/4] = +(A[(i - j)/2, 3*(i + 1)]);",
    "[[pid(conv)]] [[conv]] [[x(a, B)]] O = A;",
    "O = A + B*C - -D / (E - F) ;",
    "O = A == B ? C : D < E ? F : G;",
    "O = A ^ B | C & D << 2 >> ~E;",
    "O = f(A, 3, 2.5e-3) + G(A);",
    "O = 1.0 / (1.0 + exp(-A));",
    "O' = _X0 + #lower; P = $Upper(A);",
    "O = A; // a comment\n // another\n P = O;",
]


@pytest.mark.parametrize("text", FORMS)
def test_forms_parse_and_print_back(text: str) -> None:
    found = function(text)
    printed = print_tile(found)
    assert parse_tile(printed) == found
    assert print_tile(parse_tile(printed)) == printed


@pytest.mark.parametrize(
    "inputs",
    [
        "",
        "A",
        "A[]",
        "A[M, K]",
        "A[M=128, K=20]: fp32, B[K, N=64]",
        "A: i8",
        "A[]: bool",
        "_X, #low[#m], X'[N']",
    ],
)
def test_inputs(inputs: str) -> None:
    found = function("O = 1;", inputs)
    assert parse_tile(print_tile(found)) == found


def test_a_scaled_index_is_a_product() -> None:
    found, wanted = statement("O[3i : N] = +(A[3i/2]);"), statement("O[3*i : N] = +(A[3*i/2]);")
    assert found == wanted


def test_minus_folds_into_literals() -> None:
    assert expression("-3") == ast.IntLit(-3)
    assert expression("-2.5") == ast.FloatLit("-2.5")
    assert expression("- -3") == ast.IntLit(3)


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("A + B * C", "A + (B * C)"),
        ("A - B - C", "(A - B) - C"),
        ("A / B * C", "(A / B) * C"),
        ("A ^ B | C", "A ^ (B | C)"),
        ("A | B & C", "A | (B & C)"),
        ("A & B == C", "A & (B == C)"),
        ("A == B < C", "A == (B < C)"),
        ("A < B << C", "A < (B << C)"),
        ("A << B + C", "A << (B + C)"),
        ("-A * B", "(-A) * B"),
        ("A ? B : C ? D : E", "A ? B : (C ? D : E)"),
        ("A ^ B ? C : D", "(A ^ B) ? C : D"),
    ],
)
def test_precedence(text: str, grouped: str) -> None:
    assert expression(text) == expression(grouped)


def test_keywords_are_names_elsewhere() -> None:
    found = function("O[default : N] = +(A[default + functional]);")
    assert parse_tile(print_tile(found)) == found
    assert "$default" in print_tile(found)


def test_spans() -> None:
    found = parse_tile("function (A[M]) -> (O) {\n  O[i : M] = +(A[i + 1]);\n}", "f.tile")
    (node,) = found.statements
    assert isinstance(node, ast.Contraction)
    assert node.span == Span("f.tile", 2, 3, 22)
    assert node.inputs[0].span == Span("f.tile", 2, 16, 8)
    assert node.inputs[0].indices[0].span == Span("f.tile", 2, 18, 5)
    assert found.inputs[0].dims is not None and found.inputs[0].dims[0].span == Span("f.tile", 1, 13, 1)


def test_long_chains_are_flat() -> None:
    found = expression("A" + " + A" * 10_000)
    assert isinstance(found, ast.Chain) and len(found.rest) == 10_000
    assert expression(print_expr(found)) == found


def test_statement_text() -> None:
    assert (
        print_statement(statement("O[i,j:M,N]=+(A[i,k]*B[k,j]);")) == "O[i, j : M, N] = +(A[i, k] * B[k, j])"
    )


names = st.sampled_from(["A", "B", "X1", "_Y", "low"]).map(ast.Name)
numbers = st.integers(-5, 99).map(ast.IntLit) | st.sampled_from(["0.5", "1e3", "-2.5e-7"]).map(ast.FloatLit)
LEVELS = ["^", "|", "&", "==", "!=", "<", ">=", "<<", ">>", "+", "-", "*", "/"]


def _chain(first: ast.Expr, rest: list[tuple[str, ast.Expr]]) -> ast.Expr:
    level = ast.LEVELS[rest[0][0]]
    same = [(op, e) for op, e in rest if ast.LEVELS[op] == level]
    if rest[0][0] in ast.NON_ASSOCIATIVE:
        return ast.Chain(first, (same[0],))
    if isinstance(first, ast.Chain) and ast.level(first) == level:
        return ast.Chain(first.first, (*first.rest, *same))
    return ast.Chain(first, tuple(same))


def _negated(expr: ast.Expr) -> ast.Expr:
    literal = isinstance(expr, (ast.IntLit, ast.FloatLit))
    return expr if literal else ast.Unary("-", expr)


def _compound(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    pairs = st.lists(st.tuples(st.sampled_from(LEVELS), inner), min_size=1, max_size=4)
    return (
        st.builds(_chain, inner, pairs)
        | inner.map(_negated)
        | inner.map(lambda e: ast.Unary("~", e))
        | st.builds(ast.Cond, inner, inner, inner)
        | st.builds(lambda args: ast.Call("f", tuple(args)), st.lists(inner, min_size=1, max_size=3))
    )


@given(st.recursive(names | numbers, _compound, max_leaves=20))
def test_expressions_print_and_parse_back(expr: ast.Expr) -> None:
    assert expression(print_expr(expr)) == expr


def test_errors_are_errors() -> None:
    with pytest.raises(StripeError):
        parse_tile("function")
