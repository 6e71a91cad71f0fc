"""Rounding bounds: results in any order, fused or not, lie within them; wrong results do not."""

from __future__ import annotations

import numpy as np
import pytest

import stripe
from stripe.exec.compare import compare, worst_ratio
from stripe.exec.compile import compile_program
from stripe.exec.interp import interpret
from stripe.exec.rounding import rounding_bounds
from stripe.exec.toolchain import CompileOptions

MATMUL = "function (A[M=40, K=500], B[K, N=48]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }"
CHAIN = "function (A[M=40, N=48], B[N]) -> (D) { C = A * B - A; D[j : N] = +(C[i, j]); }"


@pytest.mark.parametrize("text", [MATMUL, CHAIN], ids=["matmul", "chain"])
def test_another_order_and_fused_products_stay_within_the_bound(text: str) -> None:
    program = stripe.parse(text, name="p.tile")
    random = np.random.default_rng(2)
    inputs = {ref.name: random.standard_normal(ref.sizes).astype(np.float32) for ref in program.inputs}
    bounds = rounding_bounds(program, inputs)
    assert bounds is not None
    expected = interpret(program, inputs)
    built = compile_program(stripe.run_passes(program, "cpu"), CompileOptions(native=True, level="O3"))
    found = built.run(inputs)
    assert not compare(expected, found, bounds=bounds)
    ratio = worst_ratio(expected, found, bounds)
    assert ratio < 0.5
    assert ratio > 0.0 or text == CHAIN  # products keep their rounding there, and columns are summed in order


def test_terms_that_cancel_have_a_bound_of_their_own() -> None:
    """The sum is near zero: a bound relative to it would refuse a right result, one of the tensor allow a wrong one."""
    program = stripe.parse("function (A[M=2, K=3]) -> (C) { C[i : M] = +(A[i, k]); }", name="p.tile")
    inputs = {"A": np.array([[1e8, 1.0, -1e8], [1.0, 2.0, 3.0]], np.float32)}
    bounds = rounding_bounds(program, inputs)
    assert bounds is not None
    expected = interpret(program, inputs)
    assert not compare(expected, {"C": expected["C"] + np.array([8, 0], np.float32)}, bounds=bounds)
    assert compare(expected, {"C": expected["C"] + np.array([0, 1e-4], np.float32)}, bounds=bounds)


@pytest.mark.parametrize("operation", ["exp(A)", "1.0 / A", "as_int(A, 32)", "A > 0.0 ? A : 1.0"])
def test_operations_whose_errors_grow_otherwise_have_no_bound(operation: str) -> None:
    program = stripe.parse(f"function (A[N=8]) -> (B) {{ B = {operation}; }}", name="p.tile")
    assert rounding_bounds(program, {"A": np.ones(8, np.float32)}) is None
