"""The result of a simulation or of counting as data, for `stripe-sim --json`, tables and pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from stripe.config.model import Changed
from stripe.cost.counts.loops import Halo
from stripe.cost.counts.operations import Operations
from stripe.cost.counts.traffic import KernelCounts, rows_in_order
from stripe.cost.report.schema import (
    CountsJson,
    HeldBufferJson,
    KernelCountsJson,
    SimulationJson,
    SourceJson,
    TrafficJson,
)
from stripe.cost.report.statements import statement_reports
from stripe.cost.report.table import summed
from stripe.cost.report.units import bus_reports, idle_memories, memory_reports, unit_reports
from stripe.cost.time.simulate import Simulation
from stripe.hw.schema import HardwareModel


def counts_json(
    counts: Sequence[KernelCounts], halo: Halo, source: str, model: HardwareModel | None
) -> CountsJson:
    """Counts as data."""
    return CountsJson(
        input=source,
        halo=halo,
        machine=model.name if model else None,
        kernels=tuple(_kernel_counts(kernel) for kernel in counts),
        unverified=unverified_sources(model) if model else (),
    )


def _kernel_counts(kernel: KernelCounts) -> KernelCountsJson:
    return KernelCountsJson(
        name=kernel.name,
        macs=kernel.macs,
        operations=kernel.operations.by_name,
        steps=kernel.steps,
        held_bytes=dict(kernel.held),
        buffers=tuple(HeldBufferJson(**asdict(buffer)) for buffer in kernel.buffers),
        traffic=tuple(
            TrafficJson(
                operand=row.operand, source=row.source, sink=row.sink, elements_read=row.read,
                elements_written=row.written, bytes_read=row.read * row.element_bytes,
                bytes_written=row.written * row.element_bytes,
            )
            for row in rows_in_order(kernel)
        ),
        compute_pJ=kernel.compute_pJ,
        memory_pJ=dict(kernel.memory_pJ),
        energy_pJ=kernel.energy_pJ,
    )  # fmt: skip


def simulation_json(found: Simulation, source: str, *, slices: bool = True) -> SimulationJson:
    """A simulation as data; with the slices of kernels, which are most of it, where `slices`. Raises StripeError for a
    program that does not fit into the memories."""
    model, total = found.model, found.cycles
    operations = Operations.sum(cost.work.operations for cost in found.costs)
    energy = _energy(found)
    found.check_fits()
    return SimulationJson(
        input=source,
        machine=model.name,
        parameters=dict(model.parameters),
        clock_mhz=model.clock_mhz,
        scheduled=found.scheduled,
        latency_cycles=total,
        latency_us=model.microseconds(total),
        operations=operations.total,
        macs=operations.mac_count,
        energy_pJ=sum(energy.values()),
        energy=energy,
        area_mm2=model.total_area_mm2 or None,
        statements=statement_reports(found, slices=slices),
        units=unit_reports(found),
        buses=bus_reports(found),
        memories=(memories := memory_reports(found)),
        idle_memories=idle_memories(memories, model),
        notes=tuple(_notes(found)),
        unverified=unverified_sources(model),
    )


def _energy(found: Simulation) -> dict[str, float]:
    """pJ by component; static power for the whole time."""
    leakage = ("leakage", found.model.leakage_pJ_per_cycle * found.cycles)
    energy = summed((*(part for cost in found.costs for part in cost.energy.items()), leakage))
    return {component: value for component, value in sorted(energy.items()) if value}


def _notes(found: Simulation) -> Iterator[str]:
    if not found.scheduled and len(found.program.main.statements) > 1:
        yield "no dependences are set: statements run one after the other"
    defaulted: dict[str, int] = defaultdict(int)
    said: dict[str, list[str]] = defaultdict(list)
    for cost in found.costs:
        defaulted[cost.units.name] += cost.units.defaulted
        for note in cost.notes:
            said[note].append(cost.name)
    for unit, count in defaulted.items():
        if count:
            yield f"{count} statement{'s' * (count > 1)} without a location: on {unit}, the quickest for them"
    for note, names in said.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield f"{note} ({', '.join(names[:3])}{more})"


def unverified_sources(model: HardwareModel) -> tuple[SourceJson, ...]:
    """The unverified numbers of a model as data."""
    return tuple(
        SourceJson(
            path=entry.path, value=entry.value, unit=entry.unit, note=entry.note, source=entry.source,
            stated=entry.stated if isinstance(entry, Changed) else None,
        )
        for entry in model.unverified()
    )  # fmt: skip
