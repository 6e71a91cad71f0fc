"""The elementary functions keep their bounds, C and numpy agree bit for bit, and compilers make vectors of them."""

from __future__ import annotations

import ctypes
import math
import platform
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import stripe
from stripe.emit.c import emit_c
from stripe.emit.c.dialect import C11, FLAGS
from stripe.emit.c.elementary import definition
from stripe.emit.c.helpers import Helpers
from stripe.exec.compile import compile_program
from stripe.exec.elementary import evaluate
from stripe.exec.toolchain import CompileOptions, toolchain
from stripe.ir import INTRINSICS
from stripe.ir.dtypes import FP32

BOUNDS = {"exp": 1.0, "log": 0.9, "tanh": 1.5, "sigmoid": 2.5, "erf": 1.4, "sin": 1.6, "cos": 1.6}
"""Largest error in ulp, for each function of one argument."""
EXACT = {"sigmoid": "1 / (1 + exp(-x))"}

HARNESS = """
#include <math.h>
#include <stdint.h>
#include <string.h>
%s
void values(const float *x, float *y, int64_t n);
void values(const float *restrict x, float *restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = %s(x[i]);
}
static double exact(double x) { return %s; }
/* The largest error in ulp over every step-th bit pattern; infinity where a special value differs. */
double worst(uint64_t first, uint64_t step);
double worst(uint64_t first, uint64_t step) {
  double most = 0;
  for (uint64_t pattern = first; pattern < (1ull << 32); pattern += step) {
    const float x = st_float((uint32_t)pattern), y = %s(x);
    const double right = exact((double)x);
    const float rounded = (float)right;
    if (isnan(rounded) || isinf(rounded) || rounded == 0) {
      const int same = isnan(rounded) ? isnan(y) : fabs((double)y - (double)rounded) <= 0x1p-149 || y == rounded;
      const int near = isinf(rounded) && fabsf(y) == 0x1.fffffep127f;
      if (!same && !near) return INFINITY;
      continue;
    }
    const uint32_t top = st_bits(rounded) >> 23 & 0xffu; /* the ulp of a number is that of its power of two */
    const double ulp = top > 1 ? (double)st_float(top << 23) * 0x1p-23 : 0x1p-149;
    const double error = fabs((double)y - right) / ulp;
    if (!(error <= most)) most = error;
  }
  return most;
}
"""


def source(name: str) -> str:
    """The C function and the helpers that it calls."""
    helpers = Helpers(C11)
    for needed in (name, "bits", "float"):
        helpers.need(needed)
    return "\n".join(helpers.texts())


def harness(name: str, compiler: str | None = None, *, plain: bool = False) -> ctypes.CDLL:
    """The library; `plain` as for a processor without multiply-adds."""
    text = HARNESS % (source(name), f"st_{name}", EXACT.get(name, f"{name}(x)"), f"st_{name}")
    text = text.replace("#define ST_FMA\n", "") if plain else text
    library = ctypes.CDLL(str(toolchain(CompileOptions(compiler)).build(text, shared=True)))
    library.worst.restype = ctypes.c_double
    library.worst.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    return library


@pytest.mark.parametrize("name", BOUNDS)
def test_a_sample_of_all_numbers_keeps_the_bound(name: str) -> None:
    assert harness(name).worst(0, 4099) <= BOUNDS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_all_numbers_keep_the_bound(name: str) -> None:
    assert harness(name).worst(0, 1) <= BOUNDS[name]


def patterns(count: int) -> np.ndarray:
    """Numbers of all sizes: random bit patterns, and the corners."""
    bits = np.random.default_rng(1).integers(0, 1 << 32, count, np.uint64).astype(np.uint32)
    small = np.linspace(-120, 120, count).astype(np.float32)
    corners = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 88.72284, -103.98]
    return np.concatenate([bits.view(np.float32), small, np.array(corners, np.float32)])


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("name", "compiler"), list(product(BOUNDS, ("gcc", "clang"))))
def test_numpy_computes_the_same_bits(name: str, compiler: str, plain: bool) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    x = patterns(20000)
    found = np.zeros_like(x)
    harness(name, compiler, plain=plain).values(
        ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(found.ctypes.data), ctypes.c_int64(x.size)
    )
    steps = INTRINSICS[name].steps
    assert steps is not None
    expected = evaluate(steps, x)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(expected) | (np.isnan(found) & np.signbit(found)))


def test_pow_keeps_the_bound_and_the_special_cases_of_c() -> None:
    steps = INTRINSICS["pow"].steps
    assert steps is not None
    made = np.random.default_rng(2)
    x = np.exp2(made.uniform(-30, 30, 200000)).astype(np.float32) * made.choice([1, 1, -1], 200000).astype(
        np.float32
    )
    y = np.where(x < 0, made.integers(-9, 9, x.size), made.uniform(-6, 6, x.size)).astype(np.float32)
    right = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    found = evaluate(steps, x, y)
    normal = (np.abs(right) < 3e38) & (np.abs(right) > 2e-38)
    ulp = np.spacing(np.abs(right[normal].astype(np.float32))).astype(np.float64)
    assert (np.abs(found[normal] - right[normal]) / ulp).max() < 1
    corners = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        0.5,
        -0.5,
        3.0,
        -3.0,
        2.5,
        math.inf,
        -math.inf,
        math.nan,
        3e38,
        1e-45,
    ]
    a, b = (np.array(side, np.float32) for side in zip(*product(corners, corners), strict=True))
    with np.errstate(all="ignore"):
        wanted = np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    got = evaluate(steps, a, b)
    wrong = [
        (float(p), float(q), float(g), float(w))
        for p, q, g, w in zip(a, b, got, wanted, strict=True)
        if not (math.isnan(g) and math.isnan(w)) and (g != w or np.signbit(g) != np.signbit(w))
    ]
    assert wrong == []


CALLS = ("call", "bl ", "jmp\texp", "jmp\tlog")


@pytest.mark.parametrize(
    ("name", "compiler"),
    list(product(("exp", "log", "tanh", "sigmoid", "erf"), ("gcc", "clang"))),
)
def test_compilers_make_vectors(name: str, compiler: str, tmp_path: Path) -> None:
    """The loop over an array has packed multiplications, no call, and no jump but that of the loop."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    text = HARNESS % (source(name), f"st_{name}", EXACT.get(name, f"{name}(x)"), f"st_{name}")
    loop = text[: text.index("static double exact")]
    (tmp_path / "loop.c").write_text(loop)
    target = ["-mavx2"] if platform.machine() == "x86_64" else []
    command = [
        compiler,
        "-O3",
        *target,
        *FLAGS,
        "-S",
        "-o",
        str(tmp_path / "loop.s"),
        str(tmp_path / "loop.c"),
    ]
    subprocess.run(command, check=True)
    assembly = (tmp_path / "loop.s").read_text()
    assert "vmulps" in assembly or not target
    assert not any(word in assembly for word in CALLS)


def test_the_definition_names_no_library() -> None:
    for name, spec in INTRINSICS.items():
        if spec.steps is not None:
            text = definition(f"st_{name}", spec.steps, spec.arity, C11)
            assert "if " not in text
            assert f"st_{name}(" in text.splitlines()[0]


BUILDS = {
    "native": CompileOptions(),
    "without multiply-adds": CompileOptions(native=False),
    "without extensions": CompileOptions(extra_flags=("-DST_PLAIN",)),
    "by clang": CompileOptions("clang"),
}
LANEWISE = [name for name, spec in INTRINSICS.items() if spec.has_vectors(FP32) and spec.steps is not None]


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("machine", "lanes"), [("x86_avx512", 16), ("x86_avx2", 8), ("portable", 4)])
def test_functions_of_vectors_compute_the_same_bits(machine: str, lanes: int, build: str) -> None:
    """Vectors as wide as the registers of the processor, wider, and less wide."""
    if build == "by clang" and shutil.which("clang") is None:
        pytest.skip("no clang")
    x = patterns(2000)[-4000:].reshape(8, 500)
    kernels = "".join(f" Y_{name} = {name}(X);" for name in LANEWISE)
    outputs = ", ".join(f"Y_{name}" for name in LANEWISE)
    tile = stripe.parse(f"function (X[M=8, N=500]) -> ({outputs}) {{{kernels} }}", name="functions.tile")
    program = stripe.run_passes(tile, "cpu", hardware=machine)
    text, found = emit_c(program), compile_program(program, BUILDS[build]).run({"X": x})
    for name in LANEWISE:
        steps, y = INTRINSICS[name].steps, found[f"Y_{name}"]
        assert steps is not None
        assert f"= st_{name}_fp32x{lanes}(" in text
        expected = evaluate(steps, x)
        assert np.array_equal(y, expected, equal_nan=True)
        assert np.array_equal(np.signbit(y), np.signbit(expected) | (np.isnan(y) & np.signbit(y)))


def test_functions_with_steps_in_fp64_have_no_vectors() -> None:
    assert set(LANEWISE) == {"exp", "log", "tanh", "erf", "sigmoid"}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_vectors_of_two_lanes_give_no_warning(compiler: str, tmp_path: Path) -> None:
    """gcc took the lanes of a parameter that change one by one for uninitialized."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    text = "function (X[M=1, N=18]) -> (A) { E = exp(X); A[i : M] = +(E[i, j]); }"
    program = stripe.run_passes(stripe.parse(text, name="two.tile"), "cpu", hardware="x86_avx2")
    (tmp_path / "two.c").write_text(emit_c(program))
    target = ["-mavx2", "-mfma"] if platform.machine() == "x86_64" else []
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    command = [compiler, "-O2", *target, *FLAGS, *warnings, "-c", "-o", "two.o", "two.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
