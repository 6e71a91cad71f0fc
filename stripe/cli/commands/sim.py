"""`stripe-sim`: compiles, and simulates on a hardware model or counts."""

from __future__ import annotations

import json
from typing import cast

from pydantic import BaseModel, JsonValue

from stripe.cli.arguments.sim import SimSpec
from stripe.cli.compiling import (
    load_program,
    read_job,
    run_passes,
    warn_of_idle_parameters,
    warn_of_idle_policy,
)
from stripe.cli.job import Job
from stripe.cli.streams import write_text
from stripe.cli.tables import write_tables
from stripe.cli.usage import UsageError
from stripe.cost.counts import counts
from stripe.cost.counts.loops import Halo
from stripe.cost.report.report import counts_json, simulation_json
from stripe.cost.report.schema import CountsJson, SimulationJson
from stripe.cost.report.tables import counts_tables, simulation_notes, simulation_tables, unverified_notes
from stripe.cost.time.simulate import simulate_program
from stripe.exit_status import OK
from stripe.hw.schema import HardwareModel
from stripe.ir import Program


def perform(job: Job, spec: SimSpec) -> int:
    """Compiles and simulates, or counts; gives the exit status."""
    source = read_job(job, spec)
    if job.hardware is None and not spec.counts:
        raise UsageError("no machine is given to simulate", "name one with --hw, such as --hw dsp_conv")
    warn_of_idle_policy(spec, judged=False)
    loaded, reading = load_program(job, source, spec)
    program = run_passes(job, spec, loaded.program, reading)
    if spec.counts or job.hardware is None:
        report = _counted(program, source.name, job.hardware, spec)
        _write_json(report, spec.json)
        if spec.json != "-":
            write_tables(counts_tables(report), unverified_notes(report.unverified))
        warn_of_idle_parameters(job, lambda machine: _numbers(_counted(program, source.name, machine, spec)))
    else:
        found = simulate_program(program, job.hardware)
        report = simulation_json(found, source.name)
        if spec.trace is not None:
            from stripe.cost.report.trace import chrome_trace

            write_text(spec.trace, json.dumps(chrome_trace(found), indent=1) + "\n")
        if spec.plot is not None:
            from stripe.cost.report.plot import picture

            write_text(spec.plot, picture(report))
        _write_json(report, spec.json)
        if spec.json != "-":
            write_tables(simulation_tables(report), simulation_notes(report))
        warn_of_idle_parameters(
            job, lambda machine: _numbers(simulation_json(simulate_program(program, machine), source.name))
        )
    return OK


def _numbers(report: SimulationJson | CountsJson) -> BaseModel:
    """The report without descriptions of the machine, its area, and the units and memories that did nothing."""
    if isinstance(report, CountsJson):
        return report.model_copy(update={"machine": None, "unverified": ()})
    used = tuple(unit for unit in report.units if unit.busy_cycles)
    bare: dict[str, object] = {"machine": "", "parameters": {}, "unverified": (), "area_mm2": None}
    return report.model_copy(update={**bare, "units": used, "idle_memories": {}})


def _counted(program: Program, name: str, hardware: HardwareModel | None, spec: SimSpec) -> CountsJson:
    halo = cast("Halo", spec.halo or "refetch")
    return counts_json(counts.count_program(program, halo, hardware), halo, name, hardware)


def _write_json(report: BaseModel, path: str | None) -> None:
    if path is not None:
        write_text(path, json.dumps(_whole(report.model_dump(mode="json")), indent=2) + "\n")


def _whole(value: JsonValue) -> JsonValue:
    """The value with whole floats as integers: 300, not 300.0."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, float) and abs(value) < 2**53 and abs(value - round(value)) <= 1e-9:
        return round(value)
    return value
