"""A better machine gives no worse result, each compiled anew; and the price of a chosen tile is the simulated time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from stripe.cost.report.report import simulation_json
from stripe.cost.time.pieces import piece_of_content
from stripe.cost.time.simulate import Simulation, simulate_program
from stripe.hw.schema import HardwareModel
from stripe.ir import Program
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = (
    "attention", "average_pool", "batch_norm", "conv_bias_relu", "conv_depthwise", "conv_dilated", "conv_grouped",
    "conv_strided", "layer_norm", "matmul", "max_pool", "network", "softmax",
)  # fmt: skip
COUNT = 300
"""Chains that are drawn."""
FEW = 12
"""Chains that every run of the tests compiles."""
WORSE = 1.01

PARAMETERS = {
    "NUM_CONV": (1, 2, 3, 4, 8),
    "NUM_DSP": (1, 2, 4, 8),
    "SRAM_SIZE_KIB": (16, 24, 32, 64, 128, 512),
}
BUSES = {
    "DRAM": ("dram_read", "dram_write"), "SRAM": ("sram_fill", "sram_drain"), "NOC": ("noc_read", "noc_write"),
    "CONV": ("conv_in", "conv_out"), "DSP": ("dsp_in", "dsp_out"),
}  # fmt: skip
WIDTHS = (8, 16, 32, 64, 128, 256, 512)
RATES = (32, 64, 256, 512, 1024)

LAYERS = """function (X[Y=7, W=7, C=1024]: fp32, A[I0=1, J0=1, C, M=256]: fp32, B[I1=3, J1=3, M, M]: fp32,
          D[I2=1, J2=1, M, C]: fp32) -> (R) {
  P[y, x, o : Y, W, M] = +(X[y + i, x + j, c] * A[i, j, c, o]);
  Q = relu(P);
  S[y, x, o : Y, W, M] = +(Q[y + i - 1, x + j - 1, c] * B[i, j, c, o]);
  T = relu(S);
  U[y, x, o : Y, W, C] = +(T[y + i, x + j, c] * D[i, j, c, o]);
  V = U + X;
  R = relu(V);
}
"""
"""Layers of a residual network, one after the other, of which no operand fits into a small memory."""


@cache
def example(name: str) -> Program:
    return compile_tile((EXAMPLES / f"{name}.tile").read_text("utf-8"), name)


@dataclass(frozen=True)
class Point:
    """A machine: parameters of dsp_conv, the width of one kind of buses, the rate of one kind of units."""

    parameters: tuple[tuple[str, int], ...]
    bus: tuple[str, int] | None = None
    rate: tuple[str, int] | None = None

    def simulated(self, program: Program, pass_list: str) -> Simulation:
        """The program compiled for the machine and run on it."""
        entries, model = read_setup([("config", pass_list)], None, dict(self.parameters), "passes")
        assert model is not None
        model = self._changed(model)
        return simulate_program(PassManager(tuple(entries), model).run(program), model)

    def _changed(self, model: HardwareModel) -> HardwareModel:
        names = BUSES[self.bus[0]] if self.bus else ()
        width = {"bytes_per_cycle": self.bus[1]} if self.bus else {}
        buses = tuple(bus.model_copy(update=width) if bus.name in names else bus for bus in model.buses)
        units = dict(model.exec_units)
        if self.rate:
            name, rate = self.rate
            units[name] = units[name].model_copy(update={"ops_per_cycle": {"all": rate}})
        return model.model_copy(update={"buses": buses, "exec_units": units})


def chain(number: int) -> tuple[str, str, Point, Point]:
    """A program, a pass list, and two machines that differ in one resource, the worse one first: drawn by `number`."""
    draw = Random(number)
    name, pass_list = draw.choice(PROGRAMS), draw.choice(("dsp_conv", "slides"))
    fixed = {key: draw.choice(values) for key, values in PARAMETERS.items()}
    kind = draw.choice((*PARAMETERS, "bus", "rate"))
    if kind in PARAMETERS:
        worse, better = (
            Point(tuple({**fixed, kind: v}.items())) for v in sorted(draw.sample(PARAMETERS[kind], 2))
        )
    elif kind == "bus":
        bus = draw.choice(tuple(BUSES))
        worse, better = (Point(tuple(fixed.items()), bus=(bus, v)) for v in sorted(draw.sample(WIDTHS, 2)))
    else:
        unit = draw.choice(("CONV", "DSP"))
        worse, better = (Point(tuple(fixed.items()), rate=(unit, v)) for v in sorted(draw.sample(RATES, 2)))
    return name, pass_list, worse, better


def check(numbers: Iterable[int]) -> None:
    """Compiles the chains anew, and lists those of which the better machine is slower."""
    found: list[str] = []
    for number in numbers:
        name, pass_list, worse, better = chain(number)
        before = worse.simulated(example(name), pass_list).cycles
        after = better.simulated(example(name), pass_list).cycles
        if after > before * WORSE:
            found.append(
                f"{number}: {after / before:.3f} of {before:.0f} cycles, {name} {pass_list} {worse} {better}"
            )
    assert not found, "\n".join(found)


@pytest.mark.long
def test_a_better_machine_gives_no_worse_result() -> None:
    check(range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_no_machine_of_300_chains_is_worse_than_a_lesser_one(part: int) -> None:
    check(range(part * COUNT // 10, (part + 1) * COUNT // 10))


@pytest.mark.parametrize(
    ("pass_list", "width"),
    [
        pytest.param("dsp_conv", 16, marks=pytest.mark.long),
        pytest.param("dsp_conv", 128, marks=pytest.mark.slow),
        pytest.param("slides", 16, marks=pytest.mark.slow),
        pytest.param("slides", 128, marks=pytest.mark.slow),
    ],
)
def test_layers_of_a_network_gain_by_memory(pass_list: str, width: int) -> None:
    """Each machine holds whole results where the one before does not, so that its best tiles have another shape."""
    program = compile_tile(LAYERS, "layers")
    fixed = {"NUM_CONV": 1, "NUM_SRAM": 1, "CONV_OPS": 1024, "NOC_BYTES": 2048, "DRAM_BYTES": width}
    points = [Point(tuple({**fixed, "SRAM_SIZE_KIB": size}.items())) for size in (32, 64, 128, 256, 512)]
    cycles = [point.simulated(program, pass_list).cycles for point in points]
    assert all(after <= before * WORSE for before, after in pairwise(cycles)), cycles


@pytest.mark.parametrize("pass_list", ["dsp_conv", "slides"])
def test_all_engines_work_on_the_layer_of_the_slides(pass_list: str) -> None:
    """Within 10 % of the bound: with one engine or two that is computing, with more the bus from the SRAMs."""
    program = example("slides_layer")
    cycles: list[float] = []
    for count in (1, 2, 4, 8):
        found = Point((("NUM_CONV", count),)).simulated(program, pass_list)
        (number,) = (n for n, cost in enumerate(found.costs) if not cost.transfer)
        demand = found.costs[number].demand
        binding = max(demand, key=lambda resource: demand[resource])
        assert binding.name == ("CONV" if count <= 2 else "noc_read")
        assert found.cycles <= 1.1 * demand[binding]
        assert len({unit for unit in found.runs[number].units if unit.startswith("CONV")}) == count
        cycles.append(found.cycles)
    assert cycles[1] < 0.51 * cycles[0] and cycles[2] < 0.28 * cycles[0] and cycles[3] <= cycles[2]


@pytest.mark.parametrize("pass_list", ["dsp_conv", "slides"])
def test_costs_that_are_kept_are_those_of_a_machine_that_keeps_none(pass_list: str) -> None:
    entries, model = read_setup([("config", pass_list)], None, {"SRAM_SIZE_KIB": 16}, "passes")
    assert model is not None
    after = PassManager(tuple(entries), model).run(example("network"))
    kept = simulate_program(after, model)
    piece_of_content.cache_clear()
    anew = simulate_program(after, model.model_copy())
    assert simulation_json(kept, "network") == simulation_json(anew, "network")
