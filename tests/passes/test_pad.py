"""The pass `pad`: which constraints fall, which ranges rise, and where that would not be sound."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.exec.interp import interpret
from stripe.ir import ConstantBuffer, Program, Refinement, Role
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import lines_of, run_pass
from tests.support.programs import load

SHAPES = {"I": (10, 4), "K": (3, 4, 2), "O": (10, 2), "T": (10, 4)}
CONV = "O[x, co] = add mul(I[k+x-1, ci], K[k, ci, co])"
POOL = "O[x, c] = max ident(I[2*x+k-1, c])"
EDGES = ("k + x - 1", "10 - k - x")


def conv(dtype: str = "i32", text: str = CONV, constant: tuple[float, ...] = ()) -> Program:
    """A convolution over the edges, whose weights may be constants."""
    block = kernel(
        text, {"ci": 4, "co": 2, "k": 3, "x": 10}, SHAPES, name="conv", tags=("contraction",), where=EDGES, dtype=dtype
    )  # fmt: skip
    program = program_of([block], SHAPES, ["O"], dtype)
    if not constant:
        return program

    def fixed(ref: Refinement) -> Refinement:
        return replace(ref, role=Role.CONSTANT) if ref.name == "K" else ref

    entry = replace(program.entry, refinements=tuple(map(fixed, program.entry.refinements)))
    data = struct.pack("<24f", *(constant[n % len(constant)] for n in range(24)))
    return Program(entry, (ConstantBuffer("K", entry.ref("K").dtype, (3, 4, 2), data),))


def pool(rows: int = 9, dtype: str = "fp32", agg: str = "max") -> Program:
    """A strided pooling over the edges."""
    shapes = {"I": (rows, 3), "O": ((rows + 1) // 2, 3)}
    text = POOL.replace("max", agg)
    indices = {"c": 3, "k": 3, "x": (rows + 1) // 2}
    where = ("k + 2*x - 1", f"{rows} - k - 2*x")
    block = kernel(text, indices, shapes, name="pool", tags=("contraction",), where=where, dtype=dtype)
    return program_of([block], shapes, ["O"], dtype)


def test_the_edges_of_a_convolution_become_zeros() -> None:
    result, remarks = run_pass(conv(), "pad")
    assert not lines_of(result, ">= 0")
    assert lines_of(result, "I_pad[", "block [d", "block [ci") == [
        "#tmp none new@0x00000000<[0]> I_pad[0, 0] i32(12:4, 4:1)",
        "inout<[0]> I_pad[0, 0]:assign i32(12:4, 4:1)",
        "0: #kernel #padding block [d0:1, d1:4] ( // fill_I_pad",
        "out<[0]> I_pad[d0, d1]:assign i32(1:4, 1:1)",
        "1: #kernel #padding block [d0:1, d1:4] ( // fill_I_pad",
        "out<[0]> I_pad[11 + d0, d1]:assign i32(1:4, 1:1)",
        "2: #kernel #padding block [d0:10, d1:4] ( // pad_I",
        "out<[0]> I_pad[1 + d0, d1]:assign i32(1:4, 1:1)",
        "3: #contraction #kernel block [ci:4, co:2, k:3, x:10] ( // conv",
        "in<[0]> I = I_pad[k + x, ci] i32(1:4, 1:1)",
    ]
    assert str(remarks[0]) == "applied: conv: 2 of 2 constraints dropped; I 10x4 padded to 12x4"


def test_of_floats_zero_times_infinity_is_refused_unless_allowed() -> None:
    program = conv("fp32")
    result, remarks = run_pass(program, "pad")
    assert result is program
    assert str(remarks[0]) == (
        "missed: conv: -1 + k + x >= 0 stays: at ci = 0, co = 0, k = 0, x = 0, 0 would be multiplied by an "
        "element that may be infinite or NaN; allow_nonfinite permits it"
    )
    allowed, _ = run_pass(program, "pad", allow_nonfinite=True)
    assert not lines_of(allowed, ">= 0")
    weights = np.full((3, 4, 2), np.inf, "f4")
    inputs = {"I": np.ones((10, 4), "f4"), "K": weights}
    assert not np.isnan(interpret(program, inputs)["O"]).any()
    assert np.isnan(interpret(allowed, inputs)["O"]).any()  # what the refusal is about


def test_constant_weights_without_infinities_need_no_permission() -> None:
    result, _ = run_pass(conv("fp32", constant=(1.0, -2.0, 0.5)), "pad")
    assert not lines_of(result, ">= 0")
    program = conv("fp32", constant=(1.0, float("inf")))
    assert run_pass(program, "pad")[0] is program


def test_maxima_are_padded_with_the_lowest_value() -> None:
    result, _ = run_pass(pool(), "pad")
    assert not lines_of(result, ">= 0")
    assert lines_of(result, "$c =") == ["0: $c = (fp32)-inf", "0: $c = (fp32)-inf"]
    small, _ = run_pass(pool(dtype="i8"), "pad")
    assert lines_of(small, "$c =")[0] == "0: $c = (i8)-128"


def test_other_constraints_stay() -> None:
    block = kernel(
        "O[x] = add ident(I[x+k])", {"k": 4, "x": 8}, {"I": (11,), "O": (8,)}, tags=("contraction",),
        where=("x - k", "10 - x - k"), dtype="i32",
    )  # fmt: skip
    program = program_of([block], {"I": (11,), "O": (8,)}, ["O"], "i32")
    result, remarks = run_pass(program, "pad")
    assert lines_of(result, ">= 0") == ["-k + x >= 0"]  # the other one holds anyway
    assert "it would contribute more than the identity of add" in str(remarks[0])


def test_products_need_ones() -> None:
    result, _ = run_pass(pool(agg="mul", dtype="i32"), "pad")
    assert lines_of(result, "$c =")[0] == "0: $c = (i32)1"


def test_what_writes_beyond_its_output_is_refused() -> None:
    block = kernel(
        "O[2*x+k-1] = add ident(I[x])", {"k": 3, "x": 5}, {"I": (5,), "O": (10,)}, tags=("contraction",),
        where=("2*x + k - 1",), dtype="i32",
    )  # fmt: skip
    program = program_of([block], {"I": (5,), "O": (10,)}, ["O"], "i32")
    result, remarks = run_pass(program, "pad")
    assert result is program
    assert "it would write before the beginning of O" in str(remarks[0])


def matmul(m: int, n: int, k: int, dtype: str = "fp32", tag: str = "contraction") -> Program:
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    text = "C[i, j] = add mul(A[i, k], B[k, j])"
    block = kernel(text, {"i": m, "j": n, "k": k}, shapes, name="matmul", tags=(tag,), dtype=dtype)
    return program_of([block], shapes, ["C"], dtype)


def test_prime_ranges_rise_and_outputs_are_trimmed() -> None:
    result, remarks = run_pass(matmul(37, 6, 41), "pad")
    assert lines_of(result, "// matmul") == ["5: #contraction #kernel block [i:40, j:6, k:48] ( // matmul"]
    assert lines_of(result, "> C[d0") == ["out<[0]> C[d0, d1]:add fp32(1:6, 1:1)"]
    assert str(remarks[0]) == (
        "applied: matmul: i:37 raised to 40; k:41 raised to 48; A 37x41 padded to 40x48; B 41x6 padded to 48x6; "
        "C 37x6 padded to 40x6"
    )


@pytest.mark.parametrize(
    ("options", "head"),
    [
        ({"prime_threshold": 40}, "[i:37, j:6, k:48]"),
        ({"multiple_of": 16}, "[i:48, j:6, k:48]"),
        ({"prime_threshold": 0}, "[i:37, j:6, k:41]"),
        ({"max_growth": 1.1}, "[i:37, j:6, k:41]"),
        ({"reqs": ["other"]}, "[i:37, j:6, k:41]"),
    ],
)
def test_options_for_primes(options: dict[str, object], head: str) -> None:
    result, _ = run_pass(matmul(37, 6, 41), "pad", interpreted=True, **options)
    assert head in lines_of(result, "// matmul")[0]


def test_assignments_are_trimmed_too() -> None:
    shapes = {"A": (37,), "O": (37,)}
    block = kernel("O[x] = assign exp(A[x])", {"x": 37}, shapes, tags=("contraction",))
    result, _ = run_pass(program_of([block], shapes, ["O"]), "pad")
    assert "out<[0]> O[d0]:assign fp32(1:1)" in lines_of(result, "> O[d0]")


def test_growth_and_undefined_elements_are_refused() -> None:
    _, remarks = run_pass(conv(), "pad", max_growth=1.1)
    assert str(remarks[-1]) == "missed: conv: not padded: I would grow from 40 to 48 elements"
    shapes = SHAPES | {"I": (10, 4)}
    make = kernel("T[x, c] = assign neg(I[x, c])", {"c": 4, "x": 9}, shapes, dtype="i32")
    use = kernel(
        CONV.replace("I[", "T["), {"ci": 4, "co": 2, "k": 3, "x": 10}, shapes, name="conv",
        tags=("contraction",), where=("k + x - 1", "9 - k - x"), dtype="i32",
    )  # fmt: skip
    program = program_of([make, use], shapes, ["O"], "i32")
    result, remarks = run_pass(program, "pad")
    assert result is program
    assert "some elements of T are not written before" in str(remarks[-1])


def test_dependences_hold_what_is_added() -> None:
    shapes = SHAPES
    make = kernel("T[x, c] = assign neg(I[x, c])", {"c": 4, "x": 10}, shapes, name="make", dtype="i32")
    use = kernel(
        CONV.replace("I[", "T["), {"ci": 4, "co": 2, "k": 3, "x": 10}, shapes, name="conv",
        tags=("contraction",), where=EDGES, dtype="i32",
    )  # fmt: skip
    program = program_of([make, replace(use, deps=(0,))], shapes, ["O"], "i32")
    result, _ = run_pass(program, "pad")
    assert [(s.name, s.deps) for s in result.main.blocks] == [
        ("make", ()), ("fill_T_pad", (0,)), ("fill_T_pad", (0,)), ("pad_T", (0,)), ("conv", (0, 1, 2, 3)),
    ]  # fmt: skip


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 12), st.sampled_from(["add", "max", "min"]),
    st.sampled_from(["i8", "i32", "u8", "fp32"]), st.integers(1, 4),
)  # fmt: skip
def test_any_window_keeps_its_meaning(
    stride: int, dilation: int, before: int, rows: int, agg: str, dtype: str, size: int
) -> None:
    outputs = max(1, rows // stride)
    shapes = {"I": (rows,), "O": (outputs,)}
    where = (f"{stride}*x + {dilation}*k - {before}", f"{rows - 1 + before} - {stride}*x - {dilation}*k")
    block = kernel(
        f"O[x] = {agg} ident(I[{stride}*x + {dilation}*k - {before}])", {"k": size, "x": outputs}, shapes,
        tags=("contraction",), where=where, dtype=dtype,
    )  # fmt: skip
    run_pass(program_of([block], shapes, ["O"], dtype), "pad", max_growth=100.0, prime_threshold=2)


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 13), st.integers(1, 13), st.integers(1, 13), st.sampled_from(["i8", "fp32"]))
def test_any_matrix_product_keeps_its_meaning(m: int, n: int, k: int, dtype: str) -> None:
    run_pass(matmul(m, n, k, dtype), "pad", prime_threshold=2, multiple_of=4, max_growth=100.0)


def test_a_kernel_that_updates_in_place_stays() -> None:
    program = load("passes/pad/in_place")
    after, remarks = run_pass(program, "pad", reqs=["kernel"], prime_threshold=1, multiple_of=4)
    assert after == program
    assert "it reads T as well" in str(remarks)
