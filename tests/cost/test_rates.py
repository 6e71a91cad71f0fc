"""Rates by operation: bias and activation run on a matrix engine only where the model gives rates for them, or a note
tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stripe.cost.counts.operations import point_operations
from stripe.cost.report.report import simulation_json
from stripe.cost.report.schema import SimulationJson
from stripe.cost.time.simulate import simulate_program
from stripe.hw import HardwareModel, load_hardware
from stripe.ir import ConfigError, Program
from stripe.passes.base import PassContext
from stripe.passes.fusion.fusion import Fusion
from stripe.passes.registry import find_pass
from stripe.pipeline.files import load_pass_list
from stripe.pipeline.manager import PassManager
from stripe.tile import compile_tile

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY_NPU = load_hardware(str(EXAMPLES / "new_machine" / "tiny_npu.json.j2"))


def compiled(model: HardwareModel, *left_out: str, objective: str = "latency") -> Program:
    """A convolution with bias and relu through the tutorial's pass list, without the entries `left_out`, fused where
    that is better by `objective`."""
    program = compile_tile((EXAMPLES / "conv_bias_relu.tile").read_text("utf-8"), "conv")
    entries = load_pass_list(
        EXAMPLES / "new_machine" / "tiny_npu_passes.json.j2", TINY_NPU.parameters
    ).entries
    chosen = [
        replace(entry, pass_=entry.pass_.model_copy(update={"objective": objective}))
        if isinstance(entry.pass_, Fusion)
        else entry
        for entry in entries
        if entry.name not in left_out
    ]
    return PassManager(tuple(chosen), model).run(program)


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


@pytest.mark.long
def test_an_operation_without_a_rate_is_refused() -> None:
    with pytest.raises(ConfigError, match="MAC has no rate for 'add' of fp32") as caught:
        compiled(TINY_NPU, "epilogue_on_vec", objective="none")
    assert caught.value.hint == "it has mul; locate the block on another unit or add a rate"


def test_fusion_leaves_an_operation_to_the_unit_that_has_a_rate_for_it() -> None:
    found = report(compiled(TINY_NPU, "epilogue_on_vec"), TINY_NPU)
    assert useful(found) == {"MAC[0]": True, "VEC[0]": True, "DMA[0]": True}


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


@pytest.mark.parametrize(
    ("dtypes", "statement", "expected"),
    [
        (("i8", "i8"), "O[m, n : M, N]: i32 = +(A[m, k] * B[k, n]);", {"mul:i8": 60, "add:i32": 60}),
        (("u8", "i8"), "O[m, n : M, N]: i32 = +(A[m, k] * B[k, n]);", {"mul:u8": 60, "add:i32": 60}),
        (("fp16", "fp16"), "O[m, n : M, N]: fp32 = +(A[m, k] * B[k, n]);", {"mul:fp16": 60, "add:fp32": 60}),
        # one operand is as wide as the sum
        (
            ("i8", "i32"),
            "O[m, n : M, N] = +(A[m, k] * B[k, n]);",
            {"cast:i8": 60, "mul:i32": 60, "add:i32": 60},
        ),
        # no multiply-accumulate
        (("i8", "i8"), "O[m : M]: i32 = +(A[m, k]);", {"cast:i8": 15, "add:i32": 15}),
        (
            ("i8", "i8"),
            "O[m, n : M, N]: i32 = >(A[m, k] * B[k, n]);",
            {"cast:i8": 120, "mul:i32": 60, "max:i32": 60},
        ),
    ],
)
def test_products_count_in_the_dtype_of_their_operands(
    dtypes: tuple[str, str], statement: str, expected: dict[str, int]
) -> None:
    text = f"function (A[M=3, K=5]: {dtypes[0]}, B[K, N=4]: {dtypes[1]}) -> (O) {{ {statement} }}"
    (kernel,) = compile_tile(text).main.blocks
    assert point_operations(kernel).times(kernel.points).by_name == dict(sorted(expected.items()))


def test_operands_of_eight_bits_run_at_their_rate() -> None:
    """The first TPU has rates for multipliers of 8 bits alone; energies are those of `mul:i8` and `add:i32`."""
    text = "function (A[M=256, K=256]: i8, B[K, N=256]: i8) -> (O) { O[m, n : M, N]: i32 = +(A[m, k] * B[k, n]); }"
    machine = load_hardware("systolic")
    passes = [
        ("locate_block", {"reqs": ["contraction"], "loc": {"name": "MXU"}}),
        ("tensorize", {"reqs": ["contraction"]}),
    ]
    program = compile_tile(text)
    for name, options in passes:
        program = find_pass(name).model_validate(options).run(program, PassContext(machine))
    found = report(program, machine)
    assert found.macs == 256**3
    assert found.statements[0].energy_pJ == pytest.approx(256**3 * (0.2 + 0.1))
