"""Arrays: operands counted by folds, either factor first, the quickest unit, row-stationary dataflow."""

from __future__ import annotations

import pytest

from stripe.cost.time.arrays import systolic_cycles
from stripe.cost.time.machine import Machine
from stripe.cost.time.statement import StatementCost
from stripe.cost.time.workload import CostModel
from stripe.hw import load_hardware
from stripe.hw.engines import SystolicArray
from stripe.hw.schema import HardwareModel
from stripe.ir import Nest
from stripe.tile import compile_tile
from tools.fidelity.arrays import EYERISS, eyeriss_figures


def machine(rows: int, columns: int, dataflow: str, clock: float = 1000.0) -> HardwareModel:
    """An array and a slow unit beside it, on one memory."""
    array = {"rows": rows, "columns": columns, "dataflow": dataflow}
    return HardwareModel.model_validate(
        {
            "clock_mhz": clock,
            "mem_units": {"SRAM": {"size_KiB": 1 << 20, "is_host": True}},
            "exec_units": {
                "ARRAY": {
                    "ops_per_cycle": {"mul": 2 * rows * columns, "add": 2 * rows * columns},
                    "array": array,
                },
                "VECTOR": {"ops_per_cycle": 16},
            },
            "buses": [
                {
                    "sources": ["SRAM", "ARRAY", "VECTOR"],
                    "sinks": ["SRAM", "ARRAY", "VECTOR"],
                    "bytes_per_cycle": 1e9,
                }
            ],
        }
    )


def cost_of(source: str, model: HardwareModel) -> StatementCost:
    (main,) = (nest for _, nest in Nest.root(compile_tile(source, "layer").entry).children())
    ((_, kernel),) = main.children()
    return CostModel(Machine(model)).statement(kernel, 0)


def product(pixels: int, depth: int, width: int, *, swapped: bool = False) -> str:
    factors = "B[k, n] * A[m, k]" if swapped else "A[m, k] * B[k, n]"
    head = f"function (A[M={pixels}, K={depth}]: i8, B[K, N={width}]: i8) -> (C)"
    return f"{head} {{ C[m, n : M, N] = +({factors}); }}"


def moved(cost: StatementCost, buffer: str, *, read: bool) -> float:
    return sum(f.bytes for f in cost.flows if f.buffer == buffer and (f.source == "SRAM[0]") is read)


def test_operands_are_read_for_each_fold_as_scale_sim_counts_them() -> None:
    """784 pixels, 576 deep, 128 wide on 16x16: 8 folds along the columns read all inputs, 36 along the rows leave
    partial sums."""
    cost = cost_of(product(784, 576, 128), machine(16, 16, "weight_stationary"))
    assert cost.work.rule == "systolic array"
    assert moved(cost, "A", read=True) == 3_612_672
    assert moved(cost, "B", read=True) == 576 * 128
    assert moved(cost, "C", read=False) == 36 * 784 * 128
    assert moved(cost, "C", read=True) == 35 * 784 * 128


def test_an_output_stationary_array_reads_both_operands_for_each_fold() -> None:
    cost = cost_of(product(784, 576, 128), machine(16, 16, "output_stationary"))
    assert moved(cost, "A", read=True) == 3_612_672
    assert moved(cost, "B", read=True) == 576 * 128 * 49
    assert moved(cost, "C", read=False) == 784 * 128


@pytest.mark.parametrize("shape", [(784, 576, 128), (128, 576, 784), (20, 100, 30)])
@pytest.mark.parametrize("dataflow", ["weight_stationary", "output_stationary", "row_stationary"])
def test_the_order_of_the_factors_makes_no_difference(shape: tuple[int, int, int], dataflow: str) -> None:
    model = machine(16, 16, dataflow)
    first, second = (cost_of(product(*shape, swapped=swapped), model) for swapped in (False, True))
    assert first.cycles == second.cycles
    assert sorted(flow.bytes for flow in first.flows) == sorted(flow.bytes for flow in second.flows)


def test_a_product_with_a_vector_goes_to_the_quicker_unit() -> None:
    """One pixel fills and drains the array for each fold; the vector unit takes 2 operations a point."""
    model = machine(128, 128, "weight_stationary")
    assert cost_of(product(1, 64, 16), model).units.name == "VECTOR"
    assert cost_of(product(1000, 64, 64), model).units.name == "ARRAY"


def test_weights_load_while_the_array_computes() -> None:
    values = {"rows": 16, "columns": 16, "dataflow": "weight_stationary"}
    plain = SystolicArray.model_validate(values)
    ahead = SystolicArray.model_validate({**values, "loads_ahead": True})
    assert systolic_cycles(plain, 16, 100, 16) == systolic_cycles(ahead, 16, 100, 16)
    assert systolic_cycles(ahead, 160, 100, 16) == 10 * 100 + 2 * 16 + 16 - 3
    assert systolic_cycles(ahead, 160, 4, 16) == 10 * 16 + 2 * 16 + 16 - 3


ALEXNET = {  # outputs a side, window, stride, channels of a group, filters of all groups, groups
    "CONV1": (55, 11, 4, 3, 96, 1),
    "CONV2": (27, 5, 1, 48, 256, 2),
    "CONV3": (13, 3, 1, 256, 384, 1),
    "CONV4": (13, 3, 1, 192, 384, 2),
    "CONV5": (13, 3, 1, 192, 256, 2),
}


def convolution(size: int, window: int, stride: int, channels: int, filters: int, groups: int) -> str:
    side = stride * (size - 1) + window
    index = f"{stride} * x + i, {stride} * y + j, g, c"
    weights = f"W[FX={window}, FY={window}, G, C, K={filters // groups}]: i16"
    head = f"I[X={side}, Y={side}, G={groups}, C={channels}]: i16, {weights}"
    return f"function ({head}) -> (O) {{ O[x, y, g, k : {size}, {size}, G, K] = +(I[{index}] * W[i, j, g, c, k]); }}"


@pytest.mark.parametrize(
    ("layer", "units"), [("CONV1", 151.25), ("CONV2", 135), ("CONV3", 156), ("CONV4", 156), ("CONV5", 156)]
)
def test_rows_of_filters_and_outputs_fill_the_array_of_eyeriss(layer: str, units: float) -> None:
    """12 rows hold one filter of 11 rows, two of 5 or four of 3; 14 columns hold the output in strips."""
    size, window, _, channels, filters, _ = ALEXNET[layer]
    cost = cost_of(convolution(*ALEXNET[layer]), load_hardware("eyeriss"))
    assert cost.work.rule == "row-stationary array"
    macs = size * size * window * window * channels * filters
    assert macs / cost.work.cycles == pytest.approx(units, rel=1e-3)


def test_frames_a_second_of_eyeriss_on_alexnet() -> None:
    """Chen et al., IEEE Journal of Solid-State Circuits 52(1), 2017: 35 frames/s in the convolutions, at 200 MHz. The
    rule leaves out loading and ramping up, and is quicker by a quarter."""
    model = load_hardware("eyeriss", {"CLOCK_MHZ": 200})
    cycles = sum(cost_of(convolution(*layer), model).work.cycles for layer in ALEXNET.values())
    assert 200e6 / cycles == pytest.approx(35 * 1.26, rel=0.01)


@pytest.mark.parametrize(
    ("network", "frames", "accesses"),
    # the errors beside the abstract of Chen et al., doi 10.1109/JSSC.2016.2616357
    [("AlexNet", 1.27, 0.89), ("VGG-16", 3.13, 0.52)],
)
def test_published_figures_of_eyeriss(network: str, frames: float, accesses: float) -> None:
    """Without loading, ramping up and the link to DRAM; each tensor comes once, and is not compressed."""
    layers, batch, speed, words = next(row[1:] for row in EYERISS if row[0] == network)
    found = eyeriss_figures(layers, batch)
    assert found[0] / speed == pytest.approx(frames, rel=0.01)
    assert found[1] / words == pytest.approx(accesses, rel=0.01)


def test_peak_of_the_first_tpu() -> None:
    """Jouppi et al., ISCA 2017: 92 TOPS."""
    model = load_hardware("systolic")
    assert model.exec_unit("MXU").ops_per_cycle["i8"] * model.clock_mhz / 1e6 == pytest.approx(92, rel=0.003)
