"""Every example simulates on every shipped machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from stripe.config.files import shipped
from stripe.cost.report.report import simulation_json
from stripe.cost.time.simulate import simulate_program
from stripe.hw import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.tile import compile_tile

IDLE = {"waits for a transfer", "waits for results", "waits for other units", "nothing to do"}
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.tile"))


@cache
def machine_of(name: str) -> HardwareModel:
    return load_hardware(name)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_simulates_on_every_machine(path: Path) -> None:
    program = compile_tile(path.read_text("utf-8"), path.name)
    for machine in shipped():
        report = simulation_json(simulate_program(program, machine_of(machine)), path.name)
        assert report.latency_cycles > 0
        for unit in report.units:
            assert 0 <= unit.utilisation <= 1 + 1e-9, machine
            idle = sum(cycles for cause, cycles in unit.stalls.items() if cause in IDLE)
            assert unit.busy_cycles + idle == pytest.approx(report.latency_cycles), (machine, unit)
        for statement in report.statements:
            assert statement.sustained_ops_per_cycle <= statement.roof_ops_per_cycle * (1 + 1e-9), machine
