"""The passes that locate, localize, scalarize, prune and clean: what they do, and what they leave alone."""

from __future__ import annotations

import pytest

from stripe.ir import parse_program, print_program
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal
from tests.passes.programs import CHAIN, lines_of, matmul, run_pass
from tests.support.programs import load, source


def test_localize_moves_the_temporary_to_where_it_is_used() -> None:
    result, remarks = run_pass(CHAIN, "localize")
    assert lines_of(result, "none new") == [
        "#user none new@0x00000000<[0]> I[0, 0] fp32(6:4, 4:1)",
        "#user none new@0x00000000<[0]> O[0] fp32(6:1)",
        "#tmp none new@0x00000000<[0]> T[0] fp32(1:1)",
    ]
    assert "24 bytes become 4 in each of 6 points" in str(remarks[0])


def test_localize_does_not_report_twice_on_one_buffer() -> None:
    _, remarks = run_pass(CHAIN, "localize")
    assert [remark.kind.value for remark in remarks] == ["applied"]


def test_localize_gives_views_the_local_strides() -> None:
    text = source("passes/simple_passes/temporary_with_strides")
    result, _ = run_pass(text, "localize")
    assert "#tmp none new@0x00000000<[0]> T[0] fp32(2:1)" in lines_of(result, "none new")


def test_localize_leaves_a_buffer_with_two_users() -> None:
    result, remarks = run_pass(source("passes/simple_passes/temporary_with_two_users"), "localize")
    assert "2 statements use it" in str(remarks[0])
    assert [line for line in lines_of(result, "none new") if "T[0]" in line] == [
        "#tmp none new@0x00000000<[0]> T[0] fp32(6:1)"  # it moves from the entry to main, and no further
    ]


def test_localize_is_idempotent() -> None:
    once, _ = run_pass(CHAIN, "localize")
    assert run_pass(once, "localize")[0] is once


SCALARS = source("passes/simple_passes/scalars")


def test_scalarize_forwards_and_merges_by_the_aggregation() -> None:
    result, remarks = run_pass(SCALARS, "scalarize")
    assert lines_of(result, "load(", "store(", "add(") == [
        "0: $I = load(I)",
        "1[0]: $T_add = add($I, $I)",
        "2: O = store($T_add)",
    ]
    assert [str(remark) for remark in remarks] == [
        "applied: k: T became a scalar",
        "applied: k: U became a scalar",
    ]


def test_scalarize_reads_the_identity_before_the_first_store() -> None:
    text = source("passes/simple_passes/scalars_read_first")
    result, _ = run_pass(text, "scalarize")
    assert lines_of(result, "$") == [
        "0: $T_add = (fp32)0.0",
        "1: $T_add_0 = add($T_add, $T_add)",
        "2: $J = load(I)",
        "3: O = store($T_add_0)",
    ]


def test_scalarize_leaves_what_is_read_undefined() -> None:
    text = source("passes/simple_passes/scalars_read_undefined")
    _, remarks = run_pass(text, "scalarize", interpreted=False)
    assert "T stays a buffer: it is read before it is written" in str(remarks[0])


def test_scalarize_leaves_what_a_block_inside_uses() -> None:
    local, _ = run_pass(CHAIN, "localize")
    result, remarks = run_pass(local, "scalarize")
    assert result is local
    assert "T stays a buffer: a block inside or a special uses it" in str(remarks[0])


def test_prune_indexes_substitutes_single_values_and_drops_unused() -> None:
    result, remarks = run_pass(CHAIN, "prune_indexes")
    assert lines_of(result, "block [") == [
        "0: #program block [] ( // chain",
        "0: #main block [] ( // main",
        "0: #fused #kernel block [x:6] ( // sum+square",
        "0: #sum block [k:4] ( // sum",
        "1: #square block [] ( // square",
    ]
    assert "T[x]:assign" in print_program(result)
    assert {str(remark) for remark in remarks} == {
        "applied: sum+square: dropped one",
        "applied: sum: dropped x.o",
    }


UNUSED = source("passes/simple_passes/unused")  # fmt: skip


def test_prune_refinements_keeps_the_signature() -> None:
    result, remarks = run_pass(UNUSED, "prune_refinements")
    assert lines_of(result, "J[") == [
        "#user none new@0x00000000<[0]> J[0] fp32(6:1)",
        "in<[0]> J[0] fp32(6:1)",
    ]
    assert [str(remark) for remark in remarks] == [
        "applied: sum: dropped J",
        "applied: sum+square: dropped J",
    ]


def test_dce_drops_what_reaches_no_output() -> None:
    text = source("passes/simple_passes/dead_kernel")
    result, _ = run_pass(text, "dce")
    assert result == run_pass(CHAIN, "dce")[0]
    assert "D[" not in print_program(result)


def test_dce_keeps_an_output_that_nothing_writes() -> None:
    before = load("passes/simple_passes/unwritten_output")
    after, _ = run_pass(before, "dce")
    assert [ref.name for ref in after.outputs] == [ref.name for ref in before.outputs] == ["O", "P"]
    assert [ref.name for ref in after.inputs] == [ref.name for ref in before.inputs]


def test_dce_changes_nothing_where_all_is_live() -> None:
    program = parse_program(CHAIN)
    assert print_program(run_pass(program, "dce")[0]) == CHAIN


def test_locate_block_memory_and_inner() -> None:
    result, _ = run_pass(CHAIN, "locate_memory", reqs=["program"], loc={"name": "DRAM"})
    assert all("<DRAM[0]>" in line for line in lines_of(result, "none new", "in<", "out<", "inout<"))
    result, _ = run_pass(result, "locate_block", reqs=["kernel"], loc={"name": "DSP", "unit": 1})
    result, remarks = run_pass(
        result, "locate_inner_block", reqs=["kernel"], inner_reqs=["sum"], loc={"name": "CONV", "unit": "x.o"}
    )
    assert [line.split(" (")[0] for line in lines_of(result, "block<")] == [
        "0: #fused #kernel block<DSP[1]> [x:6, one:1]",
        "0: #sum block<CONV[x.o]> [k:4, x.o = x]",
    ]
    assert str(remarks[0]) == "applied: sum: located on CONV[x.o]"


def test_rewrite_locations_by_the_first_rule_that_fits() -> None:
    located, _ = run_pass(CHAIN, "locate_memory", reqs=["program"], loc={"name": "SRAM", "unit": 2})
    rules = [{"prefix": "SRAM[2]", "target": "CHIP[1]/SRAM[0]"}, {"prefix": "*", "target": "DRAM[0]"}]
    result, _ = run_pass(located, "rewrite_locations", rewrites=rules)
    assert all("<CHIP[1]/SRAM[0]>" in line for line in lines_of(result, "none new", "in<", "out<", "inout<"))


def test_package_wraps_and_passes_indices_through() -> None:
    result, _ = run_pass(CHAIN, "package", reqs=["sum"], package_set=["packed"])
    assert lines_of(result, "sum block", "packed block", "#sum ") == [
        "0: #packed block [x.o = x] ( // sum",
        "0: #sum block [k:4, x.o = x.o] ( // sum",
    ]


def test_reorder_indexes_by_stride_and_by_name() -> None:
    text = source("passes/simple_passes/sum_of_rows")
    assert "[x:6, k:4]" in print_program(run_pass(text, "reorder_indexes")[0])
    assert "[k:4, x:6]" in print_program(run_pass(text, "reorder_indexes", order=["x"])[0])


@pytest.mark.parametrize(
    ("by", "loops"),
    [("step", "m:6, k:5, n:32"), ("vector", "k:5, m:6, n:32"), ("tile", "k:5, m:6, n:32")],
)
def test_reorder_indexes_by_what_an_index_moves(by: str, loops: str) -> None:
    assert f"[{loops}]" in print_program(run_pass(matmul(32), "reorder_indexes", reqs=["matmul"], by=by)[0])


def test_reorder_indexes_keeps_a_sum_in_a_register_where_no_vectors_are() -> None:
    text = source("passes/simple_passes/matmul_reversed")
    assert "[m:6, n:32, k:5]" in print_program(run_pass(text, "reorder_indexes", by="vector")[0])


@pytest.mark.parametrize(
    ("threads", "outer", "inner"), [(4, "[k:1, x:3]", "[k:4, x:2, x.o = x]"), (2, "[k:1, x:2]", "[k:4, x:3]")]
)
def test_thread_splits_output_indices_alone(threads: int, outer: str, inner: str) -> None:
    text = source("passes/simple_passes/chain_without_passed_index")
    unfused = source("passes/simple_passes/sum_of_rows")
    result, remarks = run_pass(unfused, "thread", reqs=["kernel"], threads=threads)
    assert outer in print_program(result)
    assert inner.split(", x.o")[0] in print_program(result)
    assert f"of {threads} threads" in str(remarks[0])
    refused, remarks = run_pass(text, "thread", reqs=["sum"], threads=threads)
    assert "not threaded" in str(remarks[0])
    assert refused == parse_program(text)


NO_POINTS = source("passes/reduce_constraints/no_points")
ENTRY, VIEW = "    #tmp none new@0x00000000<[0]> T[0] fp32(4:1)\n", "      inout<[0]> T[0]:add fp32(4:1)\n"


@pytest.mark.parametrize("name", ["reduce_constraints", "unroll", "peel"])
@pytest.mark.parametrize(
    "text",
    [
        NO_POINTS,
        NO_POINTS.replace("block [] ( // main", "block [t:2] ( // main"),
        NO_POINTS.replace(VIEW, "      inout<[0]> T_part = T[2]:add fp32(2:1)\n" + VIEW),
        NO_POINTS.replace("#tmp", "#user"),
        NO_POINTS.replace(ENTRY, "").replace(VIEW, "      none new@0x00000000<[0]> T[0] fp32(4:1)\n"),
    ],
    ids=["temporary", "several points of main", "a name of a part", "input", "buffer of main"],
)
def test_sums_without_terms_begin_at_zero(name: str, text: str) -> None:
    """A block without points is all that says what a buffer begins with."""
    program = parse_program(text)
    after, _ = run_pass(program, name, reqs=["kernel"])
    assert isinstance(prove_equal(program, after), Equal)
