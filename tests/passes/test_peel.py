"""The pass `peel`: interiors without constraints, edges, and the same meaning."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import parse_program, print_program
from tests.passes.programs import CHAIN, CONV, lines_of, run_pass, tiled
from tests.support.programs import source


def test_a_halo_is_peeled_into_interior_and_two_edges() -> None:
    result, remarks = run_pass(CONV, "peel", reqs=["conv"])
    assert lines_of(result, "#conv", ">= 0", " I[")[2:] == [
        "0: #conv #interior #kernel block [ci:4, co:2, k:3, x:8] ( // conv",
        "in<DRAM[0]> I[k + x, ci] fp32(1:4, 1:1)",
        "1: #conv #edge #kernel block [ci:4, co:2, k:2, x:1] ( // conv",
        "in<DRAM[0]> I[k + x, ci] fp32(1:4, 1:1)",
        "2: #conv #edge #kernel block [ci:4, co:2, k:2, x:1] ( // conv",
        "in<DRAM[0]> I[8 + k + x, ci] fp32(1:4, 1:1)",
    ]
    assert str(remarks[0]) == "applied: conv: interior x in 1..8: 80.0 % of the points; 2 edges"


def test_uneven_tiles_and_halos_leave_no_test_in_the_interior() -> None:
    result, _ = run_pass(tiled(x=3), "peel", reqs=["conv"])
    assert [line.split("block ")[1] for line in lines_of(result, "#interior", "#edge")] == [
        "[ci:1, co:1, k:1, x:2] ( // conv",
        "[ci:1, co:1, k:1, x:1] ( // conv",
        "[ci:1, co:1, k:1, x:1] ( // conv",
    ]
    text = print_program(result)
    interior = text[text.index("#interior") : text.index("#edge")]
    assert ">= 0" not in interior


def test_dependences_follow_the_parts() -> None:
    text = source("passes/peel/dependences_follow_the_parts")
    after = """    1[0]: #kernel block [x:10] ( // after
        in<DRAM[0]> I[x, 0] fp32(1:4, 1:1)
        out<DRAM[0]> P[x]:assign fp32(1:1)
    ) {
      0: $I = load(I)
      1: P = store($I)
    }
"""
    text = text.replace("    }\n  }\n}\n", "    }\n" + after + "  }\n}\n")
    text = text.replace(
        "(10:2, 2:1)\n) {", "(10:2, 2:1)\n    #user none new@0x00000000<DRAM[0]> P[0] fp32(10:1)\n) {"
    )
    text = text.replace(
        "assign fp32(10:2, 2:1)\n  )",
        "assign fp32(10:2, 2:1)\n      out<DRAM[0]> P[0]:assign fp32(10:1)\n  )",
    )
    result, _ = run_pass(text, "peel", reqs=["conv"])
    assert lines_of(result, "// after") == ["3[0, 1, 2]: #kernel block [x:10] ( // after"]


def test_declines_and_leaves_alone() -> None:
    program = parse_program(CHAIN)
    assert run_pass(program, "peel", reqs=["fused"])[0] is program
    tight = source("passes/peel/declines_and_leaves_alone")
    result, remarks = run_pass(tight, "peel", reqs=["conv"])
    assert "k is not peeled: constraints matter for each of its 3 values" in str(remarks[0])
    assert result == parse_program(tight)
    _, remarks = run_pass(CONV, "peel", reqs=["conv"], max_blocks=2)
    assert "more than 2 blocks" in str(remarks[0])


def test_tags_are_options() -> None:
    result, _ = run_pass(CONV, "peel", reqs=["conv"], interior_set=["mid"], edge_set=["rim"])
    assert len(lines_of(result, "#mid")) == 1
    assert len(lines_of(result, "#rim")) == 2


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 10), st.integers(1, 4), st.integers(1, 3), st.integers(-3, 3), st.integers(5, 14))
def test_any_tiling_keeps_its_meaning(x: int, ci: int, k: int, low: int, high: int) -> None:
    text = CONV.replace(
        "        10 - k - x >= 0\n", f"        10 - k - x >= 0\n        {high} - x - ci - k >= 0\n"
    )
    text = text.replace(
        "        -1 + k + x >= 0\n", f"        -1 + k + x >= 0\n        {low} + 2*x - ci >= 0\n"
    )
    run_pass(tiled(text, x=x, ci=ci, k=k), "peel", reqs=["conv"])
