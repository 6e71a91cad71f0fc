"""The pass `schedule`: residency, streaming, eviction, order; what it makes computes the same, in arenas too."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from stripe.exec.interp import interpret
from stripe.hw.load import load_hardware
from stripe.ir import ConfigError, Program, Stage, parse_program, print_program, verify_structural, walk
from stripe.passes.base import PassContext, Remark
from stripe.passes.registry import find_pass
from stripe.passes.schedule.banks import Banks
from stripe.passes.schedule.time import UnitLoad, list_schedule
from stripe.passes.schedule.uses import tile_bytes
from stripe.rewrite.tile import tile_block
from tests.passes.programs import assert_same_results, chain, lines_of, run_pass
from tests.support.compiled import EXAMPLES, lowered
from tests.support.programs import source

NEAR: dict[str, Any] = {"mem_loc": {"name": "SRAM"}, "xfer_loc": {"name": "DMA"}}


def scheduled(text: str, *, hardware: bool = False, **options: Any) -> tuple[Program, list[Remark]]:
    """Schedules, checks the stage, runs before and after, and again with every near buffer in its place."""
    program = parse_program(text)
    remarks: list[Remark] = []
    model = load_hardware("dsp_conv", {}) if hardware else None
    instance = find_pass("schedule").model_validate(NEAR | options)
    result = instance.run(program, PassContext(model, remarks.append))
    assert verify_structural(result, Stage.SCHEDULED) == [], print_program(result)
    assert parse_program(print_program(result)) == result
    assert_same_results(program, result)
    inputs = {
        r.name: (np.arange(r.elements).reshape(r.sizes) % 7 - 3).astype(r.dtype.numpy())
        for r in result.inputs
    }
    plain, placed = interpret(result, inputs), interpret(result, inputs, arenas=True)
    assert all(np.array_equal(plain[name], placed[name]) for name in plain)
    return result, remarks


def heads(program: Program) -> list[str]:
    """Number with dependences, and name, of each statement of main."""
    return [
        line.strip().split(": ")[0] + " " + line.split("// ")[1]
        for line in print_program(program).splitlines()
        if line.startswith("    ") and line[4].isdigit()
    ]


def test_what_fits_becomes_resident_and_temporaries_never_leave() -> None:
    result, remarks = scheduled(chain([64, 64]), mem_KiB=1, num_banks=1)
    assert heads(result) == ["0 swap_in_I^0", "1[0] k0", "2[1] k1", "3[2] k2", "4[3] swap_out_O^0"]
    assert not lines_of(result, "#tmp")
    assert str(remarks[0]) == "applied: main: 5 statements: 1 swap-ins, 1 swap-outs, 0 streamed"
    assert "above the lower bound" in str(remarks[1])


def test_memory_is_reused_and_the_new_owner_waits() -> None:
    result, _ = scheduled(chain([400, 400, 400, 400]), mem_KiB=1, num_banks=1)
    addresses = [
        line.split("new@")[1].split("<")[0] for line in lines_of(result, "none new") if "> T" in line
    ]
    assert len(set(addresses)) < len(addresses)


def test_what_is_needed_again_last_is_evicted_and_comes_back() -> None:
    text = source("passes/schedule/needed_again_last")
    result, _ = scheduled(text, mem_KiB=1, num_banks=1)
    names = " ".join(heads(result))
    assert "swap_out_T0^0" in names
    assert "swap_in_T0^1" in names


def test_an_operand_that_is_resident_is_stored_and_streamed_where_nothing_else_fits() -> None:
    result, _ = scheduled(chain([600, 600]), mem_KiB=1, num_banks=1)
    assert any("swap_out_T0^0" in head for head in heads(result))
    assert lines_of(result, "#buffers=2")


TILED = source("passes/schedule/tiled")


def test_what_does_not_fit_is_tiled_and_streamed_through_several_buffers() -> None:
    result, remarks = scheduled(TILED, mem_KiB=1, num_banks=1)
    assert "tiled into 16 tiles to stream: 8192 bytes, 1024 fit" in str(remarks[0])
    assert lines_of(result, "#buffers=2") == [
        "#buffers=2 #cached #placed none new@0x00000000<SRAM[0]> I[0] i8(256:1)",
        "#buffers=2 #cached #placed none new@0x00000200<SRAM[0]> O[0] i8(256:1)",
    ]
    assert "#pipeline_depth=2" in print_program(result)
    single, _ = scheduled(TILED, mem_KiB=1, num_banks=1, pipeline_depth=1)
    assert "#buffers" not in print_program(single)


def test_what_cannot_fit_is_an_error_with_the_sizes() -> None:
    text = source("passes/schedule/what_cannot_fit_is_an_error_with_the_sizes")
    with pytest.raises(ConfigError, match="k0 does not fit into the near memory: 1 banks of 5 bytes"):
        scheduled(text, mem_KiB=5 / 1024, num_banks=1, alignment=4, pipeline_depth=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the size of the near memory is not known"),
        ({"mem_KiB": 0.001, "alignment": 16}, "alignment 16 is more than"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=message):
        scheduled(chain([64]), **options)


def test_the_hardware_model_gives_sizes_and_is_checked() -> None:
    result, _ = scheduled(chain([64, 64]), hardware=True)
    assert lines_of(result, "<SRAM[")
    with pytest.raises(ConfigError, match="no unit 'SRM'"):
        scheduled(chain([64]), hardware=True, mem_loc={"name": "SRM"})
    with pytest.raises(ConfigError, match="are more than the model's"):
        scheduled(chain([64]), hardware=True, num_banks=1000)


def test_it_runs_once() -> None:
    result, _ = scheduled(chain([64]), mem_KiB=1, num_banks=1)
    instance = find_pass("schedule").model_validate(NEAR | {"mem_KiB": 1})
    assert instance.run(result, PassContext()) is result


def test_banks_take_the_smallest_hole_and_avoid_what_was_just_given_back() -> None:
    banks = Banks("SRAM", 1, 100, 4)
    first, second = banks.allocate(40, [0]), banks.allocate(20, [0])
    assert first is not None
    assert second is not None
    banks.release(first)
    third = banks.allocate(30, [0])
    assert third is not None
    assert third.address == 60
    assert banks.allocate(39, [0]) is not None
    assert banks.allocate(50, [0]) is None


def test_list_scheduling_overlaps_transfers_with_computing() -> None:
    loads = [UnitLoad(("DMA",), 10), UnitLoad(("CONV",), 20), UnitLoad(("DMA",), 10), UnitLoad(("CONV",), 20)]
    table = list_schedule(loads, [(), (0,), (), (1, 2)])
    assert table.starts == (0, 10, 10, 30)
    assert table.makespan == 50
    assert table.lower_bound == 50


def test_what_tasks_share_bounds_the_time_of_a_schedule() -> None:
    """Two units at the same time, both of which need the same ports for nine of their ten cycles."""
    ports = (("ports of SRAM[0]", 9.0),)
    table = list_schedule([UnitLoad(("CONV[0]",), 10, ports), UnitLoad(("CONV[1]",), 10, ports)], [(), ()])
    assert table.makespan == 10
    assert table.busiest_shared == ("ports of SRAM[0]", 18.0)
    assert table.estimate == table.lower_bound == 18


@settings(deadline=None, max_examples=30)
@example(sizes=[253, 257], banks=1, depth=1)  # the views of one tile fit, the buffers behind them do not
@given(
    st.lists(st.integers(4, 300), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_any_chain_keeps_its_meaning(sizes: list[int], banks: int, depth: int) -> None:
    try:
        scheduled(chain(sizes), mem_KiB=0.5, num_banks=banks, pipeline_depth=depth)
    except ConfigError as error:
        # A refusal is no wrong meaning; see the test below for the known one.
        assume("does not fit into the near memory" not in str(error))
        raise


def test_a_chain_whose_copies_would_lie_apart_is_streamed() -> None:
    """No gap between whole copies is large enough for the next one."""
    _, remarks = scheduled(chain([4, 237, 265]), mem_KiB=0.5, num_banks=1, pipeline_depth=1)
    assert any("k2: tiled into 16 tiles to stream" in str(remark) for remark in remarks)


def test_sums_over_what_the_outside_holds_are_not_scheduled() -> None:
    """Copies of them would begin at the identity of the sum."""
    options = {"reqs": ["k"], "mem_loc": {"name": "SRAM"}, "xfer_loc": {"name": "DMA"}, "mem_KiB": 1}
    result, remarks = run_pass(source("passes/cache/mixed"), "schedule", **options)
    assert result.stage < Stage.SCHEDULED
    assert "not scheduled: O is merged with what it held before, by add" in str(remarks)


def test_bytes_of_tiles_are_those_of_the_tiles_made() -> None:
    draw, checked = Random(0), 0
    for path in EXAMPLES:
        if path.stem not in ("conv_strided", "conv_transposed", "conv_dilated", "attention"):
            continue
        for _, block in walk(lowered(path).entry, ()):
            for _ in range(3 if block.iterated else 0):
                sizes = {index.name: draw.randint(1, index.range) for index in block.iterated}
                made = tile_block(block, sizes).refinements
                found = [ref.elements * ref.dtype.bytes for ref in made if not ref.is_alloc]
                assert tile_bytes(block, sizes) == found
                checked += 1
    assert checked > 20
