"""Prices of decisions are the simulated times of the finished program, or a remark tells the difference."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from stripe.hw.schema import HardwareModel
from stripe.ir import Program
from stripe.passes.base import Remark
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.predictions import differences, predictions
from stripe.pipeline.setup import read_setup
from tests.support.compiled import EXAMPLES, compiled, lowered, of

SEVERAL = {"attention", "network"}
"""Programs whose kernels pass tensors on: a schedule keeps these in the near memory, where a price moves them."""
SMALL, WIDE = {"SRAM_SIZE_KIB": 16, "NUM_CONV": 1}, {"DRAM_BYTES": 128, "NUM_SRAM": 1}
FUSED_LATER = ("conv_bias_relu", "slides", WIDE)
"""A price fuses inside of tiles without asking for prices, the list itself asks: it then fuses less, 2.1 % quicker."""
LISTS = ("dsp_conv", "slides", str(EXAMPLES[0].parent / "new_machine" / "tiny_npu_passes.json.j2"))
"""The pass lists that ask for prices, each for a machine of its own."""


def require_times(
    example: Path,
    pass_list: str,
    told: Iterable[tuple[PassEntry, Remark]],
    program: Program,
    model: HardwareModel,
) -> None:
    """The prices that remarks told are the times in the program that came out, or the list leaves them open."""
    priced = {each.statement: each for entry, remark in told for each in predictions(entry, remark)}
    remarks = [str(remark) for _, remark in differences(priced, program, model)]
    if pass_list != "slides" or example.stem not in SEVERAL:
        assert remarks == []
    else:
        assert all("cycles in the program, priced" in remark for remark in remarks)


@pytest.mark.parametrize(
    ("example", "pass_list"), [of(example, name) for example in EXAMPLES for name in LISTS]
)
def test_a_price_is_the_time_in_the_program(example: Path, pass_list: str) -> None:
    run = compiled(example, pass_list)
    assert run.hardware is not None
    require_times(example, pass_list, run.remarks, run.program, run.hardware)


class Remarks(Instrument):
    def __init__(self) -> None:
        self.found: list[tuple[PassEntry, Remark]] = []

    def remark(self, entry: PassEntry, remark: Remark) -> None:
        self.found.append((entry, remark))


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [SMALL, WIDE], ids=["small", "wide"])
@pytest.mark.parametrize(("example", "pass_list"), [of(e, name) for e in EXAMPLES for name in LISTS[:2]])
def test_a_price_is_the_time_on_another_machine(
    example: Path, pass_list: str, parameters: dict[str, int]
) -> None:
    entries, model = read_setup([("config", pass_list)], None, dict(parameters), "passes")
    assert model is not None
    program = PassManager(tuple(entries), model, (told := Remarks(),)).run(lowered(example))
    if (example.stem, pass_list, parameters) == FUSED_LATER:
        priced = {each.statement: each for entry, remark in told.found for each in predictions(entry, remark)}
        (said,) = (str(remark) for _, remark in differences(priced, program, model))
        assert "cycles in the program, priced" in said
    else:
        require_times(example, pass_list, told.found, program, model)
