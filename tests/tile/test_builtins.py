"""What the operations and functions of Tile compute, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from stripe.exec.interp import interpret
from stripe.ir import print_program, verify_structural
from stripe.tile import compile_tile

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


def run(inputs: str, statements: str, outputs: str = "O", /, **arrays: Array) -> Arrays:
    program = compile_tile(f"function ({inputs}) -> ({outputs}) {{ {statements} }}", "t.tile")
    assert verify_structural(program) == [], print_program(program)
    return interpret(program, arrays)


def ints(*sizes: int, low: int = -4, high: int = 5, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(1).integers(low, high, sizes).astype(dtype)


A, B = ints(4, 6), np.random.default_rng(2).integers(-4, 5, (4, 6)).astype(np.float32)
P = np.abs(A) + 1
U = A / 8

CASES: list[tuple[str, Array]] = [
    ("A + B", A + B),
    ("A - B * 2", A - B * 2),
    ("A / P", A / P),
    ("-A", -A),
    ("A < B ? A : B", np.where(A < B, A, B)),
    ("A < B", A < B),
    ("A <= B", A <= B),
    ("A > B", A > B),
    ("A >= B", A >= B),
    ("A == B", A == B),
    ("A != B", A != B),
    ("eq(A, B)", A == B),
    ("neq(A, B)", A != B),
    ("lt(A, B)", A < B),
    ("lte(A, B)", A <= B),
    ("gt(A, B)", A > B),
    ("gte(A, B)", A >= B),
    ("cmp_ge(A, B)", A >= B),
    ("ident(A)", A),
    ("assign(A)", A),
    ("cond(A, B, P)", np.where(A != 0, B, P)),
    ("add(A, sub(B, mul(A, div(B, P))))", A + (B - A * (B / P))),
    ("neg(A)", -A),
    ("max(A, B)", np.maximum(A, B)),
    ("min(A, B)", np.minimum(A, B)),
    ("abs(A)", np.abs(A)),
    ("relu(A)", np.maximum(A, 0)),
    ("zelu(A)", np.maximum(A, 0)),
    ("exp(U)", np.exp(U)),
    ("log(P)", np.log(P)),
    ("sqrt(P)", np.sqrt(P)),
    ("pow(P, 3)", P**3),
    ("tanh(U)", np.tanh(U)),
    ("sigmoid(A)", 1 / (1 + np.exp(-A))),
    ("sin(A) + cos(A) + tan(U)", np.sin(A) + np.cos(A) + np.tan(U)),
    ("asin(U) + acos(U) + atan(A)", np.arcsin(U) + np.arccos(U) + np.arctan(A)),
    ("sinh(U) + cosh(U)", np.sinh(U) + np.cosh(U)),
    ("asinh(A) + acosh(P) + atanh(U)", np.arcsinh(A) + np.arccosh(P) + np.arctanh(U)),
    ("floor(U)", np.floor(U)),
    ("ceil(U)", np.ceil(U)),
    ("round(A / 2)", np.copysign(np.floor(np.abs(A / 2) + 0.5), A)),
    ("recip(P)", 1 / P),
    ("reverse_grad(A, 0.5)", A),
    ("as_int(A / 2, 8)", np.trunc(A / 2).astype(np.int8)),
    ("as_uint(P, 16)", P.astype(np.uint16)),
    ("as_bool(A)", A != 0),
    ("as_float(A, 64) / 3", A.astype(np.float64) / np.float32(3)),
    ("as_float(U, 16)", U.astype(np.float16)),
    ("quantize(A * 50)", np.clip(A * 50, -128, 127).astype(np.int8)),
    ("index(A, 0) * 10 + index(A, 1)", (np.arange(4)[:, None] * 10 + np.arange(6)).astype(np.int32)),
    ("shape(A)", np.array([4, 6], np.int32)),
    ("reshape(A, 24)", A.reshape(24)),
    ("reshape(A, 2, 2, 3, 2)", A.reshape(2, 2, 3, 2)),
    ("reshape(A, 1, 8, 3, 1)", A.reshape(1, 8, 3, 1)),
    ("reshape(A, 3, 8)", A.reshape(3, 8)),
    ("reshape(reshape(A, 3, 8), 6, 4)", A.reshape(6, 4)),
    ("simple_reduce(A, 6)", A.sum(0)),
    ("simple_reduce(A, 4, 1)", A.sum(1, keepdims=True)),
    ("simple_reduce(A, 1)", A.sum(keepdims=True).reshape(1)),
    ("element(tuple(B, tuple(P, A)), 0)", B),
    ("element(element(tuple(B, tuple(P, A)), 1), 1)", A),
    ("(A < 0) + (B < 0)", (A < 0) | (B < 0)),
    ("(A < 0) * (B < 0)", (A < 0) & (B < 0)),
    ("(A < 0) & (B < 0)", (A < 0) & (B < 0)),
    ("(A < 0) | (B < 0)", (A < 0) | (B < 0)),
    ("(A < 0) ^ (B < 0)", (A < 0) ^ (B < 0)),
    ("(A < 0) * 3 + 1", ((A < 0) * 3 + 1).astype(np.int32)),
    ("2 * A * (1 + 2)", 6 * A),
    ("A * sqrt(4.0)", A * 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_elementwise(text: str, expected: Array) -> None:
    found = run("A[M=4, N=6], B[M, N], P[M, N], U[M, N]", f"O = {text};", A=A, B=B, P=P, U=U)["O"]
    assert found.dtype == (expected.dtype if expected.dtype != np.float64 or "64" in text else np.float32)
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-6)


X, Y = (
    ints(5, 3, low=-90, high=90, dtype=np.int32),
    np.array([[0, 3, -2], [7, 1, 31]] * 2 + [[1, 2, 3]], np.int32),
)

INTEGER_CASES: list[tuple[str, Array]] = [
    ("I / J", np.where(Y == 0, 0, np.trunc(X / np.where(Y == 0, 1, Y)))),
    ("mod(I, J)", np.where(Y == 0, 0, np.fmod(X, np.where(Y == 0, 1, Y)))),
    ("I & J | 4 ^ ~I", ((X & Y) | 4) ^ ~X),
    ("I << 2", X << 2),
    ("I >> 1", X >> 1),
    ("bit_and(I, bit_or(J, bit_xor(I, bit_not(J))))", X & (Y | (X ^ ~Y))),
    ("bit_left(I, 1) + bit_right(I, 2)", (X << 1) + (X >> 2)),
    ("quantize(I * 2)", np.clip(X * 2, -128, 127)),
    ("as_int(I * 3, 8)", (X * 3).astype(np.int8)),
    ("max(I, J) - min(I, J)", np.maximum(X, Y) - np.minimum(X, Y)),
    ("floor(I) + round(J)", X + Y),
]


@pytest.mark.parametrize(("text", "expected"), INTEGER_CASES, ids=[text for text, _ in INTEGER_CASES])
def test_integers(text: str, expected: Array) -> None:
    found = run("I[M=5, N=3]: i32, J[M, N]: i32", f"O = {text};", I=X, J=Y)["O"]
    np.testing.assert_array_equal(found, expected)


def test_broadcasting() -> None:
    a, b, c = ints(2, 1, 4), ints(3, 1), np.array(5, np.float32)
    found = run("A[X=2, Y=1, Z=4], B[W=3, V=1], C[]", "O = A * B + C;", A=a, B=b, C=c)["O"]
    np.testing.assert_array_equal(found, a * b + c)


def test_eight_bit_sums_wrap() -> None:
    a = ints(50, low=-128, high=128, dtype=np.int8)
    found = run("A[N=50]: i8", "O[] = +(A[i] * A[i]);", A=a)["O"]
    assert found == np.add.reduce(a * a, dtype=np.int8)


def test_defaults_stand_where_nothing_is_touched() -> None:
    a, d = ints(3, 4), ints(8, 4)
    for agg in "+*<>=":
        found = run("A[M=3, N=4], D[X=8, N]", f"O[2*i + 1, j : 8, N] = {agg}(A[i, j]) default D;", A=a, D=d)[
            "O"
        ]
        expected = d.copy()
        expected[1:7:2] = a
        np.testing.assert_array_equal(found, expected)


def test_maximum_of_negatives_is_negative_and_a_product_is_not_zero() -> None:
    a = -np.abs(ints(3, 4)) - 1
    found = run("A[M=3, N=4]", "O[i : 5] = >(A[i, j]); P[i : 5] = *(A[i, j]);", "O, P", A=a)
    np.testing.assert_array_equal(found["O"], [*a.max(1), 0, 0])
    np.testing.assert_array_equal(found["P"], [*a.prod(1), 0, 0])


def test_gather_and_scatter() -> None:
    data, index = ints(5, 3), np.array([[4, 0], [0, 2]], np.int32)
    found = run("D[N=5, C=3], I[A=2, B=2]: i32", "O = gather(D, I);", D=data, I=index)["O"]
    np.testing.assert_array_equal(found, data[index])
    updates = ints(2, 2, 3)
    found = run(
        "E[A=2, B=2, C=3], I[A, B]: i32, D[N=5, C]", "O = scatter(E, I, D);", E=updates, I=index, D=data
    )["O"]
    expected = np.zeros((5, 3), np.float32)
    np.add.at(expected, index.ravel(), updates.reshape(4, 3))
    np.testing.assert_array_equal(found, expected)


def test_random_numbers() -> None:
    state = ints(3, 2048, low=16, high=1 << 31, dtype=np.uint32)
    text = "R = prng_step(S, 100, 7); V = prng_value(R); N = prng_state(R); Q = prng_step(N, 5); W = prng_value(Q);"
    found = run("S[A=3, B=2048]: u32", text, "V, N, W", S=state)
    assert found["V"].shape == (100, 7) and found["N"].shape == (3, 2048) and found["W"].shape == (5,)
    assert found["V"].min() >= 0 and found["V"].max() < 1 and len(np.unique(found["V"])) > 600
    assert not np.array_equal(found["N"], state)
    again = run("S[A=3, B=2048]: u32", text, "V, N, W", S=state)
    np.testing.assert_array_equal(found["W"], again["W"])


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("statements", "reference"),
    [
        ("O = builtin_softmax(A, M, N);", _softmax),
        ("O = builtin_logsoftmax(A, M, N);", lambda a: np.log(_softmax(a))),
        ("O = 2 * log(builtin_softmax(A * 30, M, N));", lambda a: 2 * np.log(_softmax(a.astype(np.float64) * 30))),
        ("S = sigmoid(A); O = builtin_binary_crossentropy(S, A, 4);",
         lambda a: -a * np.log(1 / (1 + np.exp(-a))) - (1 - a) * np.log(1 - 1 / (1 + np.exp(-a)))),
    ],
)  # fmt: skip
def test_library(statements: str, reference: Callable[[Array], Array]) -> None:
    found = run("A[M=4, N=6]", statements, A=A)["O"]
    np.testing.assert_allclose(found, reference(A), rtol=1e-5, atol=1e-5)


def test_the_ternary_contributes_zero_where_unequal() -> None:
    a, b, c = np.array([1, 2, 3], np.float32), np.array([1, 5, 3], np.float32), -ints(3, low=2, high=9)
    found = run(
        "A[N=3], B[N], C[N]",
        "O[] = >(A[i] == B[i] ? C[i]); P[] = +(A[i] == B[i] ? C[i]);",
        "O, P",
        A=a,
        B=b,
        C=c,
    )
    assert found["O"] == 0 and found["P"] == c[0] + c[2]


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("fp16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("fp64", np.float64),
        ("i64", np.int64),
        ("u8", np.uint8),
    ],
)
def test_dtypes(dtype: str, kind: Any) -> None:
    a, b = ints(4, 3, low=0, high=4, dtype=kind), ints(3, 5, low=0, high=4, dtype=kind)
    found = run(
        f"A[M=4, K=3]: {dtype}, B[K, N=5]: {dtype}", "O[i, j : M, N] = +(A[i, k] * B[k, j]);", A=a, B=b
    )["O"]
    assert found.dtype == np.dtype(kind)
    np.testing.assert_array_equal(found.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


def test_an_output_that_is_read_is_right_twice() -> None:
    found = run("A[M=4, N=6]", "P = A + 1; O = P * 2; Q = O;", "P, O, Q", A=A)
    np.testing.assert_array_equal(found["P"], A + 1)
    np.testing.assert_array_equal(found["O"], (A + 1) * 2)
    np.testing.assert_array_equal(found["Q"], found["O"])


def test_names_that_stripe_reserves() -> None:
    text = (
        "function (#block[#in=3, N'=4], _X0[N']) -> (#out) {"
        " #out[mod, floor : #in, N'] = +(#block[mod, floor] * _X0[floor]); }"
    )
    program = compile_tile(text, "t.tile")
    assert verify_structural(program) == []
    first, second = (ref.name for ref in program.inputs)
    a, b = ints(3, 4), ints(4)
    (found,) = interpret(program, {first: a, second: b}).values()
    np.testing.assert_array_equal(found, a * b)
