"""Files of several Tile functions that call each other."""

from __future__ import annotations

import numpy as np
import pytest

from stripe.exec.interp import interpret
from stripe.ir import StripeError
from stripe.tile import bind, compile_tile, parse_tile, print_tile
from stripe.tile.library import LIBRARY_NAMES, library
from stripe.tile.reference import evaluate

CHAIN = """
function scale(X, F) -> (Y) { Y = X * F; }
// Sums and their halves.
function sums(X[N, M]) -> (S, H) {
  [[total]] S[i : N] = +(X[i, j]);
  H = scale(S, 0.5);
}
function (A[N=2, M=3]) -> (P, Q) {
  [[mine]] T = sums(A);
  P = element(T, 0);
  Q = scale(element(T, 1), 2.0) + element(T, 0);
}
"""


def fails(text: str, **shapes: object) -> str:
    with pytest.raises(StripeError) as caught:
        bind(parse_tile(text, "f.tile"))
    return str(caught.value)


def test_functions_are_inlined() -> None:
    program = compile_tile(CHAIN)
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = interpret(program, {"A": a})
    assert found["P"].tolist() == [3, 12]
    assert found["Q"].tolist() == [6, 24]
    typed = bind(parse_tile(CHAIN))
    assert {name: array.tolist() for name, array in evaluate(typed, {"A": a}).items()} == {
        "P": [3, 12], "Q": [6, 24]
    }  # fmt: skip


def test_attributes_of_a_call_are_those_of_its_statements() -> None:
    program = compile_tile(CHAIN)
    tags = {block.name: {str(tag) for tag in block.tags} for block in program.main.blocks}
    assert any({"mine", "total"} <= found for found in tags.values())
    assert sum("mine" in found for found in tags.values()) == 2


def test_a_file_of_functions_prints_and_parses() -> None:
    parsed = parse_tile(CHAIN)
    assert [function.name for function in parsed.callees] == ["scale", "sums"]
    assert parse_tile(print_tile(parsed)) == parsed


def test_the_random_state_passes_through_functions() -> None:
    text = """
    function noise(S, N) -> (R) { R = prng_step(S, N); }
    function values(R) -> (V) { V = prng_value(R); }
    function main(S[P=3, Q=2048]: u32) -> (V, T) {
      R = noise(S, 8);
      V = values(R);
      T = prng_state(R);
    }"""
    state = np.full((3, 2048), 77, np.uint32)
    found = interpret(compile_tile(text), {"S": state})
    assert found["V"].shape == (8,)
    assert not np.array_equal(found["T"], state)


def test_the_same_function_twice_has_names_of_its_own() -> None:
    text = """function f(X) -> (Y) { T = X + 1.0; Y = T * T; }
    function (A[N=4]) -> (B) { B = f(f(A)); }"""
    a = np.arange(4, dtype=np.float32)
    assert interpret(compile_tile(text), {"A": a})["B"].tolist() == (((a + 1) ** 2 + 1) ** 2).tolist()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("function f(X) -> (Y) { Y = f(X); }\nfunction (A[N=4]) -> (B) { B = f(A); }", "'f' calls itself: f -> f"),
        (
            "function f(X) -> (Y) { Y = g(X); }\nfunction g(X) -> (Y) { Y = f(X); }\n"
            "function (A[N=4]) -> (B) { B = f(A); }",
            "calls itself: f -> g -> f",
        ),
        ("function f(X[N, M]) -> (Y) { Y = X; }\nfunction (A[N=4]) -> (B) { B = f(A); }", "'X' has rank 2"),
        ("function f(X: i8) -> (Y) { Y = X; }\nfunction (A[N=4]) -> (B) { B = f(A); }", "'X' is i8, and the call"),
        ("function f(X[N=3]) -> (Y) { Y = X; }\nfunction (A[N=4]) -> (B) { B = f(A); }", "'N' is 3 here, and the"),
        ("function f(X) -> (Y) { Y = X; }\nfunction (A[N=4]) -> (B) { B = f(A, A); }", "'f' takes 1 argument, not 2"),
        ("function f(X) -> (Y) { Y = Z; }\nfunction (A[N=4]) -> (B) { B = f(A); }", "(in 'f', called in line 2)"),
        ("function f(X) -> (Y) { Z = X; }\nfunction (A[N=4]) -> (B) { B = f(A); }", "no statement defines the out"),
        ("function f(X) -> (Y) { Y = X; }\nfunction f(X) -> (Y) { Y = X; }", "'f' is defined twice"),
        ("function f(X) -> (Y) { Y = X; }\nfunction g(X) -> (Y) { Y = X; }", "no function to begin with"),
        ("function (X) -> (Y) { Y = X; }\nfunction (X) -> (Y) { Y = X; }", "several functions without a name"),
        ("function exp(X) -> (Y) { Y = X; }\nfunction (A[N=4]) -> (B) { B = exp(A); }", "is a built-in function"),
    ],
)  # fmt: skip
def test_errors(text: str, wanted: str) -> None:
    assert wanted in fails(text)


@pytest.mark.long
def test_functions_that_double_end() -> None:
    """A chain of functions that call twice has no end that memory reaches."""
    chain = "".join(f"function f{n + 1}(X) -> (Y) {{ Y = f{n}(f{n}(X)); }}\n" for n in range(40))
    text = f"function f0(X) -> (Y) {{ Y = X; }}\n{chain}function (A[N=4]) -> (B) {{ B = f40(A); }}"
    assert "100000 calls" in fails(text)


def test_names_of_the_library() -> None:
    assert library().keys() == LIBRARY_NAMES
