"""Prices of decisions are the simulated times of the finished program, or a remark tells the difference."""

from __future__ import annotations

import pytest

from stripe.passes.base import Remark
from stripe.pipeline.instrument import Instrument, PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.predictions import Prediction, differences, predictions
from stripe.pipeline.setup import read_setup
from tests.cost.test_chains import EXAMPLES, example

NAMES = tuple(sorted(path.stem for path in EXAMPLES.glob("*.tile")))
SEVERAL = {"attention", "network"}
"""Programs whose kernels pass tensors on: a schedule keeps these in the near memory, where a price moves them."""
SMALL, WIDE = {"SRAM_SIZE_KIB": 16, "NUM_CONV": 1}, {"DRAM_BYTES": 128, "NUM_SRAM": 1}
LISTS = (
    *((pass_list, {}) for pass_list in ("dsp_conv", "slides", "new_machine/tiny_npu_passes.json.j2")),
    *(
        pytest.param(pass_list, parameters, marks=pytest.mark.slow)
        for pass_list in ("dsp_conv", "slides")
        for parameters in (SMALL, WIDE)
    ),
)
"""The pass lists that ask for prices, each on machines of its own."""


class Predictions(Instrument):
    def __init__(self) -> None:
        self.found: dict[str, Prediction] = {}

    def remark(self, entry: PassEntry, remark: Remark) -> None:
        self.found.update((each.statement, each) for each in predictions(entry, remark))


@pytest.mark.parametrize(("pass_list", "parameters"), LISTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_price_is_the_time_in_the_program(name: str, pass_list: str, parameters: dict[str, int]) -> None:
    file = str(EXAMPLES / pass_list) if pass_list.endswith(".j2") else pass_list
    entries, model = read_setup([("config", file)], None, dict(parameters), "passes")
    assert model is not None
    priced = Predictions()
    program = PassManager(tuple(entries), model, (priced,)).run(example(name))
    remarks = [str(remark) for _, remark in differences(priced.found, program, model)]
    if pass_list != "slides" or name not in SEVERAL:
        assert remarks == []
    else:
        assert all("cycles in the program, priced" in remark for remark in remarks)
