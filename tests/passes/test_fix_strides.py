"""The pass `fix_strides`: dimensions with more factors get the small strides."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Program
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import CHAIN, lines_of, run_pass


def copies(sizes: tuple[int, ...]) -> Program:
    """A goes through T to O."""
    shapes = {"A": sizes, "T": sizes, "O": sizes}
    indices = {f"i{dim}": size for dim, size in enumerate(sizes)}
    access = ",".join(indices)
    kernels = [
        kernel(f"T[{access}] = assign neg(A[{access}])", indices, shapes),
        kernel(f"O[{access}] = assign abs(T[{access}])", indices, shapes),
    ]
    return program_of(kernels, shapes, ["O"])


def test_the_dimension_with_most_factors_becomes_contiguous() -> None:
    result, remarks = run_pass(copies((7, 8, 6)), "fix_strides")
    assert lines_of(result, "> T[") == [
        "#tmp none new@0x00000000<[0]> T[0, 0, 0] fp32(7:48, 8:1, 6:8)",
        "inout<[0]> T[0, 0, 0]:assign fp32(7:48, 8:1, 6:8)",
        "out<[0]> T[i0, i1, i2]:assign fp32(1:48, 1:1, 1:8)",
        "in<[0]> T[i0, i1, i2] fp32(1:48, 1:1, 1:8)",
    ]
    assert [str(remark) for remark in remarks] == [
        "applied: T: strides 7:48, 8:1, 6:8 instead of 7:48, 8:6, 6:1; prime factors 1, 3, 2"
    ]


def test_reqs_choose_the_blocks_whose_buffers_change() -> None:
    program = copies((7, 8, 6))
    assert run_pass(program, "fix_strides", interpreted=True, reqs=["kernel"])[0] is program


def test_user_tensors_and_vectors_stay() -> None:
    result, remarks = run_pass(CHAIN, "fix_strides")
    assert remarks == []
    assert "fp32(6:4, 4:1)" in lines_of(result, "I[0, 0]")[0]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_any_shape_keeps_its_meaning(sizes: list[int]) -> None:
    once, _ = run_pass(copies(tuple(sizes)), "fix_strides")
    assert run_pass(once, "fix_strides")[0] is once
