"""Faults of gcc 12. In what it makes vectors of: several sums in one loop, of which terms are lost (its bugs 107212 and
110381), products beside sums (107647), roundings of elements beside each other, neighbours that one iteration stores
(114375). In what it carries from iteration to iteration (106892). In what it knows of places in an array (113831). In
selects and comparisons of integers: 108166, 111331, 118915, 107131."""

from __future__ import annotations

import platform
import subprocess
from typing import Literal

import numpy as np
import pytest

import stripe
from stripe.emit.c import emit_c
from stripe.emit.c.dialect import C11
from stripe.emit.c.function import FunctionText
from stripe.emit.c.gcc_hazards import GccHazards
from stripe.exec.compile import compile_program
from stripe.exec.toolchain import CompileOptions, toolchain
from stripe.ir import Program
from tests.support.compilers import COMPILERS
from tests.support.programs import load, source
from tests.support.running import run_apart


def _check(program: Program) -> None:
    """The results of C are those of the interpreter."""
    given = {
        ref.name: (np.arange(ref.elements) % 7 + 1).reshape(ref.sizes).astype(ref.dtype.numpy())
        for ref in program.inputs
    }
    expected = stripe.run(program, given)
    for level in ("O2", "O3"):
        found = compile_program(program, CompileOptions(level=level)).run(given)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=f"{name} at {level}")


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8"])
@pytest.mark.parametrize("merge", ["+", "*"])
@pytest.mark.parametrize("columns", [2, 3])
def test_no_term_of_a_sum_over_an_outer_loop_is_lost(dtype: str, merge: str, columns: int) -> None:
    text = (
        f"function (A[N=8, M={columns}]: {dtype}, B[M]: {dtype}) -> (O, P) {{\n"
        f"  T[j : M] = {merge}(A[i, j]);\n  O[] = +(T[j]);\n  U = T - B;\n  P[] = *(U[j]);\n}}"
    )
    _check(stripe.parse(text))


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("merge", ["add", "mul"])
def test_no_term_of_two_sums_in_one_block_is_lost(dtype: str, merge: str) -> None:
    """The sums are of two buffers, each with an accumulator."""
    text = source("emit/sums/two").replace(" i32", f" {dtype}")
    _check(stripe.parse(text.replace("S[]:add", f"S[]:{merge}").replace("T[]:add", f"T[]:{merge}")))


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("terms", [2, 3, 4])
def test_no_term_of_sums_of_short_sums_is_lost(dtype: str, terms: int) -> None:
    """Sums of the channels of an image: gcc makes straight code of the two inner loops."""
    _check(
        stripe.parse(
            f"function (A[B=24, W={terms}, C=2]: {dtype}) -> (O) {{ T[c : C] = +(A[b, w, c]); O[] = +(T[c]); }}"
        )
    )


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64"])
def test_no_term_of_sums_in_blocks_of_one_loop_is_lost(dtype: str) -> None:
    _check(stripe.parse(source("emit/sums/nested").replace(" i32", f" {dtype}")))


@pytest.mark.parametrize("dtype", ["u16", "u64", "i32"])
def test_no_minima_are_exchanged(dtype: str) -> None:
    text = (
        "function (A[B=5, W=3, C=2]: D) -> (T, O) { T[c : C] = <(A[b, w, c] * A[b, w, c]); O[] = +(T[c]); }"
    )
    _check(stripe.parse(text.replace("D)", f"{dtype})")))


def test_a_function_has_its_options_of_gcc_in_one_attribute() -> None:
    """gcc forgets those of the first of two attributes."""
    head = FunctionText(C11, GccHazards(contracts=True, has_several_sums=True)).definition("f")[0]
    options = (
        '"fp-contract=fast", "stack-reuse=none", "no-predictive-commoning", "no-tree-loop-distribution", '
        '"no-tree-slp-vectorize", "no-ssa-phiopt", "no-tree-reassoc", "no-expensive-optimizations", '
        '"no-tree-loop-vectorize"'
    )
    assert head == f"ST_FUNCTION({options}) static void f(void) {{"


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize("terms", [2, 3, 8])
@pytest.mark.parametrize("passes", ["", "unroll{reqs=[kernel],expand_idx=z}"])
def test_no_term_of_a_sum_of_reversed_terms_is_lost(dtype: str, terms: int, passes: str) -> None:
    """Channels in reverse: gcc permutes the terms of one sum (its bug 110381)."""
    text = f"function (A[B=24, C={terms}]: {dtype}) -> (O) {{ O[] = +(A[a, {terms - 1} - z]); }}"
    program = stripe.parse(text)
    _check(stripe.run_passes(program, passes) if passes else program)


FUSED = "fusion{a_reqs=[kernel],b_reqs=[kernel],objective=none},localize,scalarize"
"""One kernel of all, with its values in scalars."""

ROTATED = """
function (X[N=64, C2=2], Y[N, C2]) -> (O) {
  P[i : N] = =(X[i, 0]);
  Q[i : N] = =(X[i, 1]);
  R[i : N] = =(Y[i, 0]);
  S[i : N] = =(Y[i, 1]);
  D = P*S - Q*R;
  E = P*R + Q*S;
  A[i, 0 : N, C2] = =(D[i]);
  B[i, 1 : N, C2] = =(E[i]);
  O = A + B;
}
"""
"""The cross and the dot product of pairs, beside each other."""


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_products_are_rounded_before_they_are_added_and_subtracted_in_turns(
    level: Literal["O2", "O3"],
) -> None:
    """A vector crossed with itself is 0, unless one of the two products is rounded together with the difference (bug
    107647 of gcc)."""
    program = stripe.run_passes(stripe.parse(ROTATED), FUSED)
    values = np.random.default_rng(1).standard_normal((64, 2)).astype(np.float32)
    given = {"X": values, "Y": values}
    expected = stripe.run(program, given)
    found = compile_program(program, CompileOptions(level=level)).run(given)
    assert not found["O"][:, 0].any()
    np.testing.assert_array_equal(found["O"], expected["O"])


COMPLEX = """
function (X[N=64, C2=2], Y[N, C2]) -> (O) {
  A[i : N] = =(X[i, 0]);
  B[i : N] = =(X[i, 1]);
  C[i : N] = =(Y[i, 0]);
  D[i : N] = =(Y[i, 1]);
  R = A * C + DIFFERENCE;
  I = A * D + B * C;
  RE[i, 0 : N, C2] = =(R[i]);
  IM[i, 1 : N, C2] = =(I[i]);
  O = RE + IM;
}
"""
"""A product of complex numbers, whose parts lie beside each other."""


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(
    "difference", ["-1.0 * (B * D)", "(B * D) / -1.0", "B * (D * (1.0 - 2.0))", "(0.0 - B) * D", "-B * D"]
)
def test_a_sum_that_is_a_difference_to_gcc_is_rounded_after_its_product(
    difference: str, level: Literal["O2", "O3"]
) -> None:
    program = stripe.parse(COMPLEX.replace("DIFFERENCE", difference))
    rng = np.random.default_rng(1)
    given = {name: rng.standard_normal((64, 2)).astype(np.float32) for name in "XY"}
    found = compile_program(stripe.run_passes(program, FUSED), CompileOptions(level=level)).run(given)["O"]
    assert found.tobytes() == stripe.run(program, given)["O"].tobytes()


ROTATED_APART = """function (X[N=1, C=2]: fp64, COS[N]: fp64, SIN[N]: fp64) -> (O) {
  A[i : N] = =(X[i, 0]);
  B[i : N] = =(X[i, 1]);
  P = A * COS - B * SIN;
  Q = A * SIN + B * COS;
  T[i, 0 : N, 2] = =(P[i]);
  O[i, 1 : N, 2] = =(Q[i]) default T;
}"""


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("passes", ["dce", "localize,scalarize"])
def test_products_of_a_kernel_are_not_rounded_with_sums_of_another(
    level: Literal["O2", "O3"], passes: str
) -> None:
    """One kernel adds products, another subtracts them: both stay functions (bug 107647 of gcc)."""
    x, y = np.random.default_rng(1).standard_normal(2)
    program = stripe.run_passes(stripe.parse(ROTATED_APART), passes)
    given = {"X": np.array([[x, y]]), "COS": np.array([y]), "SIN": np.array([x])}
    found = compile_program(program, CompileOptions(level=level)).run(given)["O"]
    assert found.tolist() == [[0.0, x * x + y * y]]


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_no_call_of_a_kernel_is_left_out(level: Literal["O1", "O2", "O3"]) -> None:
    """gcc 12.2 writes addresses of one of two views of a tensor from null on, and then takes the kernel for one that
    does nothing."""
    program = load("emit/two_views_of_a_tensor")
    given = {
        ref.name: np.arange(ref.elements, dtype=np.float32).reshape(ref.sizes) % 7 - 3
        for ref in program.inputs
    }
    expected = stripe.run(program, given)
    found = compile_program(program, CompileOptions(level=level)).run(given)
    assert any(array.any() for array in expected.values())
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_loops_of_a_block_that_writes_one_buffer_by_two_names_keep_their_order() -> None:
    """Points that differ in `i` add to one element by them: their order decides the bits of its sum."""
    program = load("emit/two_names_of_a_buffer")
    rng = np.random.default_rng(0)
    given = {
        name: rng.standard_normal((5, 4)).astype(np.float32) * np.float32(scale)
        for name, scale in (("A", 1), ("B", 100))
    }
    plain, reordered = (
        compile_program(program, CompileOptions(reorder=reorder)).run(given)["O"] for reorder in (False, True)
    )
    assert plain.tobytes() == reordered.tobytes()


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_no_call_of_a_point_of_a_parallel_loop_is_left_out(level: Literal["O1", "O2", "O3"]) -> None:
    program = load("emit/two_views_on_threads")
    (ref,) = program.inputs
    given = {ref.name: (np.arange(ref.elements, dtype=np.float32) % 7 - 3).reshape(ref.sizes)}
    expected = stripe.run(program, given)["T0"]
    found = run_apart(compile_program(program, CompileOptions(level=level, openmp=True)), given)["T0"]
    assert expected.any()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("openmp", [False, True])
def test_a_hint_makes_no_vectors_of_products_that_are_added_and_subtracted(openmp: bool) -> None:
    """gcc makes vectors of a loop with `omp simd` also in a function that takes none (bug 107647)."""
    program = load("emit/complex_product")
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal(128).astype(np.float32) for name in "AB"}
    found = run_apart(compile_program(program, CompileOptions(openmp=openmp)), given)["O"]
    assert found.tobytes() == stripe.run(program, given)["O"].tobytes()


def test_a_hint_makes_no_vectors_of_several_sums() -> None:
    text = stripe.translate(load("emit/sums/two_with_a_hint"), "c{openmp=true}")
    assert "no-tree-loop-vectorize" in text
    assert "omp simd" not in text


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("count", [2, 3, 4, 64])
@pytest.mark.parametrize(("wide", "narrow"), [("fp64", 32), ("fp64", 16), ("fp32", 16)])
def test_no_rounding_of_elements_beside_each_other_is_left_out(
    wide: str, narrow: int, count: int, level: Literal["O2", "O3"]
) -> None:
    program = stripe.parse(
        f"function (A[N={count}]: {wide}) -> (O) {{ O = as_float(as_float(A, {narrow}), {wide[2:]}); }}"
    )
    given = {"A": 0.1 + np.arange(count, dtype=program.inputs[0].dtype.numpy()) / 7}
    found = compile_program(program, CompileOptions(level=level)).run(given)["O"]
    assert found.tobytes() == given["A"].astype(f"f{narrow // 8}").astype(given["A"].dtype).tobytes()


@pytest.mark.parametrize("dtype", ["i32", "i16", "u8", "i64"])
@pytest.mark.parametrize("rest", ["1.0 + X + X", "1.0"], ids=["scalars", "vectors"])
def test_a_select_that_is_compared_leaves_its_operand_as_it_is(dtype: str, rest: str) -> None:
    """`LABEL == 255 ? 0 : LABEL` is compared with a number to which 0 and 255 are alike: gcc compares the label, and
    took it to be no 255 (bug 108166), so that it was no longer masked."""
    text = f"""function (L[N=1000]: {dtype}, X[N]) -> (O) {{
      C = L == 25 ? 0 : L;
      MASKED = (L == 25) | (C > 100);
      O = MASKED ? 0.0 : {rest};
    }}"""
    program = stripe.run_passes(stripe.parse(text), FUSED)
    given = {
        "L": (np.arange(1000) % 120).astype(program.inputs[0].dtype.numpy()),
        "X": np.ones(1000, np.float32),
    }
    expected = stripe.run(program, given)
    assert not expected["O"][25]
    for level in ("O2", "O3", "Os"):
        found = compile_program(program, CompileOptions(level=level)).run(given)
        np.testing.assert_array_equal(found["O"], expected["O"], err_msg=level)


@pytest.mark.parametrize("dtype", ["i32", "i8", "i64"])
@pytest.mark.parametrize(
    "value",
    [
        "(X == -6) | (X == -34) | (X > -5) | (X == -26)",
        "(X != -6) & (X != -34) & (X <= -5) & (X != -26)",
        "X < 29 ? 29 : min(X, 28)",
        "X > 28 ? 28 : max(X, 29)",
    ],
)
def test_no_comparison_of_one_number_is_lost(dtype: str, value: str) -> None:
    """gcc joins comparisons to one of a range (bug 118915), and takes crossed bounds for a maximum of a minimum (bug
    111331, at -O1)."""
    text = f"function (X[N=200]: {dtype}) -> (O) {{ O = {value}; }}"
    program = stripe.run_passes(stripe.parse(text), FUSED)
    given = {"X": (np.arange(200) - 100).astype(program.inputs[0].dtype.numpy())}
    expected = stripe.run(program, given)["O"]
    for level in ("O1", "O2", "O3", "Os"):
        found = compile_program(program, CompileOptions(level=level)).run(given)
        np.testing.assert_array_equal(found["O"], expected, err_msg=level)


def test_a_chain_of_masks_in_one_point_is_computed() -> None:
    """gcc subtracts with borrow the borrow of another comparison (bug 107131)."""
    program = load("emit/masks")
    given = {"A": np.zeros(1, np.uint8)}
    expected = stripe.run(program, given)["O"]
    for level in ("O1", "O2", "O3", "Os"):
        found = compile_program(program, CompileOptions(level=level)).run(given)
        np.testing.assert_array_equal(found["O"], expected, err_msg=level)


@pytest.mark.parametrize("dtype", ["i32", "i64", "fp32", "fp64"])
@pytest.mark.parametrize(
    "rows", ["64, 2] = =(X[a, 1 - z]), a < 59", "64, 2] = =(X[a + 5, 1 - z])", "70, 2] = =(X[a, 1 - z])"]
)
def test_no_guarded_neighbours_are_exchanged(dtype: str, rows: str) -> None:
    """gcc forgets the order of neighbours that are loaded under a test (its bug 114375, with AVX2)."""
    text = f"function (X[N=64, C=2]: {dtype}) -> (O) {{ T[a, z : {rows}; O = T + T; }}"
    _check(stripe.run_passes(stripe.parse(text), FUSED.removesuffix(",scalarize")))


@pytest.mark.parametrize("dtype", ["i32", "i64", "fp32"])
@pytest.mark.parametrize("test", ["j - 5 >= 0", "59 - j >= 0"])
def test_no_neighbours_of_one_point_are_exchanged(dtype: str, test: str) -> None:
    two = "(fp32)2.0" if dtype == "fp32" else f"({dtype})2"
    text = source("emit/exchanged_neighbours").replace(" i32", f" {dtype}").replace("(i32)2", two)
    _check(stripe.parse(text.replace("j - 5 >= 0", test)))


GUARDED = """
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE)) return 2;
  const void *X = memory + page - COUNT * sizeof(TYPE);
  static char results[1 << 16];
  stripe_program(X, (void *)results);
  return 0;
}
"""
"""Runs the program on an input that ends where memory may not be read."""


@pytest.mark.parametrize("c_type", ["int32_t", "int16_t", "int64_t", "float"])
@pytest.mark.parametrize(("copies", "stride"), [(4, 2), (8, 2), (8, 4), (16, 2), (16, 4)])
def test_nothing_behind_an_input_is_read(c_type: str, copies: int, stride: int) -> None:
    """Each element of a few, several times: gcc loads more of them than there are."""
    dtype = {"int32_t": "i32", "int16_t": "i16", "int64_t": "i64", "float": "fp32"}[c_type]
    count = 15 * stride + 1
    program = stripe.parse(
        f"function (X[N={count}]: {dtype}) -> (O) {{ O[a, z : 16, {copies}] = =(X[{stride}*a]); }}"
    )
    code = "#define _DEFAULT_SOURCE\n" + stripe.translate(program, "c") + GUARDED
    code = code.replace("COUNT", str(count)).replace("TYPE", c_type)
    built = toolchain(CompileOptions()).build(code, shared=False)
    assert subprocess.run([built], check=False).returncode == 0


@pytest.mark.parametrize("dtype", ["i32", "i64", "u8", "fp64"])
def test_no_value_is_carried_past_an_iteration_that_does_not_run(dtype: str) -> None:
    """Three merges at falling places: the inner loop runs not at all for some points (bug 106892)."""
    text = source("emit/falling_neighbours").replace(" i32", f" {dtype}")
    _check(stripe.parse(text.replace("(i32)0", "(fp64)0.0" if dtype == "fp64" else f"({dtype})0")))


def test_no_value_of_a_convolution_with_falling_results_is_lost() -> None:
    text = """function (A[X=8, N=10]: i32) -> (O) {
      R[x, 10 - b - a - p : 8, 11] = +(A[x, a + b]), b < 3, a < 5, p < 3, 2 + b - a < 60;
      O = R + 1;
    }"""
    passes = "unroll{reqs=[contraction],expand_idx=p},reorder_indexes{reqs=[contraction],by=runs}," + FUSED
    _check(stripe.run_passes(stripe.parse(text), passes.replace("b_reqs=[kernel]", "b_reqs=[eltwise]")))


def test_an_element_that_is_read_under_a_test_is_not_the_last_one_elsewhere() -> None:
    """An index that only the last element of an array satisfies, beside the same one without a test (bug 113831)."""
    _check(load("emit/last_of_an_array"))


@pytest.mark.parametrize("level", ["O2", "O3", "Os"])
@pytest.mark.parametrize("name", ["labels", "rounded_neighbours", "complex_product"])
def test_statements_of_main_are_a_function_with_its_options(
    name: str, level: Literal["O2", "O3", "Os"]
) -> None:
    """What stands in main itself, at several points or at one, meets the faults that a kernel does."""
    program = load(f"emit/main/{name}")
    (text,) = [line for line in emit_c(program).splitlines() if line.startswith('ST_FUNCTION("')]
    assert "no-ssa-phiopt" in text
    random = np.random.default_rng(3)
    given = {
        ref.name: (random.standard_normal(ref.sizes) if ref.dtype.is_float else np.arange(ref.elements) % 120)
        .astype(ref.dtype.numpy())
        for ref in program.inputs
    }  # fmt: skip
    expected = stripe.run(program, given)["O"]
    found = compile_program(program, CompileOptions(level=level)).run(given)["O"]
    np.testing.assert_array_equal(found, expected)


def test_gcc_does_not_know_the_constants_that_it_copies() -> None:
    """It stores 16 ones twice where 16 zeros follow, for Skylake with AVX-512 and later ones (bug 108599)."""
    program = load("emit/memory/placed_constant")
    text = emit_c(program)
    assert "memcpy(C_placed, C_given," in text
    if platform.machine() != "x86_64" or "gcc" not in COMPILERS:
        pytest.skip("a fault of gcc for x86, which has to be here")
    given = {"X": np.zeros(32, np.uint8)}
    expected = stripe.run(program, given)["O"]
    options = CompileOptions("gcc", level="O2", extra_flags=("-mtune=skylake-avx512",))
    np.testing.assert_array_equal(compile_program(program, options).run(given)["O"], expected)
