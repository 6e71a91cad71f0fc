"""The pass `vectorize`: which index vectors run along, which views they move, and what is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import ConfigError, parse_program
from tests.passes.programs import CHAIN, lines_of, matmul, on, run_pass
from tests.support.programs import source


def test_vectors_run_along_the_contiguous_index_of_the_output() -> None:
    result, remarks = run_pass(matmul(32), "vectorize", reqs=["matmul"], vector_bytes=64)
    assert lines_of(result, "[k:", "1:1)")[-4:] == [
        "0: #vector=16 block [k:1, m:1, n:16] ( // matmul",
        "in<[0]> A[0, 0] fp32(1:5, 1:1)",
        "#vector_tx in<[0]> B[0, n] fp32(1:32, 1:1)",
        "#vector_tx out<[0]> C[0, n]:add fp32(1:32, 1:1)",
    ]
    assert [str(remark) for remark in remarks] == [
        "applied: matmul: n: 2 vectors of 16, 100.0 % of the lanes used; moved whole: B, C"
    ]


def test_a_partly_empty_vector_is_not_moved_as_a_whole() -> None:
    result, remarks = run_pass(matmul(20), "vectorize", reqs=["matmul"], vector_bytes=64)
    assert lines_of(result, "19 - n") == ["19 - n - 16*n.o >= 0"]
    assert str(remarks[0]).endswith("n: 2 vectors of 16, 62.5 % of the lanes used; moved whole: none")


def test_only_tag_leaves_the_loops() -> None:
    result, _ = run_pass(matmul(32), "vectorize", reqs=["matmul"], vector_bytes=64, only_tag=True)
    assert lines_of(result, "#vector=16") == [
        "0: #kernel #matmul #vector=16 block [k:5, m:6, n:32] ( // matmul"
    ]


def test_inputs_are_not_gathered() -> None:
    text = source("passes/vectorize/inputs_are_not_gathered")
    result, remarks = run_pass(text, "vectorize", reqs=["even"], vector_bytes=16)
    assert result == parse_program(text)
    assert "x moves I by 2 elements" in str(remarks[0])


def test_blocks_inside_are_reached_and_left_once_done() -> None:
    result, _ = run_pass(matmul(32), "vectorize", reqs=["kernel"], vector_bytes=64)
    again, _ = run_pass(result, "vectorize", reqs=["kernel"], vector_bytes=64)
    assert again is result
    _, remarks = run_pass(CHAIN, "vectorize", reqs=["fused"], vector_bytes=64)
    assert [remark.block for remark in remarks] == ["sum", "square"]


def test_the_width_comes_from_the_machine() -> None:
    _, remarks = on("x86_avx512", matmul(32), "vectorize", reqs=["matmul"])
    assert "2 vectors of 16" in str(remarks[0])
    with pytest.raises(ConfigError, match="needs a hardware model"):
        run_pass(matmul(32), "vectorize", reqs=["matmul"])
    _, remarks = run_pass(matmul(32), "vectorize", reqs=["matmul"], vector_bytes=4)
    assert str(remarks[0]) == "missed: matmul: not vectorized: 4 bytes hold 1 elements"


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 40), st.sampled_from([8, 16, 32, 64]), st.booleans())
def test_any_width_keeps_the_meaning(size: int, width: int, only_tag: bool) -> None:
    run_pass(matmul(size), "vectorize", reqs=["matmul"], vector_bytes=width, only_tag=only_tag)


def test_no_loop_over_vectors_of_a_vast_range_that_constraints_leave_empty() -> None:
    result, _ = run_pass(source("passes/vectorize/vast"), "vectorize", reqs=["kernel"], vector_bytes=16)
    assert lines_of(result, "#kernel", "#vector=4", "-125000000000000000")[:2] == [
        "0: #kernel block [i:125000000000000004] ( // copy",
        "-125000000000000000 + i >= 0",
    ]
