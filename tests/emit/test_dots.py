"""Sums of products of bytes: instructions that sum them along registers, and the results of the interpreter."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import stripe
from stripe.emit.c import emit_c
from stripe.emit.c.dialect import FLAGS
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.ir import Program, print_program
from tests.support.programs import load


def product(m: int, k: int, n: int) -> str:
    return f"function (A[M={m}, K={k}]: i8, B[K, N={n}]: i8) -> (O) {{ O[i, j : M, N]: i32 = +(A[i, k] * B[k, j]); }}"


CONV = (
    "function (I[H=9, W=10, CI=32]: i8, K[J=3, L=3, CI, CO=7]: i8) -> (O) "
    "{ O[y, x, o : H, W, CO]: i32 = +(I[y + j - 1, x + i - 1, c] * K[j, i, c, o]); }"
)


def through_the_list(text: str, machine: str = "x86_avx512") -> Program:
    return stripe.run_passes(stripe.parse(text, name="dot.tile"), "cpu", hardware=machine)


@pytest.mark.parametrize("text", [product(37, 131, 29), product(4, 64, 6), product(1, 200, 40), CONV])
@pytest.mark.parametrize("native", [False, True])
def test_the_code_computes_the_sums_of_the_interpreter(text: str, native: bool) -> None:
    before = stripe.parse(text, name="dot.tile")
    after = through_the_list(text)
    made = np.random.default_rng(3)
    data = {
        ref.name: made.choice(np.array([-128, -127, -1, 0, 5, 127], np.int8), ref.sizes)
        for ref in before.inputs
    }
    expected = stripe.run(before, data)
    call, outputs = compile_program(after, CompileOptions(native=native)).bind(data)
    call()
    for name, array in outputs().items():
        assert np.array_equal(array, expected[name])


FOURS, PAIRS = "vpdpbusd", "pmaddwd"


@pytest.mark.parametrize(
    ("machine", "flags", "wanted", "register"),
    [
        ("x86_avx512", "-march=x86-64-v4 -mavx512vnni", FOURS, "zmm"),
        ("x86_avx512", "-march=x86-64-v4", PAIRS, "zmm"),
        ("x86_avx2", "-march=x86-64-v3 -mavxvnni", FOURS, "ymm"),
        ("x86_avx2", "-march=x86-64-v3", PAIRS, "ymm"),
        ("x86_avx2", "-march=x86-64-v2", PAIRS, "xmm"),
    ],
)
def test_gcc_makes_instructions_for_fours_or_pairs(
    machine: str, flags: str, wanted: str, register: str, tmp_path: Path
) -> None:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc on the path")
    asked = [gcc, *flags.split()]
    if subprocess.run([*asked, "-E", "-x", "c", "/dev/null"], capture_output=True, check=False).returncode:
        pytest.skip("gcc has no such processor")
    source, target = tmp_path / "kernel.c", tmp_path / "kernel.s"
    source.write_text(emit_c(through_the_list(product(64, 256, 48), machine)))
    subprocess.run([*asked, *FLAGS, "-O3", "-Wall", "-Werror", "-S", source, "-o", target], check=True)
    lines = target.read_text().splitlines()
    sums = [line for line in lines if wanted in line and register in line]
    others = [line for line in lines if any(name in line for name in ("pmullw", "pmulld", "pdpwssd"))]
    # A tile of 4 x 5 results with 32 registers, of 2 x 4 with 16; VNNI sums one factor, too.
    results = 20 if machine == "x86_avx512" else 8
    assert len(sums) >= results + (wanted == FOURS) * 2
    assert len(others) <= len(sums) // 8


def test_long_sums_and_other_factors_stay_as_they_are() -> None:
    assert "ST_FLIP" in emit_c(through_the_list(product(4, 65536, 4)))
    assert "ST_FLIP" not in emit_c(through_the_list(product(4, 65600, 4)))
    assert "ST_FLIP" not in emit_c(
        through_the_list(product(8, 64, 8).replace("B[K, N=8]: i8", "B[K, N=8]: u8"))
    )
    assert "ST_FLIP" not in emit_c(through_the_list(product(8, 64, 8), "portable"))
    depthwise = (
        CONV.replace(", CO=7", "")
        .replace("H, W, CO]", "H, W, CI]")
        .replace("o : ", "c : ")
        .replace(", o]", "]")
    )
    assert "ST_FLIP" not in emit_c(through_the_list(depthwise))


@pytest.mark.parametrize("dtype", ["i8", "fp32"])
def test_the_class_of_a_contraction_changes_no_code(dtype: str) -> None:
    """`pattern` calls a product of vectors `dot`: what it computes, not a tile to write as straight code."""
    text = f"function (A[N=6, K=64]: {dtype}, B[N, K]: {dtype}) -> (C) {{ C[n : N] = +(A[n, k] * B[n, k]); }}"
    program = stripe.parse(
        text.replace("C[n : N]", "C[n : N]: i32") if dtype == "i8" else text, language="tile"
    )
    classified = stripe.run_passes(program, ["pattern{reqs=[contraction]}"])
    vectors = "vectorize{reqs=[contraction],only_tag=true,vector_bytes=32}"
    assert "#dot " in print_program(classified)
    for passes in ([], [vectors]):
        codes = [emit_c(stripe.run_passes(p, passes) if passes else p) for p in (program, classified)]
        first, second = ([line for line in code.splitlines() if "//" not in line] for code in codes)
        assert first == second


@pytest.mark.parametrize("name", ["registers", "two_stores", "other_scalars"])
def test_the_tag_alone_makes_no_dots(name: str) -> None:
    """Sums in registers, and statements other than those of a sum of products, stay what they are."""
    program = load(f"emit/dots/{name}")
    data = random_inputs(program, 1)
    expected = interpret(program, data)
    for output, array in compile_program(program).run(data).items():
        assert np.array_equal(array, expected[output])
