"""Sums of products that a compiler contracts leave the element-wise operations beside them as they are, bit for bit."""

from __future__ import annotations

import re

import numpy as np
import pytest

import stripe
from stripe.emit.c import emit_c
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.interp import interpret
from tests.emit.contracted_kernels import contracted_kernels, extremes

_KERNELS = 12
_FIRST = (6, 15, 33, 45, 59)
"""Seeds that find a negated sum, a cast to integers and back, and three contractions where everything may contract."""


def check(seed: int) -> None:
    program = contracted_kernels(seed, _KERNELS)
    assert 'ST_FUNCTION("fp-contract=fast"' in emit_c(program)
    with np.errstate(all="ignore"):
        expected = [interpret(program, extremes(7 * seed + number)) for number in range(2)]
    options = CompileOptions(native=True, level="O3" if seed % 3 == 0 else "O2", openmp=seed % 5 == 4)
    built = compile_program(program, options)
    for number, wanted in enumerate(expected):
        found = built.run(extremes(7 * seed + number))
        for name, values in wanted.items():
            same = values.view(np.uint32) == found[name].view(np.uint32)
            nan = np.isnan(values) & np.isnan(found[name])
            assert (same | nan).all(), (seed, name)


@pytest.mark.parametrize("seed", _FIRST)
def test_chains_beside_sums_keep_their_bits(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_many_chains_beside_sums_keep_their_bits() -> None:
    for seed in range(100, 500):
        check(seed)


def test_a_negated_sum_keeps_the_sign_of_its_zero() -> None:
    """gcc makes -(a*b) - c of -(a*b + c)."""
    text = "function (A[N=64, K=2], B[N, K]) -> (O) { C[i : N] = +(A[i, k] * B[i, k]); O = -C; }"
    passes = "fusion{a_reqs=[contraction],b_reqs=[eltwise],fused_set=[contraction]},localize,scalarize"
    program = stripe.run_passes(stripe.parse(text, name="n.tile"), passes)
    code = emit_c(program)
    assert len(re.findall(r'ST_FUNCTION\("rounding-math"', code)) == 1
    ones = np.ones((64, 2), np.float32)
    for level in ("O1", "O2", "O3"):
        built = compile_program(program, CompileOptions(native=True, level=level))
        result = built.run({"A": ones, "B": ones * np.array([1, -1], np.float32)})["O"]
        assert np.signbit(result).all() and not result.any()


def test_integers_have_no_negative_zero() -> None:
    """gcc takes a cast to an integer and back for trunc."""
    text = "function (A[N=64]) -> (O) { O = relu(as_float(as_int(A, 32), 32)); }"
    program = stripe.run_passes(
        stripe.parse(text, name="n.tile"),
        "fusion{a_reqs=[eltwise],b_reqs=[eltwise],fused_set=[eltwise]},localize,scalarize",
    )
    data = {"A": np.linspace(-1.5, 1.5, 64, dtype=np.float32)}
    result = compile_program(program, CompileOptions(native=True, level="O2")).run(data)["O"]
    assert np.array_equal(np.signbit(result), np.signbit(interpret(program, data)["O"]))
