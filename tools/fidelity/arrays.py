"""Arrays beside SCALE-Sim and published chips."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from stripe.cost.time.machine import Machine
from stripe.cost.time.statement import StatementCost
from stripe.cost.time.workload import CostModel
from stripe.hw import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import Nest
from stripe.tile import compile_tile
from tools.reference.markdown import table

ALEXNET = {
    "CONV1": (55, 11, 4, 3, 96, 1),
    "CONV2": (27, 5, 1, 48, 256, 2),
    "CONV3": (13, 3, 1, 256, 384, 1),
    "CONV4": (13, 3, 1, 192, 384, 2),
    "CONV5": (13, 3, 1, 192, 256, 2),
}
"""Outputs a side, window, stride, channels of a group, filters of all groups, groups."""


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
The machine `eyeriss` at 200 MHz on the convolutions of AlexNet, by the rule of the row-stationary dataflow.
Published: 35 frames/s and 0.0029 DRAM accesses a multiply-accumulate, batches of 4 (Chen et al., IEEE Journal of
Solid-State Circuits 52(1), 2017, doi 10.1109/JSSC.2016.2616357). The rule leaves out loading of filters, ramping up
and the link to DRAM; DRAM accesses are those of each tensor once, without the compression of the chip. The
milliseconds of single layers stand in the paper's tables, which we could not look up; none is repeated here.

"""
    yield from _eyeriss()
    yield """
Of TPU v1 (Jouppi et al., ISCA 2017) the peak is published in the abstract; the table of its six applications and the
figures of Gemmini on ResNet-50 could not be looked up, and no number from memory stands here.

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


def _eyeriss() -> Iterator[str]:
    model = load_hardware("eyeriss", {"CLOCK_MHZ": 200})
    total = words = macs = 0.0
    rows: list[list[str]] = []
    for name, layer in ALEXNET.items():
        size, window, stride, channels, filters, groups = layer
        cost = cost_of(convolution(*layer), model)
        done = size * size * window * window * channels * filters
        used = done / cost.work.cycles
        rows.append([name, f"{4 * cost.work.cycles / 200e3:.1f}", f"{used:.0f}"])
        side = stride * (size - 1) + window
        tensors = 4 * side * side * channels * groups + 4 * size * size * filters
        words += tensors + prod((window, window, channels, filters))
        total += cost.work.cycles
        macs += 4 * done
    yield table(("layer", "ms for 4 images", "units at work"), rows)
    yield "\n"
    yield table(
        ("all five", "published", "ours", "error"),
        [
            ["frames/s", "35", f"{200e6 / total:.1f}", f"{200e6 / total / 35 - 1:+.0%}"],
            ["DRAM accesses a MAC", "0.0029", f"{words / macs:.4f}", f"{words / macs / 0.0029 - 1:+.0%}"],
        ],
    )
