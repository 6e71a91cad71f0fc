"""Copies that read along one index and write along another: squares of vectors, and what is left of them."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import stripe
from stripe.emit.c import emit_c
from stripe.exec.compile import CompileOptions, compile_program
from stripe.ir import rewrite_blocks, with_entry

PASSES = "vectorize{reqs=[kernel],vector_bytes=64,only_tag=true}"


def program(m: int, n: int, dtype: str) -> stripe.Program:
    text = f"function (X[B=3, M={m}, N={n}]: {dtype}) -> (O) {{ O[b, j, i : B, N, M] = =(X[b, i, j]); }}"
    return stripe.run_passes(stripe.parse(text, name="turned.tile"), PASSES)


@pytest.mark.parametrize(("compiler", "flags"), [("gcc", ()), ("clang", ()), ("gcc", ("-DST_PLAIN",))])
@pytest.mark.parametrize("dtype", ["fp32", "i8", "u16", "fp64"])
@pytest.mark.parametrize(("m", "n"), [(37, 19), (50, 16)])
def test_all_elements_arrive(m: int, n: int, dtype: str, compiler: str, flags: tuple[str, ...]) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    turned = program(m, n, dtype)
    assert "st_transpose" in emit_c(turned)
    numpy_dtype = {"fp32": np.float32, "i8": np.int8, "u16": np.uint16, "fp64": np.float64}[dtype]
    x = np.arange(3 * m * n).reshape(3, m, n).astype(numpy_dtype)
    call, outputs = compile_program(turned, CompileOptions(compiler, extra_flags=flags)).bind({"X": x})
    call()
    assert np.array_equal(outputs()["O"], x.transpose(0, 2, 1))


def test_short_rows_are_copied_one_by_one() -> None:
    assert "st_transpose" not in emit_c(program(15, 64, "fp32"))
    assert "st_transpose" not in emit_c(program(64, 7, "fp32"))


@pytest.mark.parametrize("rows", [12, 24, 3, -2, 0, 100])
def test_squares_have_a_power_of_two_of_rows(rows: int) -> None:
    """Whatever the tag says: rounds of exchanged halves transpose nothing else."""
    turned = program(37, 26, "fp32")
    entry = rewrite_blocks(
        turned.entry, lambda b: replace(b, tags=b.tags.set("transpose", rows)) if "transpose" in b.tags else b
    )
    x = np.arange(3 * 37 * 26, dtype=np.float32).reshape(3, 37, 26)
    found = compile_program(with_entry(turned, entry)).run({"X": x})["O"]
    assert np.array_equal(found, x.transpose(0, 2, 1))


def test_a_width_of_six_elements_makes_squares_of_four() -> None:
    text = "function (X[M=37, N=19]) -> (O) { O[j, i : N, M] = =(X[i, j]); }"
    turned = stripe.run_passes(
        stripe.parse(text, name="turned.tile"), "vectorize{reqs=[kernel],vector_bytes=24,only_tag=true}"
    )
    assert "#transpose=4" in str(turned)
