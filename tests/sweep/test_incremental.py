"""A point after others gives the program and the report of a cold compile, whatever changed between them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stripe.cost.report.report import simulation_json
from stripe.cost.report.schema import SimulationJson
from stripe.cost.time.machine import Machine
from stripe.cost.time.simulate import simulate_program
from stripe.hw.schema import HardwareModel
from stripe.hw.trace import MachineFacts, Reads
from stripe.ir import Program, StripeError
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.sweeps.memo import PassMemo
from stripe.tile import compile_tile

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = ("conv_bias_relu", "conv_quantized", "conv_strided", "matmul", "softmax")
LISTS = ("dsp_conv", "slides")
COUNT = 40
"""Walks that are drawn."""
FEW = 2
"""Walks that every run of the tests makes."""
STEPS = 3

Result = tuple[Program, SimulationJson] | str


@cache
def example(name: str) -> Program:
    return compile_tile((EXAMPLES / f"{name}.tile").read_text("utf-8"), name)


def changed(model: HardwareModel, draw: Random) -> HardwareModel:
    """The machine with another speed or size of one of its parts."""
    memories, units = dict(model.mem_units), dict(model.exec_units)
    buses = list(model.buses)
    match draw.choice(("bus", "bus", "clock", "memory", "ports", "size", "rate")):
        case "bus":
            number, width = draw.randrange(len(buses)), draw.choice((4, 16, 48, 64, 128, 512))
            buses[number] = buses[number].model_copy(update={"bytes_per_cycle": width})
        case "clock":
            return model.model_copy(update={"clock_mhz": draw.choice((200.0, 500.0, 1000.0))})
        case "memory":
            name, cycles = draw.choice(tuple(memories)), draw.choice((0.0, 10.0, 300.0))
            memories[name] = memories[name].model_copy(update={"read_latency_cycles": cycles})
        case "ports":
            name, width = draw.choice(tuple(memories)), draw.choice((16.0, 64.0, 512.0))
            memories[name] = memories[name].model_copy(update={"port_bytes_per_cycle": width})
        case "size":
            size = draw.choice((16.0, 64.0, 512.0))
            memories["SRAM"] = memories["SRAM"].model_copy(update={"size_KiB": size})
        case _:
            name, rate = draw.choice(tuple(units)), draw.choice((32, 256, 1024))
            units[name] = units[name].model_copy(update={"ops_per_cycle": {"all": rate}})
    return model.model_copy(update={"mem_units": memories, "exec_units": units, "buses": tuple(buses)})


def walk_of(number: int) -> tuple[Program, tuple[PassEntry, ...], Sequence[HardwareModel]]:
    """A program, a pass list, and machines of which each differs from the one before in one number or two."""
    draw = Random(number)
    name, pass_list = draw.choice(PROGRAMS), draw.choice(LISTS)
    counts = {parameter: draw.choice((1, 2, 4)) for parameter in ("NUM_CONV", "NUM_DSP", "NUM_SRAM")}
    entries, model = read_setup([("config", pass_list)], None, counts, "passes")
    assert model is not None
    machines = [model]
    for _ in range(STEPS):
        latest = changed(machines[-1], draw)
        machines.append(changed(latest, draw) if draw.random() < 0.3 else latest)
    return example(name), tuple(entries), machines


def again(memo: PassMemo, entries: tuple[PassEntry, ...], model: HardwareModel) -> Result:
    """A point of a sweep after others."""
    facts, reads = MachineFacts(model), Reads()
    try:
        program = memo.run(entries, facts, reads)
        return program, simulation_json(simulate_program(program, facts.traced(reads)), "p", slices=False)
    except StripeError as error:
        return str(error)


def cold(root: Program, entries: tuple[PassEntry, ...], model: HardwareModel) -> Result:
    """The same point as if it were the first of its process."""
    forget()
    try:
        program = PassManager(entries, model).run(root)
        return program, simulation_json(simulate_program(program, model), "p", slices=False)
    except StripeError as error:
        return str(error)


def forget() -> None:
    """Clears all answers that functions of this process keep."""
    cleared = 0
    for name, module in tuple(sys.modules.items()):
        for value in tuple(vars(module).values()) if name.startswith("stripe.") else ():
            kept: Any = value
            if hasattr(kept, "cache_clear") and hasattr(kept, "cache_parameters"):
                kept.cache_clear()
                cleared += 1
    assert cleared > 20
    Machine._latest = None  # pyright: ignore[reportPrivateUsage]


def check(number: int) -> None:
    program, entries, machines = walk_of(number)
    memo = PassMemo(program)
    found = [again(memo, entries, model) for model in machines]
    assert memo.passes_reused
    for step, (result, model) in enumerate(zip(found, machines, strict=True)):
        assert result == cold(program, entries, model), f"walk {number}, step {step}"


@pytest.mark.long
@pytest.mark.parametrize("number", range(FEW))
def test_a_point_after_others_is_that_of_a_cold_compile(number: int) -> None:
    check(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(FEW, COUNT))
def test_points_after_others_are_those_of_cold_compiles(number: int) -> None:
    check(number)
