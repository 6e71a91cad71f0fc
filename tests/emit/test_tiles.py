"""Tiles of vectors: C means what the interpreter says, with GNU vectors and without, and its inner loops stay clean."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import stripe
from stripe.emit.c import emit_c
from stripe.exec.compile import compile_program
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.exec.toolchain import CompileOptions
from stripe.ir import Program, vectors_along
from tests.support.programs import build, load

TILE = (
    "autotile{reqs=[contraction],vector_bytes=32,max_output_size=192,acc_idxs=false,"
    "outer_set=[tile],inner_set=[inner]}"
)
CACHE = "cache{reqs=[tile],ref=inner,dirs=[out]}"
VECTORIZE = "vectorize{reqs=[kernel],only_tag=true,vector_bytes=16}"
VECTORS = f"peel{{reqs=[tile]}},reorder_indexes{{reqs=[kernel],by=vector}},{VECTORIZE}"

PROGRAMS = {
    "ragged": "function (A[M=10, K=7], B[K, N=27]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }",
    "pool": "function (I[H=9, W=9, C=11]) -> (O) { O[y, x, c : 4, 4, C] = >(I[2*y + j, 2*x + i, c]), j < 3, i < 3; }",
    "least": "function (I[H=6, C=13]: i32) -> (O) { O[c : C] = <(I[y, c]); }",
    "narrow": "function (A[M=6, K=5]: i8, B[K, N=21]: i8) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }",
    "wide": "function (A[M=6, K=5]: i8, B[K, N=21]: i8) -> (C) "
    "{ X = as_int(A, 32); Y = as_int(B, 32); C[i, j : M, N] = +(X[i, k] * Y[k, j]); }",
    "chain": "function (A[M=5, N=19], B[N]) -> (C) { X = A * B; Y = X - A; Z = relu(Y); C = -Z / 2.0; }",
    "double": "function (A[M=5, K=4]: fp64, B[K, N=6]: fp64) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }",
    "long": "function (A[N=103]) -> (B) { B = A + A; }",
}


def tiled(name: str, cached: bool) -> Program:
    program = stripe.parse(PROGRAMS[name], name=f"{name}.tile")
    return stripe.run_passes(program, ",".join([TILE, *([CACHE] if cached else []), VECTORS]))


@pytest.mark.parametrize("cached", [False, True], ids=["memory", "registers"])
@pytest.mark.parametrize("flags", [("-march=native",), ("-DST_PLAIN",), ()], ids=["native", "plain", "any"])
def test_tiles_mean_what_the_interpreter_says(flags: tuple[str, ...], cached: bool) -> None:
    for name in PROGRAMS:
        program = tiled(name, cached)
        inputs = random_inputs(program, 3)
        built = compile_program(program, CompileOptions(extra_flags=flags))
        for output, expected in interpret(program, inputs).items():
            assert np.array_equal(built.run(inputs)[output], expected), name


def test_a_maximum_of_vectors_carries_every_nan() -> None:
    program = tiled("pool", cached=True)
    data = np.arange(9 * 9 * 11, dtype=np.float32).reshape(9, 9, 11)
    data[::3, ::2] = np.nan
    result = compile_program(program).run({"I": data})["O"]
    assert np.array_equal(result, interpret(program, {"I": data})["O"], equal_nan=True)
    assert np.isnan(result).any()


def test_a_product_that_others_use_keeps_its_rounding() -> None:
    """Only what a sum by aggregation alone takes may be fused."""
    text = "function (A[N=64], B[N]) -> (C, D) { P = A * B; C = P + A; D[i : N] = +(A[i] * B[i]); }"
    chains = "fusion{a_reqs=[eltwise],b_reqs=[eltwise],fused_set=[eltwise]}"
    program = stripe.run_passes(stripe.parse(text, name="p.tile"), f"{chains},{VECTORIZE}")
    random = np.random.default_rng(1)
    inputs = {name: random.standard_normal(64).astype(np.float32) for name in "AB"}
    found = compile_program(program, CompileOptions(native=True, level="O3")).run(inputs)
    assert np.array_equal(found["C"], interpret(program, inputs)["C"])
    assert len(re.findall(r"st_fma\w*\(", emit_c(program))) >= 1


EPILOGUES = {
    "C / 0.5 - E": False,  # C * 2 - E in one rounding
    "C / 4.0 + E": False,
    "C + C - E": False,  # C * 2 again
    "relu(C / 4.0) + E": False,
    "(C + E) + (C + E) - E": False,
    "C / 4.0": True,
    "C + E + A0": True,
    "relu(C + A0) + E": True,
}


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_compilers_contract_no_products_of_their_own(epilogue: str) -> None:
    """gcc makes products of divisions and of sums of equal terms; near the limits of a dtype it shows."""
    text = (
        "function (A[M=16, K=16], B[K, N=16], E[M, N], A0[N]) -> (O) "
        f"{{ C[i, j : M, N] = +(A[i, k] * B[k, j]); O = {epilogue}; }}"
    )
    tile = "autotile{reqs=[contraction],fixed={i:8,j:8,k:16},outer_set=[t]}"
    fusion = "fusion{a_reqs=[t],b_reqs=[eltwise],fused_set=[t]}"
    program = stripe.run_passes(
        stripe.parse(text, name="p.tile"), ",".join([tile, *[fusion] * 4, "localize,scalarize"])
    )
    code = emit_c(program)
    assert code.count("static void") == 1
    assert ('ST_FUNCTION("fp-contract=fast"' in code) == EPILOGUES[epilogue]
    built = compile_program(program, CompileOptions(native=True, level="O3"))
    random = np.random.default_rng(1)
    for limit in (3e38, 3e-44):
        inputs = {
            "A": np.full((16, 16), limit, np.float32),
            "B": np.eye(16, dtype=np.float32),
            "E": (limit * random.random((16, 16))).astype(np.float32),
            "A0": np.zeros(16, np.float32),
        }
        with np.errstate(over="ignore"):
            expected = interpret(program, inputs)["O"]
        assert np.array_equal(built.run(inputs)["O"], expected)


def test_registers_hold_the_results_of_a_tile() -> None:
    """A buffer that tiles alone touch, at constant places, is no memory; one with a rim of variable length is."""
    text = emit_c(tiled("ragged", cached=True))
    assert re.search(r"st_fp32x4 C_2 = st_splat_fp32x4\(0.0f\);", text)
    assert "_Alignas" not in text
    assert "float C_array[" in emit_c(
        stripe.run_passes(stripe.parse(PROGRAMS["ragged"], name="r.tile"), f"{TILE},{CACHE}")
    )


MASKS = """function (A[M=8, N=101]: {t}, B[M, N]: {t}, C[N]: {t}, D[M, L=1]: {t}) -> (O, P, Q, R) {{
  O = (A < B) & (B < C) ? A + A : B;
  P = (A < C) | ~(B == A) ? A : (B >= C ? C - A : B);
  Q = A != A ? B : max(A, B);
  R = (D < D + 1) & (A > D) ? B : D;
}}"""


@pytest.mark.parametrize(
    "options",
    [
        CompileOptions(),
        CompileOptions(native=False),
        CompileOptions(extra_flags=("-DST_PLAIN",)),
        CompileOptions(level="O1"),
    ],
    ids=["native", "any", "plain", "O1"],
)
def test_comparisons_of_vectors_are_masks(options: CompileOptions) -> None:
    for dtype in ("fp32", "fp64", "u32", "i8"):
        program = stripe.run_passes(
            stripe.parse(MASKS.format(t=dtype), name="masks.tile"), "cpu", hardware="x86_avx2"
        )
        assert f"st_cond_{dtype}x" in emit_c(program)
        inputs = random_inputs(program, 3)
        if dtype.startswith("fp"):
            inputs["A"][:, ::7], inputs["B"][::2, ::5] = np.nan, -0.0
        built = compile_program(program, options).run(inputs)
        for output, expected in interpret(program, inputs).items():
            assert np.array_equal(built[output], expected, equal_nan=True), (dtype, output)


def test_masks_of_other_widths_have_no_vectors() -> None:
    text = "function (A[M=8, N=64]: fp64, B[M, N]: fp32) -> (O) { O = A < 0.5 ? B : 0 - B; }"
    program = stripe.run_passes(stripe.parse(text, name="widths.tile"), "cpu", hardware="x86_avx2")
    assert "st_cond_" not in emit_c(program)
    inputs = random_inputs(program, 3)
    assert np.array_equal(compile_program(program).run(inputs)["O"], interpret(program, inputs)["O"])


def test_a_comparison_without_lanes_selects_vectors() -> None:
    program = load("emit/selection_without_lanes")
    text = emit_c(program)
    assert "st_cond_fp32x8(" in text and "-(int32_t)" in text
    inputs = {
        "A": np.arange(192).reshape(8, 24) % 7,
        "B": np.arange(192).reshape(8, 24) % 5,
        "D": np.arange(8) % 2,
    }
    data = {name: array.astype(np.float32) for name, array in inputs.items()}
    for flags in ((), ("-DST_PLAIN",)):
        found = compile_program(program, CompileOptions(extra_flags=flags)).run(data)["R"]
        assert np.array_equal(found, interpret(program, data)["R"])


def row(size: int, agg: str, lines: str) -> Program:
    """A kernel of one row of O, into which `lines` store, with the row itself and I to load."""
    return build(
        f"in I fp32({size})\ninout O fp32({size})",
        f"0: #kernel #vector=8 block [x:{size}] ( // row\nin I[x] fp32(1:1)\n"
        f"{'inout' if 'load(O)' in lines else 'out'} O[x]:{agg} fp32(1:1)\n) {{\n{lines}\n}}",
    )


IN_PLACE = "0: $o = load(O)\n1: $i = load(I)\n2: $s = add($o, $i)\n3: O = store($s)"
COPY = "0: $i = load(I)\n1: O = store($i)"


@pytest.mark.parametrize(("agg", "lines"), [("assign", IN_PLACE), ("add", COPY), ("assign", COPY)])
def test_a_rest_takes_elements_twice_only_where_nothing_changes_them(agg: str, lines: str) -> None:
    """A last vector that begins in the one before would add twice to elements in place."""
    for size in (5, 6, 7, 11, 13, 15, 23, 37, 71, 103):
        program = row(size, agg, lines)
        data = {"I": np.arange(size, dtype=np.float32), "O": np.full(size, 100, np.float32)}
        found = compile_program(program).run(data)["O"]
        assert np.array_equal(found, interpret(program, data)["O"]), size
        vectors = len(re.findall(r"st_store_fp32x\d\(&|O\[\d+\] = ", emit_c(program)))
        if size < 4 * 8:
            is_free = agg == "assign" and lines == COPY
            assert vectors == (vectors_along(size, 8) if is_free else size // 8 + (size % 8).bit_count())


def test_a_part_of_a_row_in_registers_changes_all_vectors_that_hold_it() -> None:
    """The second block changes elements 8 to 11, of which a vector from 11 on would keep the old one."""
    program = load("emit/part_of_a_row")
    data = {"I": np.arange(48, dtype=np.int32), "O": np.zeros(48, np.int32)}
    assert "st_i32x4 T;" in emit_c(program)
    assert np.array_equal(compile_program(program).run(data)["O"], interpret(program, data)["O"])


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["emit/vector_without_readers", "emit/compared_with_itself"])
def test_values_that_nothing_reads_give_no_warning(name: str, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    program = load(name)
    inputs = random_inputs(program, 3)
    flags = ("-Wall", "-Wextra", "-Werror")
    found = compile_program(program, CompileOptions(compiler, extra_flags=flags)).run(inputs)
    assert np.array_equal(found["O"], interpret(program, inputs)["O"])
