"""Emitted C computes what plain numpy computes, under every compiler and level without a warning, and the same C that
the interpreter computes.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from stripe.emit.c import COptions, emit_c
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.interp import interpret
from stripe.ir import Program, parse_program, rewrite_matching, with_entry
from tests.support.batch import merge, merge_arrays, split_arrays
from tests.support.c_programs import Sample, convolution, matmul, samples, tagged, tiles
from tests.support.compilers import COMPILERS, sanitized, strict
from tests.support.programs import build, source
from tests.support.running import run_apart

SAMPLES = samples()
LEVELS = ("O0", "O1", "O2", "O3")
BUILDS = [
    *(strict(compiler, level) for compiler in COMPILERS for level in LEVELS),
    strict("gcc", "O2", openmp=True),
    replace(strict("gcc", "O3"), reorder=True, native=True),
    sanitized(),
]
NAMES = [
    *(f"{compiler} {level}" for compiler in COMPILERS for level in LEVELS),
    "openmp",
    "reordered",
    "sanitized",
]


@pytest.mark.parametrize("options", BUILDS, ids=NAMES)
def test_results_are_those_of_numpy(options: CompileOptions) -> None:
    built = compile_program(merge([sample.program for sample in SAMPLES]), options)
    results = split_arrays(
        run_apart(built, merge_arrays([sample.inputs for sample in SAMPLES])), len(SAMPLES)
    )
    for sample, result in zip(SAMPLES, results, strict=True):
        for name, expected in sample.expected.items():
            assert result[name].dtype == expected.dtype
            assert np.array_equal(result[name], expected), f"{sample.name}: {name}"


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.name for sample in SAMPLES])
def test_the_samples_mean_the_same_to_the_interpreter(sample: Sample) -> None:
    # unchecked: some samples leave elements of outputs at the identity, which C fills in
    for name, result in interpret(sample.program, sample.inputs, checks=False).items():
        assert np.array_equal(result, sample.expected[name]), name


def test_sums_stay_in_a_register() -> None:
    text = emit_c(matmul().program)
    assert "float C_acc = C[5*i + j];" in text
    assert "C_acc = st_fma_fp32(A_v, B_v, C_acc);" in text


def test_the_halo_becomes_bounds() -> None:
    text = emit_c(convolution().program)
    assert "for (int64_t kx = st_max(0, 1 - x); kx < st_min(3, 8 - x); ++kx)" in text
    assert ">= 0" not in text


def test_outer_loops_keep_to_the_values_that_constraints_inside_allow() -> None:
    """Of 10^12 values four are left, which a division by 4 spreads over two loops."""
    text = emit_c(parse_program(source("emit/vast_window")))
    assert "for (int64_t i = 125000000000; i < 125000000001; ++i)" in text


def test_threads_only_where_asked_and_where_points_write_apart() -> None:
    assert "#pragma omp" not in emit_c(tiles("thread").program)
    text = emit_c(tiles("thread").program, COptions(openmp=True))
    assert "#pragma omp parallel for collapse(2) schedule(static)" in text
    shared = emit_c(tagged().program, COptions(openmp=True))
    assert shared.count("#pragma omp parallel for") == 1, "the maximum by columns, not the sum of all"


def test_large_buffers_of_threads_are_not_on_the_stack() -> None:
    text = emit_c(tiles("thread", buffer="8:2048, 4:1").program, COptions(openmp=True))
    assert "threads + (size_t)ST_THREAD * ST_THREAD_BYTES" in text
    assert "_Alignas(64) int64_t S" not in text
    assert "_Alignas(64) int64_t S_array[256];" in emit_c(tiles().program)


def test_local_arrays_of_blocks_beside_each_other_lie_apart_on_the_stack() -> None:
    """Ten such blocks with an array of 16 KiB each: eight arrays are the 128 KiB of the stack, whatever a compiler lets
    share bytes. The others lie in the workspace."""
    parts = [
        f"""{number}: block [] ( // part
          in<[0]> A[0, 0] fp32(3:4096, 4096:1)
          out<[0]> O[{number}]:add fp32(1:1)
          none new@0x00000000<[0]> T[0]:add fp32(4096:1)
      ) {{
        0: block [r:3, x:4096] ( // sum
            in<[0]> A[r, x] fp32(1:4096, 1:1)
            out<[0]> T[x]:add fp32(1:1)
        ) {{
          0: $A = load(A)
          1: T = store($A)
        }}
        1: block [x:4096] ( // all
            in<[0]> T[x] fp32(1:1)
            out<[0]> O[0]:add fp32(1:1)
        ) {{
          0: $T = load(T)
          1: O = store($T)
        }}
      }}"""
        for number in range(10)
    ]
    kernel = "\n".join([
        "0: #kernel block [i:2] ( // kernel",
        "  in<[0]> A[0, 0] fp32(3:4096, 4096:1)",
        "  out<[0]> O[10*i]:add fp32(10:1)",
        ") {", *parts, "}",
    ])  # fmt: skip
    program = build("in A 3 4096; out O 20", kernel)
    text = emit_c(program)
    assert text.count("_Alignas(64) float T_array[4096];") == 8
    assert "st_allocate(16384)" in text
    given = {"A": np.arange(3 * 4096, dtype=np.float32).reshape(3, 4096) % 5}
    expected = interpret(program, given)["O"]
    np.testing.assert_array_equal(compile_program(program, CompileOptions()).run(given)["O"], expected)


def test_reordering_brings_the_contiguous_index_inside_and_keeps_every_bit() -> None:
    sample = matmul()
    loops = [
        line.split()[2]
        for line in emit_c(sample.program, COptions(reorder=True)).splitlines()
        if " for (" in line
    ]
    assert loops == ["i", "k", "j"]
    random = np.random.default_rng(5)
    data = {name: random.standard_normal(a.shape).astype(a.dtype) for name, a in sample.inputs.items()}
    given, fast = (
        compile_program(sample.program, CompileOptions(level="O3", reorder=reorder)).run(data)["C"]
        for reorder in (False, True)
    )
    assert given.tobytes() == fast.tobytes()


VECTORS = """0: #kernel #vector=4 block [k:9, i:3, j:8] ( // tile
        in<[0]> A[i, k] fp32(1:9, 1:1)
        in<[0]> B[k, j] fp32(1:8, 1:1)
        out<[0]> C[i, j]:add fp32(1:8, 1:1)
    ) {
      0: $A = load(A)
      1: $B = load(B)
      2: $C = mul($A, $B)
      3: C = store($C)
    }"""


def test_a_tile_of_vectors_is_written_out_within_its_sum() -> None:
    """Each vector of results is a variable; tiles that no registers hold keep their loops."""

    def variables(body: str, rows: int = 3) -> int:
        text = emit_c(build(f"in A {rows} 9; in B 9 8; out C {rows} 8", body))
        return len(set(re.findall(r"st_fp32x4 (C_acc\w*) =", text)))

    assert variables(VECTORS) == 6
    assert variables(VECTORS.replace("[k:9, i:3, j:8]", "[i:3, k:9, j:8]")) == 2
    assert variables(VECTORS.replace("i:3", "i:17"), rows=17) == 0
    assert variables(VECTORS.replace(" #vector=4", "")) == 0


def test_what_no_register_holds_is_reached_by_a_pointer_of_its_own() -> None:
    text = emit_c(tiles(buffer="8:128, 64:1").program)
    assert "S_array[" in text
    assert "int64_t *restrict S = S_array;" in text


def test_wide_vectors_are_asked_for_where_a_pass_has_counted_on_them() -> None:
    """gcc takes vectors of 32 bytes on most processors that have 64: tiles then leave the registers."""
    asked = '#pragma GCC target("prefer-vector-width=512")'

    def of_vectors(lanes: int) -> Program:
        plain = matmul().program
        marked = rewrite_matching(
            plain.entry, ("kernel",), lambda block: replace(block, tags=block.tags.set("vector", lanes))
        )
        return with_entry(plain, marked)

    assert asked in emit_c(of_vectors(16))
    assert asked not in emit_c(of_vectors(8))
    assert asked not in emit_c(matmul().program)


def test_same_text_each_time() -> None:
    whole = merge([sample.program for sample in SAMPLES])
    assert emit_c(whole) == emit_c(whole)
