"""Shapes, dtypes, constants and names of a bound function."""

from __future__ import annotations

import pytest

from stripe.tile import Binding, TensorShape, TypedFunction, bind, parse_shape, parse_tile
from stripe.tile.typed import ContractionOp, ElementwiseOp


def bound(text: str, shapes: dict[str, Binding] | None = None) -> TypedFunction:
    return bind(parse_tile(text, "f.tile"), shapes)


def shape_of(statements: str, inputs: str) -> str:
    (out,) = bound(f"function ({inputs}) -> (O) {{ {statements} }}").outputs
    return f"{'x'.join(map(str, out.sizes))}:{out.dtype}"


@pytest.mark.parametrize(
    ("text", "name", "shape"),
    [
        ("A=128x20:fp32", "A", "128x20:fp32"),
        ("A=128X20", "A", "128x20:fp32"),
        ("_x'=3:i8", "_x'", "3:i8"),
        ("A=:bool", "A", "scalar:bool"),
        ("A=:", "A", "scalar:fp32"),
    ],
)
def test_shapes_from_text(text: str, name: str, shape: str) -> None:
    found, binding = parse_shape(text)
    assert (found, str(binding)) == (name, shape)


def test_constants_from_text() -> None:
    assert parse_shape("N==5") == ("N", 5)
    assert parse_shape("E==-0.5") == ("E", -0.5)


def test_the_caller_goes_before_the_file() -> None:
    text = "function (A[M=128, K=20]: i8, B[K, N=64]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }"
    inside = bound(text)
    assert [str(t.sizes) + t.dtype.name for t in inside.inputs] == ["(128, 20)i8", "(20, 64)fp32"]
    outside = bound(text, dict([parse_shape("A=7x5")]))
    assert [str(t.sizes) + t.dtype.name for t in outside.inputs] == ["(7, 5)i8", "(5, 64)fp32"]
    assert outside.outputs[0].sizes == (7, 64)
    typed = bound(text, dict([parse_shape("A=7x5:fp64")]))
    assert typed.outputs[0].dtype.name == "fp64"


def test_inputs_of_any_rank_and_constants() -> None:
    text = "function (A, N, E) -> (O) { O = A * N + E; }"
    typed = bound(text, {"A": TensorShape((2, 3)), "N": 4, "E": 0.5})
    assert [t.name for t in typed.inputs] == ["A"]
    assert typed.outputs[0].sizes == (2, 3)


def test_sizes_of_an_output_from_outside() -> None:
    typed = bound("function (A[N=8]) -> (O) { O[i] = +(A[i + j]), j < 2; }", {"O": TensorShape((7,))})
    assert typed.outputs[0].sizes == (7,)


@pytest.mark.parametrize(
    ("inputs", "statement", "shape"),
    [
        ("A[M=4]: i8", "O = A + 1;", "4:i32"),
        ("A[M=4]: i64", "O = A + 1;", "4:i64"),
        ("A[M=4]: i64", "O = A + 1.0;", "4:fp32"),
        ("A[M=4]: fp64", "O = A + 1.0;", "4:fp64"),
        ("A[M=4]: fp16", "O = A * A;", "4:fp16"),
        ("A[M=4]: fp16", "O = A + 1.0;", "4:fp32"),
        ("A[M=4]: i32, B[M]: u32", "O = A + B;", "4:i32"),
        ("A[M=4]: u32, B[M]: i32", "O = A + B;", "4:u32"),
        ("A[M=4]: bool, B[M]: i8", "O = A + B;", "4:i8"),
        ("A[M=4]: i8", "O = A < 3;", "4:bool"),
        ("A[M=4]: i8, B[M]: fp32", "O = A < B ? A : A;", "4:i8"),
        ("A[M=4]: i8", "O = exp(A);", "4:fp32"),
        ("A[M=4]: fp64", "O = exp(A);", "4:fp64"),
        ("A[M=4]: i8", "O = floor(A);", "4:i8"),
        ("A[M=4]: i8", "O = A + 3000000000;", "4:i64"),
        ("A[M=4, N=1]", "O = A;", "4x1:fp32"),
        ("A[M=4, N=1], B[L=5]", "O = A + B;", "4x5:fp32"),
        ("A[M=4, N=1], B[]", "O = A * B;", "4x1:fp32"),
        ("A[M=2, N=3, K=4], B[N, L=1]", "O = A - B;", "2x3x4:fp32"),
        ("A[M=4]: i8, B[M]: fp16", "O[] = +(A[i] * B[i]);", ":fp16"),
        ("A[M=4]: i8, B[M]: i8", "O[] = +(A[i] * B[i]);", ":i8"),
        ("A[M=4]: i8, B[M]: fp16", "O[] = +(A[i] == B[i]);", ":bool"),
        ("A[M=4]: i8, B[M]: fp16, C[M]: fp64", "O[] = +(A[i] == B[i] ? C[i]);", ":fp64"),
        ("A[M=4, N=6]", "O = shape(A);", "2:i32"),
        ("A[M=4, N=6]", "O = reshape(A, 8, N/2);", "8x3:fp32"),
        ("A[M=4, N=6]: i8", "O = index(A, 1);", "4x6:i32"),
        ("A[M=4, N=6]: i8, I[L=9, K=2]: i32", "O = gather(A, I);", "9x2x6:i8"),
        ("E[L=9, K=2, N=6]: i8, I[L, K]: i32, V[M=4, N]", "O = scatter(E, I, V);", "4x6:i8"),
        ("S[A=3, B=2048]: u32", "O = prng_value(prng_step(S, 4, 5));", "4x5:fp32"),
        ("S[A=3, B=2048]: u32", "O = prng_state(prng_step(S, 4, 5));", "3x2048:u32"),
        ("A[M=4]", "O = as_int(A, 8);", "4:i8"),
        ("A[M=4]", "O = as_uint(A, 64);", "4:u64"),
        ("A[M=4]", "O = as_bool(A);", "4:bool"),
        ("A[M=4]", "O = as_float(A);", "4:fp32"),
        ("A[M=4]", "O = quantize(A);", "4:i8"),
        ("A[M=4, N=6]", "O = simple_reduce(A, 1, 6);", "1x6:fp32"),
        ("A[M=4, N=6]", "O = element(tuple(1, A), 1);", "4x6:fp32"),
        ("A[M=4]: u8", "O = zelu(A);", "4:u8"),
        ("A[M=4]: i8", "O = pow(A, 2);", "4:fp32"),
        ("A[M=4]: i8", "O = 3;", ":i32"),
    ],
)
def test_result_types(inputs: str, statement: str, shape: str) -> None:
    assert shape_of(statement, inputs) == shape


@pytest.mark.parametrize(
    ("size", "value"),
    [
        ("N/2", 3),
        ("-7/2 + 10", 7),
        ("(N + 2)/4", 2),
        ("N/2*2", 6),
        ("mod(N, 4)", 3),
        ("9007199254740993 - 9007199254740990", 3),  # 2^53 + 1 is no double
        ("max(N, 9) - min(N, 3)", 6),
        ("N < 9 ? 5 : 4", 5),
        ("1 << 4", 16),
        ("broadcast(1, N)", 7),
        ("match(N, 7)", 7),
        ("floor(N) + ceil(N)", 14),
        ("as_int(7.9, 32)", 7),
        ("cmp_lt(N, 3) ? 1 : 2", 2),
        ("abs(-N)", 7),
        ("element(tuple(4, 5), 1)", 5),
    ],
)
def test_sizes_are_exact_integers(size: str, value: int) -> None:
    text = f"function (A[N=7]) -> (O) {{ P = {size}; O[i : P] = +(A[j]), i < P; }}"
    assert bound(text).outputs[0].sizes == (value,)


def test_operations_get_names_from_their_statement() -> None:
    typed = bound("function (A[M=4], O_0[M]) -> (O) { O = (A + O_0) * 2 - exp(-A); }")
    assert [op.out.name for op in typed.ops if isinstance(op, ElementwiseOp)] == [
        "O_1",
        "O_2",
        "O_3",
        "O_4",
        "O",
    ]


def test_dead_code_and_other_names_cost_nothing() -> None:
    typed = bound("function (A[M=4]) -> (O) { B = A; C = exp(B); D = B; O = reverse_grad(D, 2.0) + 1; }")
    assert len(typed.ops) == 1


def test_outputs_that_are_other_names() -> None:
    typed = bound("function (A[M=4]) -> (O, P, Q, R) { O = A; X = exp(A); P = X; Q = X; R = 3; }")
    kinds = {op.out.name: op.op for op in typed.ops if isinstance(op, ElementwiseOp)}
    assert kinds == {"O": "ident", "P": "exp", "Q": "ident", "R": "ident"}


def test_log_of_softmax_is_stable() -> None:
    for statements in (
        "O = log(builtin_softmax(A, M, N));",
        "S = builtin_softmax(A, M, N); T = S; O = log(T);",
    ):
        typed = bound(f"function (A[M=4, N=3]) -> (O) {{ {statements} }}")
        ops = [op.op for op in typed.ops if isinstance(op, ElementwiseOp)]
        assert ops == ["sub", "exp", "log", "sub"]
        assert sum(isinstance(op, ContractionOp) for op in typed.ops) == 2


def test_a_thousand_additions() -> None:
    typed = bound("function (A[M=4]) -> (O) { O = A" + " + A" * 1000 + "; }")
    assert len(typed.ops) == 1000
