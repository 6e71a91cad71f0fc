"""The pass `unroll`."""

from __future__ import annotations

from stripe.ir import parse_program, print_program
from tests.passes.programs import CHAIN, lines_of, run_pass
from tests.support.programs import load, source

SUM = source("passes/unroll/sum")


def test_unroll_all() -> None:
    result, remarks = run_pass(source("passes/unroll/unroll_all"), "unroll", reqs=["kernel"], max_points=12)
    assert str(remarks[0]) == "applied: k: x, y unrolled into 12 copies"
    assert len(lines_of(result, "= load(")) == 12
    assert "I_x2_y3 = I[2, 3]" in print_program(result)


def test_unroll_one_index_guards_copies_whose_constraints_remain() -> None:
    result, _ = run_pass(SUM, "unroll", reqs=["kernel"], expand_idx="#lane")
    assert lines_of(result, "block [", ">= 0", "I_x1") == [
        "0: #program block [] ( // p",
        "0: #main block [] ( // main",
        "0: #kernel block [y:4] ( // k",
        "in<[0]> I_x1 = I[1, y] fp32(1:4, 1:1)",
        "0: block [y = y] ( // k",
        "2 - y >= 0",
        "1: block [y = y] ( // k",
        "1 - y >= 0",
        "in<[0]> I = I_x1[0, 0] fp32(1:4, 1:1)",
        "2: block [y = y] ( // k",
        "-y >= 0",
    ]


def test_unroll_drops_excluded_points_and_renames() -> None:
    result, _ = run_pass(SUM, "unroll", reqs=["kernel"])
    assert lines_of(result, "load(", "store(") == [
        "0: $i = load(I_x0_y0)",
        "1[0]: O_x0_y0 = store($i)",
        "2: $i_x0_y1 = load(I_x0_y1)",
        "3[2]: O_x0_y1 = store($i_x0_y1)",
        "4: $i_x0_y2 = load(I_x0_y2)",
        "5[4]: O_x0_y2 = store($i_x0_y2)",
        "6: $i_x1_y0 = load(I_x1_y0)",
        "7[6]: O_x1_y0 = store($i_x1_y0)",
        "8: $i_x1_y1 = load(I_x1_y1)",
        "9[8]: O_x1_y1 = store($i_x1_y1)",
        "10: $i_x2_y0 = load(I_x2_y0)",
        "11[10]: O_x2_y0 = store($i_x2_y0)",
    ]


def test_unroll_copies_blocks_inside_and_local_buffers() -> None:
    local, _ = run_pass(CHAIN, "localize")
    result, _ = run_pass(local, "unroll", reqs=["fused"], expand_idx="x")
    assert len([line for line in lines_of(result, "none new") if "#tmp" in line]) == 6
    assert "[k:4, x.o = 5]" in print_program(result)


def test_unroll_declines() -> None:
    result, remarks = run_pass(SUM, "unroll", reqs=["kernel"], max_points=4)
    assert result == parse_program(SUM)
    assert str(remarks[0]) == "missed: k: not unrolled: 12 points, at most 4 are allowed"
    _, remarks = run_pass(SUM, "unroll", reqs=["kernel"], expand_idx="z")
    assert str(remarks[0]) == "missed: k: not unrolled: no index 'z'"


def test_views_keep_the_tensors_that_callers_pass() -> None:
    program = load("passes/unroll/idle_input")
    after, _ = run_pass(program, "unroll", reqs=["k"], make_views=True)
    assert [ref.name for ref in after.inputs] == [ref.name for ref in program.inputs] == ["X", "Y"]
