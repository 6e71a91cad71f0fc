"""Rounding bounds: results in any order, fused or not, lie within them; wrong results do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stripe
from stripe.exec.compare import EXACT, LOOSE, Tolerance, compare, layered, worst_element
from stripe.exec.compile import compile_program
from stripe.exec.interp import interpret
from stripe.exec.rounding import rounding_bounds
from stripe.exec.toolchain import CompileOptions
from stripe.ir import ConstantBuffer, Program, Role

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
    worst = worst_element(expected, found, bounds=bounds)
    ratio = worst.ratio if worst else 0.0
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


def test_the_worst_element_is_named() -> None:
    """It is the one whose error is the largest share of its own bound, not the largest error."""
    program = stripe.parse(
        "function (A[M=2, K=3], B[K, N=2]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }", name="p.tile"
    )
    inputs = {"A": np.array([[1e6, 1e6, 1.0], [1.0, 2.0, 3.0]], np.float32), "B": np.ones((3, 2), np.float32)}
    bounds = rounding_bounds(program, inputs)
    assert bounds is not None
    expected = interpret(program, inputs)
    wrong = {"C": expected["C"] + np.array([[0.25, 0], [0, 1e-3]], np.float32)}
    worst = worst_element(expected, wrong, bounds=bounds)
    assert worst is not None and str(worst) == "'C'[1, 1]" and worst.ratio > 100
    (difference,) = compare(expected, wrong, bounds=bounds)
    assert "the worst is [1, 1], " in str(difference) and "times the bound" in str(difference)


def test_errors_of_layers_add_up() -> None:
    text = "function (A[M=4, K=4]) -> (D) {{ B[i, j : M, K] = +(A[i, k] * A[k, j]); {} }}"
    one = stripe.parse(text.format("D = B + A;"))
    two = stripe.parse(text.format("C = B + A; D[i, j : M, K] = +(C[i, k] * B[k, j]);"))
    assert layered(LOOSE, one) == LOOSE
    assert layered(LOOSE, two) == Tolerance(LOOSE.relative, 2 * LOOSE.absolute)
    assert layered(EXACT, two) == EXACT


def test_constants_have_magnitudes_too() -> None:
    """Weights that cancel count with their absolute values, as inputs do."""
    program = stripe.parse(
        "function (A[M=2, K=3], B[K, N=1]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }"
    )
    weights = np.array([[1], [-2], [1]], np.float32)
    kept = replace(program.entry.ref("B"), role=Role.CONSTANT)
    entry = replace(
        program.entry, refinements=tuple(kept if r.name == "B" else r for r in program.entry.refinements)
    )
    fixed = Program(entry, (ConstantBuffer("B", kept.dtype, kept.sizes, weights.tobytes()),))
    inputs = {"A": np.ones((2, 3), np.float32)}
    bounds, known = rounding_bounds(fixed, inputs), rounding_bounds(program, {**inputs, "B": weights})
    assert bounds is not None and known is not None
    assert bounds["C"].min() > 0
    assert np.array_equal(bounds["C"], known["C"])


def test_sums_in_loops_around_a_block_count_too() -> None:
    """Tiles of a sum change its order and not its terms; partial sums in a buffer of their own have fewer."""
    text = "function (A[M=2, K=4096], B[K, N=2]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }"
    program = stripe.parse(text, name="p.tile")
    inputs = {ref.name: np.ones(ref.sizes, np.float32) for ref in program.inputs}
    flat = rounding_bounds(program, inputs)
    assert flat is not None
    for size in (1, 64):
        tiled = stripe.run_passes(program, f"autotile{{reqs=[contraction],fixed={{k={size}}},acc_idxs=true}}")
        assert [len(block.statements) for block in tiled.main.blocks] == [1]
        bounds = rounding_bounds(tiled, inputs)
        assert bounds is not None
        assert np.array_equal(bounds["C"], flat["C"])
