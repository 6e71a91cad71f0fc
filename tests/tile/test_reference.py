"""The numpy reference and the interpreter agree on the corners of the language, though they share no code."""

from __future__ import annotations

import numpy as np
import pytest

from stripe.exec.compare import compare, tolerance_for
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.ir import StripeError
from stripe.tile import bind, lower, parse_tile
from stripe.tile.reference import evaluate

FUNCTIONS = {
    "strided_gradient": "function (D[N=5], K[J=3]) -> (O) { O[3*x + 2*j : 20] = +(D[x] * K[j]); }",
    "fractional": "function (A[N=9]) -> (O) { O[i : 18] = +(A[i/2]); }",
    "fractional_constraint": "function (A[N=9]) -> (O) { O[i : N] = +(A[i]), (i + 1)/3 < 3; }",
    "two_unknowns": "function (A[N=6, M=6]) -> (O) { O[i + j, j : 11, M] = +(A[i, j]); }",
    "negative_indices": "function (A[N=6]) -> (O) { O[i : N] = +(A[i + j]), j + 2 < 5; }",
    "one_element": "function (A[N=4]) -> (O) { O[] = =(A[2]); }",
    "one_element_at": "function (A[N=4]) -> (O) { O[2 : 4] = =(A[1]); }",
    "literals_of_fp64": "function (A[N=4]: fp64) -> (O, P, Q) "
    "{ O = A * 0.1; P = A > 0.3 ? 0.7 : A / 3.3; Q = min(A, as_float(0.1, 64)) + 0.1 * 3.0; }",
    "casts_of_literals": "function (A[N=4], B[N]: fp64) -> (O, P, Q) "
    "{ O = A * as_fp16(0.1); P = A + as_bf16(0.3); Q = B * as_fp32(0.1); }",
    "constant_condition": "function (A[N=4]: i8, B[M=3, K=1]) -> (O, P) { O = N < 8 ? A : B; P = N > 8 ? A : B; }",
    "product": "function (A[N=3, M=4]) -> (O) { O[i : N] = *(A[i, j]); }",
    "minimum": "function (A[N=3, M=4]: i8) -> (O) { O[i : N] = <(A[i, j]); }",
    "maximum_untouched": "function (A[N=3, M=4]) -> (O) { O[2*i : 7] = >(A[i, j]); }",
    "default": "function (A[N=3], B[M=7]) -> (O) { O[2*i : M] = +(A[i]) default B; }",
    "equal": "function (A[N=4]: i8, B[M=4]: i8) -> (O) { O[i, j : N, M] = =(A[i] == B[j]); }",
    "ternary": "function (A[N=8]: i8, B[M=8]: i8, C[M]) -> (O) { O[i : N] = +(A[i] == B[j] ? C[j]); }",
    "sum_comb": "function (A[N=4], B[M=5]) -> (O) { O[i : N] = >(A[i] + B[j]); }",
    "scalar_sum": "function (A[N=40]) -> (O) { O[] = +(A[i]); }",
    "broadcast": "function (A[N=3, M=1], B[K=4]: i8) -> (O) { O = A * B + 1; }",
    "divide_truncates": "function (A[N=40]: i16, B[M=30, O=1]: i16) -> (Q, R) { Q = A / (B - 1); R = mod(A, B - 1); }",
    "shifts": "function (A[N=40]: i8, B[M=10, O=1]: i8) -> (L, R) { L = A << B; R = A >> B; }",
    "bits": "function (A[N=8]: u8, B[N]: u8) -> (X, Y, Z, W) { X = A & B; Y = A | B; Z = A ^ B; W = ~A; }",
    "casts": """function (A[N=16]) -> (X, Y, Z, W) {
        T = A * 1000.5; X = as_int(T, 8); Y = as_uint(T, 16); Z = as_bool(A); W = as_float(T, 16);
    }""",
    "rounding": "function (A[N=16]) -> (X, Y, Z) { T = A / 2; X = round(T); Y = floor(T); Z = ceil(T); }",
    "conditional": "function (A[N=16]) -> (O) { O = A < 0 ? -A : A * 2; }",
    "half": "function (A[N=16]: fp16, B[N]: bf16) -> (O, P) { O = A * A + 1; P = B * B + 1; }",
    "transcendental": "function (A[N=16]) -> (X, Y, Z) { X = exp(A / 4); Y = tanh(A); Z = sigmoid(A); }",
    "index": "function (A[N=3, M=5]) -> (O) { O = index(A, 1) + index(A, 0); }",
    "shape": "function (A[N=3, M=5]) -> (O) { O = shape(A); }",
    "reshape": "function (A[N=4, M=6]) -> (O) { O = reshape(A, 8, 3); }",
    "gather": "function (A[N=6, M=2], I[K=9]: i32) -> (O) { O = gather(A, I); }",
    "scatter": "function (E[K=9, M=2], I[K]: i32, V[N=6, M]) -> (O) { O = scatter(E, I, V); }",
    "random": """function (S[A=3, B=2048]: u32) -> (X, T) {
        R = prng_step(S, 50, 60); X = prng_value(R); T = prng_state(R);
    }""",
    "wrapping": "function (A[N=32, M=32]: i8) -> (O) { O[i : N] = +(A[i, j] * A[i, j]); }",
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("seed", [0, 1])
def test_reference_and_interpreter_agree(name: str, seed: int) -> None:
    function = bind(parse_tile(FUNCTIONS[name]))
    program = lower(function, name)
    inputs = random_inputs(program, seed)
    expected = evaluate(function, inputs)
    assert compare(expected, interpret(program, inputs), tolerance_for(program)) == []
    assert all(np.asarray(array).size for array in expected.values())


def test_what_it_cannot_do_is_said() -> None:
    large = bind(parse_tile("function (A[N=100000, M=100000]) -> (O) { O[i : N] = +(A[i, j]); }"))
    with pytest.raises(StripeError, match="would walk 10000000000 points"):
        evaluate(large, {"A": np.zeros((1, 1), np.float32)})
    open_ended = bind(
        parse_tile("function (A[N=4, M=4]) -> (O) { O[i + j, i - j : 8, 4] = +(A[i + j, i - j]); }")
    )
    with pytest.raises(StripeError, match="cannot bound the index"):
        evaluate(open_ended, {"A": np.zeros((4, 4), np.float32)})


def test_accesses_beyond_64_bits_are_said_instead_of_computed_wrongly() -> None:
    """Over the denominator 2^63 - 1 both products overflow, and the wrong result looked like a fault of the engine."""
    function = bind(
        parse_tile("function (A[N=4]) -> (B) { B[i : 4] = +(A[i/9223372036854775807 + j]); }"), {}
    )
    with pytest.raises(StripeError, match=r"with numbers up to .*, beyond 64 bits") as caught:
        evaluate(function, random_inputs(lower(function), 0))
    assert (caught.value.line, caught.value.hint) == (1, "compare with the interpreter")
