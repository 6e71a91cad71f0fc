"""The pass `cache`: what is transferred, and that the meaning stays."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Agg, Block, Program, print_block, print_program, rewrite_matching, with_entry
from stripe.rewrite.tile import tile_block
from tests.passes.programs import CHAIN, SRAM, STRIDED, lines_of, run_pass, tiled
from tests.support.programs import load, source


def block_of(program: Program, number: int) -> str:
    """The text of a statement of the first kernel."""
    kernel = next(program.main.blocks)
    inner = kernel.statements[number]
    assert isinstance(inner, Block)
    return print_block(inner)


def test_inputs_with_halo_are_transferred_once_and_only_where_they_exist() -> None:
    result, remarks = run_pass(tiled(x=4, ci=2), "cache", reqs=["conv"], dirs=["in"], **SRAM)
    assert block_of(result, 0) == (
        "0: #cache #cache_load block<DMA[0]> [d0:6, d1:2, x = x] ( // load_I\n"
        "    -1 + d0 + 4*x >= 0\n"
        "    10 - d0 - 4*x >= 0\n"
        "    in<DRAM[0]> I_raw[d0, d1] fp32(1:4, 1:1)\n"
        "    out<SRAM[0]> I[d0, d1]:assign fp32(1:2, 1:1)\n"
        ") {\n"
        "  0: $I = load(I_raw)\n"
        "  1: I = store($I)\n"
        "}\n"
    )
    assert [str(remark) for remark in remarks] == [
        "applied: conv: I: 48 bytes in SRAM[0], 6x2",
        "applied: conv: K: 48 bytes in SRAM[0], 3x2x2",
    ]


def test_an_aggregated_output_is_merged_outwards() -> None:
    result, _ = run_pass(tiled(x=4, ci=2), "cache", reqs=["conv"], dirs=["out"], **SRAM)
    assert "out<DRAM[0]> O_raw[d0, d1]:add" in block_of(result, 1)
    assert "9 - d0 - 4*x >= 0" in block_of(result, 1)


def test_two_levels_pass_outer_indices_down() -> None:
    outer = tiled(x=4)
    inner = with_entry(outer, rewrite_matching(outer.entry, ["conv"], tile_inside))
    near, _ = run_pass(inner, "cache", reqs=["conv"], **SRAM)
    nearest, _ = run_pass(near, "cache", reqs=["inner"], mem_loc={"name": "REGS"})
    assert lines_of(nearest, "load_I", "REGS[0]> I[0") == [
        "0: #cache #cache_load block<DMA[0]> [d0:6, d1:4, x = x] ( // load_I",
        "#cached none new@0x00000000<REGS[0]> I[0, 0] fp32(4:4, 4:1)",
        "0: #cache #cache_load block [d0:4, d1:4, x = x, x.o = x.o] ( // load_I",
    ]


def tile_inside(block: Block) -> Block:
    """Tiles the block inside once more and tags it."""
    (inner,) = block.blocks
    again = tile_block(inner, {"x": 2})
    return replace(block, statements=(replace(again, tags=again.tags.add("inner")),))


def test_only_written_elements_of_an_assigned_output_go_back() -> None:
    result, _ = run_pass(tiled(STRIDED, "even", x=4), "cache", reqs=["even"], **SRAM)
    store = block_of(result, 2).splitlines()
    assert store[0] == "0: #cache #cache_store block<DMA[0]> [d0:7, x = x] ( // store_O"
    assert [line for line in store if "floor" in line]


def test_refs_pick_views() -> None:
    result, _ = run_pass(tiled(x=4, ci=2), "cache", reqs=["conv"], refs=["K"], **SRAM)
    assert lines_of(result, "I[-1 + 4*x, 2*ci] fp32(6:4, 2:1)")


def test_ref_picks_what_a_tagged_block_inside_uses() -> None:
    result, _ = run_pass(CHAIN, "cache", reqs=["fused"], ref="sum", dirs=["in"], **SRAM)
    assert lines_of(result, "block<DMA[0]>") == [
        "0: #cache #cache_load block<DMA[0]> [d0:1, d1:4] ( // load_I"
    ]


def test_what_is_read_before_it_is_written_is_declined() -> None:
    text = source("passes/cache/read_before_written")
    packed, _ = run_pass(text, "package", reqs=["odd"], package_set=["pack"], interpreted=False)
    result, remarks = run_pass(packed, "cache", reqs=["pack"], dirs=["inout"], interpreted=False)
    assert result is packed
    assert "O is not cached: it is read before it is written inside" in str(remarks[0])


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 10), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2))
def test_any_tiling_keeps_its_meaning(x: int, ci: int, k: int, co: int) -> None:
    run_pass(tiled(x=x, ci=ci, k=k, co=co), "cache", reqs=["conv"], **SRAM)


def test_elements_that_are_merged_in_two_ways_are_declined() -> None:
    """A copy is stored in one way; where all that is merged was assigned before inside, it is assigned."""
    text = source("passes/cache/mixed")
    _, remarks = run_pass(text, "cache", reqs=["k"])
    assert "O is not cached: some elements are merged by add inside, others in another way" in str(remarks)
    whole = text.replace("block [] ( // first", "block [i:2] ( // first").replace(
        "out<[0]> O[0]:assign fp32(1:1)", "out<[0]> O[i]:assign fp32(1:1)"
    )
    result, remarks = run_pass(whole, "cache", reqs=["k"])
    assert "O: 8 bytes in a copy" in str(remarks)
    store = next(block for block in result.main.blocks if "k" in block.tags).statements[-1]
    assert isinstance(store, Block)
    assert store.outputs[0].agg is Agg.ASSIGN


def test_sums_that_something_else_adds_to_are_not_read_from_a_copy() -> None:
    text = source("passes/cache/partial_sum")
    _, remarks = run_pass(text, "cache", reqs=["k"])
    assert "O is not cached: it is read inside, where a copy lacks the values that add merges with" in str(
        remarks
    )
    # without the earlier assignment, in a temporary, the copy holds the sum
    _, remarks = run_pass(source("passes/cache/whole_sum"), "cache", reqs=["k"])
    assert "O: 8 bytes in a copy" in str(remarks)


def test_elements_that_nothing_writes_are_not_copied() -> None:
    result, _ = run_pass(source("passes/cache/gaps"), "cache", reqs=["k"])
    assert "load_T" in print_program(result)


def test_an_input_that_is_overwritten_before_it_is_read_stays_one() -> None:
    program = load("passes/cache/input_overwritten")
    result, _ = run_pass(program, "cache", reqs=["main"])
    assert result != program
    assert [ref.name for ref in result.inputs] == ["P"]
