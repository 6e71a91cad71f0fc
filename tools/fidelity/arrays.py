"""Arrays beside SCALE-Sim and published chips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TypeAlias

from stripe.cost.time.machine import Machine
from stripe.cost.time.statement import StatementCost
from stripe.cost.time.workload import CostModel
from stripe.hw import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import Nest
from stripe.tile import compile_tile
from tools.reference.markdown import table

Layer: TypeAlias = tuple[int, int, int, int, int, int]

ALEXNET: dict[str, Layer] = {
    "CONV1": (55, 11, 4, 3, 96, 1),
    "CONV2": (27, 5, 1, 48, 256, 2),
    "CONV3": (13, 3, 1, 256, 384, 1),
    "CONV4": (13, 3, 1, 192, 384, 2),
    "CONV5": (13, 3, 1, 192, 256, 2),
}
"""Outputs a side, window, stride, channels of a group, filters of all groups, groups."""

VGG16: dict[str, Layer] = {
    "CONV1_1": (224, 3, 1, 3, 64, 1),
    "CONV1_2": (224, 3, 1, 64, 64, 1),
    "CONV2_1": (112, 3, 1, 64, 128, 1),
    "CONV2_2": (112, 3, 1, 128, 128, 1),
    "CONV3_1": (56, 3, 1, 128, 256, 1),
    "CONV3_2": (56, 3, 1, 256, 256, 1),
    "CONV3_3": (56, 3, 1, 256, 256, 1),
    "CONV4_1": (28, 3, 1, 256, 512, 1),
    "CONV4_2": (28, 3, 1, 512, 512, 1),
    "CONV4_3": (28, 3, 1, 512, 512, 1),
    "CONV5_1": (14, 3, 1, 512, 512, 1),
    "CONV5_2": (14, 3, 1, 512, 512, 1),
    "CONV5_3": (14, 3, 1, 512, 512, 1),
}

EYERISS = (("AlexNet", ALEXNET, 4, 35.0, 0.0029), ("VGG-16", VGG16, 3, 0.7, 0.0035))
"""Networks with their convolutions, images of a batch, published frames a second and DRAM accesses a
multiply-accumulate."""


def cost_of(source: str, model: HardwareModel) -> StatementCost:
    """The one kernel of a Tile program, alone on the machine."""
    ((_, main),) = Nest.root(compile_tile(source, "layer").entry).children()
    ((_, kernel),) = main.children()
    return CostModel(Machine(model)).statement(kernel, 0)


def convolution(size: int, window: int, stride: int, channels: int, filters: int, groups: int) -> str:
    side = stride * (size - 1) + window
    index = f"{stride} * x + i, {stride} * y + j, g, c"
    inputs = f"I[X={side}, Y={side}, G={groups}, C={channels}]: i16"
    weights = f"W[FX={window}, FY={window}, G, C, K={filters // groups}]: i16"
    body = f"O[x, y, g, k : {size}, {size}, G, K] = +(I[{index}] * W[i, j, g, c, k]);"
    return f"function ({inputs}, {weights}) -> (O) {{ {body} }}"


def section() -> Iterator[str]:
    yield """## Arrays

Cycles of a matrix product on a systolic array are the closed forms of SCALE-Sim 3.0.0, and its operands are counted by
folds as SCALE-Sim counts them (`tests/cost/test_arrays.py`).

"""
    yield table(("784 pixels, 576 deep, 128 wide on 16x16", "SCALE-Sim", "ours"), _folds())
    yield """
The machine `eyeriss` at 200 MHz on the convolutions of AlexNet and VGG-16, by the rule of the row-stationary dataflow.
Published, in the abstract of Chen et al., IEEE Journal of Solid-State Circuits 52(1), 2017, doi
10.1109/JSSC.2016.2616357: 35 frames/s and 0.0029 DRAM accesses a multiply-accumulate for AlexNet in batches of 4, 0.7
and 0.0035 for VGG-16 in batches of 3. The rule leaves out loading of filters, ramping up and the link to DRAM; DRAM
accesses are those of each tensor once, without the compression of the chip. `tests/cost/test_arrays.py` holds the
errors. The milliseconds of single layers stand in the paper's tables, which we could not look up; none is repeated
here.

"""
    yield from _eyeriss()
    yield """
Of TPU v1 (Jouppi et al., ISCA 2017) the peak is published in the abstract. Searches for the table of its six
applications found the abstract alone, and searches for Gemmini on ResNet-50 (Genc et al., DAC 2021) its abstract and a
run on an FPGA that does not say how large its array is. No number from memory stands here.

"""
    peak = 2 * 65536 * 700e6 / 1e12
    model = load_hardware("systolic")
    rate = model.exec_unit("MXU").ops_per_cycle["i8"] * model.clock_mhz * 1e6 / 1e12
    rows = [["peak, TOPS", "92", f"{rate:.2f}", f"{rate / 92 - 1:+.1%}"]]
    assert abs(rate - peak) < 1e-9
    yield table(("TPU v1", "published", "ours", "error"), rows)


def _folds() -> Iterator[list[str]]:
    source = (
        "function (A[M=784, K=576]: i8, B[K, N=128]: i8) -> (C) { C[m, n : M, N] = +(A[m, k] * B[k, n]); }"
    )
    array = {"rows": 16, "columns": 16, "dataflow": "weight_stationary"}
    model = HardwareModel.model_validate({
        "clock_mhz": 1000,
        "mem_units": {"SRAM": {"size_KiB": 1 << 20, "is_host": True}},
        "exec_units": {"ARRAY": {"ops_per_cycle": 512, "array": array}},
        "buses": [{"sources": ["SRAM", "ARRAY"], "sinks": ["SRAM", "ARRAY"], "bytes_per_cycle": 1e9}],
    })  # fmt: skip
    cost = cost_of(source, model)
    read = {flow.buffer: flow.bytes for flow in cost.flows if flow.source == "SRAM[0]"}
    yield ["inputs read", "3,612,672", f"{read['A']:,.0f}"]
    yield ["cycles", f"{36 * 8 * (784 + 2 * 16 + 16 - 2) - 1:,}", f"{cost.work.cycles:,.0f}"]


def eyeriss_figures(layers: Mapping[str, Layer], batch: int) -> tuple[float, float]:
    """Frames a second, and DRAM accesses a multiply-accumulate."""
    model = load_hardware("eyeriss", {"CLOCK_MHZ": 200})
    cycles = words = macs = 0.0
    for size, window, stride, channels, filters, groups in layers.values():
        cycles += cost_of(convolution(size, window, stride, channels, filters, groups), model).work.cycles
        side = stride * (size - 1) + window
        tensors = batch * side * side * channels * groups + batch * size * size * filters
        words += tensors + prod((window, window, channels, filters))
        macs += batch * prod((size, size, window, window, channels, filters))
    return 200e6 / cycles, words / macs


def _eyeriss() -> Iterator[str]:
    model = load_hardware("eyeriss", {"CLOCK_MHZ": 200})
    rows: list[list[str]] = []
    for name, layer in ALEXNET.items():
        size, window, _, channels, filters, _ = layer
        cost = cost_of(convolution(*layer), model)
        used = prod((size, size, window, window, channels, filters)) / cost.work.cycles
        rows.append([name, f"{4 * cost.work.cycles / 200e3:.1f}", f"{used:.0f}"])
    yield table(("layer of AlexNet", "ms for 4 images", "units at work"), rows)
    yield "\n"
    rows = []
    for name, layers, batch, speed, accesses in EYERISS:
        frames, words = eyeriss_figures(layers, batch)
        rows.append([f"{name}, frames/s", f"{speed:g}", f"{frames:.1f}", f"{frames / speed - 1:+.0%}"])
        rows.append(
            [f"{name}, DRAM accesses a MAC", f"{accesses:g}", f"{words:.4f}", f"{words / accesses - 1:+.0%}"]
        )
    yield table(("all convolutions", "published", "ours", "error"), rows)
