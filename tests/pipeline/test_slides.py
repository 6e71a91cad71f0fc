"""The slides' hardware model and optimizer configuration, whole: from Tile to placed code that computes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stripe.config.files import find_file
from stripe.exec.compile import compile_program
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.hw.load import load_hardware
from stripe.ir import Program, parse_program, print_program
from stripe.passes.base import PassContext, Remark
from stripe.pipeline.files import load_pass_list
from stripe.pipeline.manager import PassManager
from stripe.tile import compile_tile
from stripe.verify.machine.schedule import check_placement, check_schedule
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal

SLIDES = find_file("slides", "optconfigs")
EXAMPLES = Path(__file__).parents[2] / "examples"


def through_slides(name: str) -> tuple[Program, Program, list[str]]:
    """An example before and after the pass list `slides`, with the remarks."""
    path = EXAMPLES / f"{name}.tile"
    before = compile_tile(path.read_text(encoding="utf-8"), str(path), {})
    hardware = load_hardware("dsp_conv", {})
    remarks: list[Remark] = []
    after = before
    for entry in load_pass_list(SLIDES, hardware.parameters).entries:
        after = entry.pass_.run(after, PassContext(hardware, remarks.append))
    assert check_schedule(after, hardware) == []
    assert check_placement(after, hardware) == []
    assert parse_program(print_program(after)) == after
    return before, after, [str(remark) for remark in remarks]


def test_the_slides_layer_is_tiled_fused_streamed_and_proved() -> None:
    before, after, remarks = through_slides("slides_layer")
    assert isinstance(prove_equal(before, after), Equal)
    assert any("1 streamed" in remark for remark in remarks)
    text = print_program(after)
    assert (
        "#CONV #kernel #pipeline_depth=2 block<CONV[0]> [x:32, y:32] ( // kernel_0+kernel_1+kernel_2" in text
    )
    assert "#cache #cache_load block<DMA[0]>" in text
    assert "#CONV_inner #stencil block" in text


@pytest.mark.parametrize("name", ["network", "conv_bias_relu", "max_pool", "matmul", "softmax"])
def test_networks_run_from_their_places(name: str) -> None:
    before, after, _ = through_slides(name)
    inputs = random_inputs(before, 5)
    expected = interpret(before, inputs)
    for found in (interpret(after, inputs, arenas=True), compile_program(after).run(inputs)):
        for output, array in expected.items():
            np.testing.assert_allclose(found[output], array, rtol=1e-5, err_msg=output)


@pytest.mark.long
def test_banks_and_sizes_are_parameters() -> None:
    """A machine with one small SRAM: the same list, other tiles."""
    path = EXAMPLES / "network.tile"
    before = compile_tile(path.read_text(encoding="utf-8"), str(path), {})
    hardware = load_hardware("dsp_conv", {"NUM_SRAM": 2, "SRAM_SIZE_KIB": 32, "NUM_CONV": 1, "NUM_DSP": 1})
    after = PassManager(load_pass_list(SLIDES, hardware.parameters).entries, hardware).run(before)
    assert check_schedule(after, hardware) == []
    inputs = random_inputs(before, 7)
    assert np.array_equal(interpret(before, inputs)["P"], interpret(after, inputs)["P"])
