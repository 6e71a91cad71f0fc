"""A whole network goes through every shipped pass list on its default machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.cost.time.simulate import simulate_program
from stripe.pipeline.checks.structure import StructureCheck
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile

RESNET = Path(__file__).resolve().parents[1] / "programs" / "cost" / "resnet18.tile"


@pytest.mark.slow
@pytest.mark.parametrize("pass_list", ["dsp_conv", "slides", "cpu", "hexagon_chain", "minimal"])
def test_resnet18_goes_through_each_list(pass_list: str) -> None:
    entries, model = read_setup([("config", pass_list)], None, {}, "passes")
    program = compile_tile(RESNET.read_text("utf-8"), "resnet18")
    result = PassManager(tuple(entries), model, (StructureCheck(model),)).run(program)
    if model is None:
        assert pass_list == "minimal"  # for no machine
    else:
        assert result is not program
        found = simulate_program(result, model)
        size = {name: unit.size for name, unit in model.mem_units.items() if not unit.is_cache}
        held = {
            unit.partition("[")[0]: max(bytes_ for _, bytes_ in times) for unit, times in found.held.items()
        }
        assert found.cycles > 0
        assert all(held[name] <= size[name] for name in held if name in size)
