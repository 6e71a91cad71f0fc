"""Rates by operation: bias and activation run on a matrix engine only where the model gives rates for them, or a note
tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.cost.report.report import simulation_json
from stripe.cost.report.schema import SimulationJson
from stripe.cost.time.simulate import simulate_program
from stripe.hw import HardwareModel, load_hardware
from stripe.ir import ConfigError, Program
from stripe.pipeline.files import load_pass_list
from stripe.pipeline.manager import PassManager
from stripe.tile import compile_tile

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY_NPU = load_hardware(str(EXAMPLES / "new_machine" / "tiny_npu.json.j2"))


def compiled(model: HardwareModel, *left_out: str) -> Program:
    """A convolution with bias and relu through the tutorial's pass list, without the entries `left_out`."""
    program = compile_tile((EXAMPLES / "conv_bias_relu.tile").read_text("utf-8"), "conv")
    entries = load_pass_list(
        EXAMPLES / "new_machine" / "tiny_npu_passes.json.j2", TINY_NPU.parameters
    ).entries
    return PassManager(tuple(entry for entry in entries if entry.name not in left_out), model).run(program)


def with_rates(rates: dict[str, float]) -> HardwareModel:
    mac = TINY_NPU.exec_units["MAC"].model_copy(update={"ops_per_cycle": rates})
    return TINY_NPU.model_copy(update={"exec_units": {**TINY_NPU.exec_units, "MAC": mac}})


def report(program: Program, model: HardwareModel) -> SimulationJson:
    return simulation_json(simulate_program(program, model), "test")


def useful(found: SimulationJson) -> dict[str, bool]:
    return {use.unit: use.useful_cycles > 0 for use in found.units}


def test_the_epilogue_of_the_tutorial_runs_on_the_vector_unit() -> None:
    found = report(compiled(TINY_NPU), TINY_NPU)
    (kernel,) = (statement for statement in found.statements if statement.kind == "kernel")
    assert kernel.name == "conv+kernel_1+kernel_2"
    assert useful(found) == {"MAC[0]": True, "VEC[0]": True, "DMA[0]": True}
    assert found.notes == ()


def test_an_operation_without_a_rate_is_refused() -> None:
    with pytest.raises(ConfigError, match="MAC has no rate for 'add' of fp32") as caught:
        compiled(TINY_NPU, "epilogue_on_vec")
    assert caught.value.hint == "it has mul; locate the block on another unit or add a rate"


def test_a_rate_for_all_operations_is_noted_on_a_matrix_engine() -> None:
    one_rate = with_rates({"all": 128})
    program = compiled(one_rate, "epilogue_on_vec")
    found = report(program, one_rate)
    assert useful(found) == {"MAC[0]": True, "VEC[0]": False, "DMA[0]": True}
    assert found.notes == tuple(
        f"the matrix engine MAC does {operation} at its rate for other operations; "
        "give it rates by operation if it cannot (conv+kernel_1+kernel_2)"
        for operation in ("add:fp32", "relu:fp32")  # of two blocks
    )
    assert report(program, with_rates({"mul": 128, "add": 8, "relu": 8})).notes == ()
