"""Comparisons beside large elements: errors are those that elements of a size have."""

from __future__ import annotations

import numpy as np
import pytest

import stripe
from stripe.exec.compare import LOOSE, compare
from stripe.exec.compile import compile_program
from stripe.exec.interp import interpret
from stripe.exec.precision import in_fp64, is_doubtful, measured_bounds
from stripe.exec.toolchain import CompileOptions
from stripe.verify.proof.judge import judge

MASKED = """function (S[N=64, M=64]) -> (O) {{
    W = as_fp32(index(S, 1) * 3 - index(S, 0)) * 0.1;
    O = index(S, 1) > index(S, 0) ? -1000000000.0 : tanh(S) + {} * W;
}}"""
PROGRAMS = {
    "masked": MASKED.format(1.0),
    "exp": "function (S[N=512]) -> (O) { O = exp(S * S * 0.25); }",
    "cancels": """function (S[N=64, M=64]) -> (O) {
        E = exp(S * 0.1); T[i : N] = +(E[i, j]); O = E - T / 64.0;
    }""",
    "softmax": """function (A[N=32, K=64], B[K, M=32]) -> (O) {
        S[i, j : N, M] = +(A[i, k] * B[k, j]); X[i : N] = >(S[i, j]); E = exp(S - X);
        T[i : N] = +(E[i, j]); P = E / T; O[i, j : N, N] = +(P[i, k] * P[j, k]);
    }""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_right_results_stay_within_the_bounds(name: str) -> None:
    program = stripe.parse(PROGRAMS[name], name="p.tile")
    random = np.random.default_rng(3)
    inputs = {ref.name: random.standard_normal(ref.sizes).astype(np.float32) for ref in program.inputs}
    expected = interpret(program, inputs)
    built = compile_program(stripe.run_passes(program, "cpu"), CompileOptions(native=True, level="O3"))
    bounds = measured_bounds(program, inputs, expected, LOOSE)
    assert bounds.keys() == {"O"}
    assert not compare(expected, built.run(inputs), bounds=bounds)
    wide = interpret(in_fp64(program), {n: a.astype(np.float64) for n, a in inputs.items()})
    assert not compare(expected, {n: a.astype(np.float32) for n, a in wide.items()}, bounds=bounds)


def test_one_large_element_hides_no_difference() -> None:
    program = stripe.parse(PROGRAMS["masked"], name="p.tile")
    inputs = {"S": np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)}
    expected = interpret(program, inputs)
    masked = expected["O"] < -1e8
    assert masked.any() and not masked.all()
    wrong = {"O": np.where(masked, expected["O"], expected["O"] + np.float32(0.01))}
    assert is_doubtful(expected, wrong, LOOSE)
    bounds = measured_bounds(program, inputs, expected, LOOSE)
    (found,) = compare(expected, wrong, LOOSE, bounds)
    assert found.count == (~masked).sum()


W = "W = as_fp32(index(S, 1) * 3 - index(S, 0));"
PAIRS = {
    "beside a mask": (MASKED.format(1.0), MASKED.format(3.0)),
    "of negative numbers": tuple(
        f"function (S[N=32, M=32], D[N, M]) -> (O) {{ {W} O = {op}(S) + W + sqrt(D); }}"
        for op in ("relu", "abs")
    ),
    "of fractions": tuple(
        f"function (S[N=32, M=32]) -> (O) {{ {W} O = {x} + W; }}" for x in ("floor(S)", "S")
    ),
    "where all is NaN": tuple(
        f"function (S[N=32, M=32]) -> (O) {{ {W} O = {x} W; }}"
        for x in ("log(S - 50.0) +", "5.0 * log(S - 50.0) -")
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_runs_see_differences(name: str) -> None:
    """The proof does not know whether they are equal: one computes numbers from indices that the other has."""
    first, second = (stripe.parse(text, name="p.tile") for text in PAIRS[name])
    folded = (stripe.run_passes(program, "constant_fold,dce") for program in (first, second))
    same, other = (judge(first, program) for program in folded)
    assert same.accepted
    assert not other.accepted


def test_small_results_of_exp_are_compared() -> None:
    program = stripe.parse("function (S[N=512]) -> (O) { O = exp(S); }", name="p.tile")
    inputs = {"S": np.linspace(-8, 8, 512, dtype=np.float32)}
    expected = interpret(program, inputs)
    wrong = {"O": expected["O"] + np.float32(2e-3)}
    assert not compare(expected, wrong, LOOSE)
    bounds = measured_bounds(program, inputs, expected, LOOSE)
    (found,) = compare(expected, wrong, LOOSE, bounds)
    assert found.first == (0,) and found.count > 100
