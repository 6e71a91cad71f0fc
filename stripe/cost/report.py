"""The result of a simulation or of counting as data: what `stripe-sim --json` writes (docs/sim.md describes it)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from stripe.cost.counts import KernelCounts, rows_in_order
from stripe.cost.events import Run
from stripe.cost.loops import Halo
from stripe.cost.operations import Operations
from stripe.cost.simulate import Simulation
from stripe.cost.statement import Flow, StatementCost
from stripe.hw.graph import parse_unit
from stripe.hw.schema import HardwareModel, Scalar


class SourceJson(BaseModel):
    """A number of the hardware model that nobody could source."""

    path: str = Field(description="its place in the rendered model, or `parameters.NAME`")
    value: Scalar | None = Field(default=None, description="the number, where the entry tells it")
    unit: str = ""
    note: str = ""


class SliceJson(BaseModel):
    """One step of one tile of a kernel that loops over transfers."""

    unit: str
    name: str
    tile: int
    kind: Literal["kernel", "transfer"]
    start_cycle: float
    end_cycle: float


class StatementJson(BaseModel):
    """One statement of `main`: a kernel, or a transfer between memories."""

    number: int = Field(description="its number in main")
    name: str
    kind: Literal["kernel", "transfer"]
    units: tuple[str, ...] = Field(description="the units that it occupied")
    waits_for: tuple[int, ...] = Field(description="numbers of the statements that it depends on")
    ready_cycle: float = Field(description="when all that it waits for had ended")
    start_cycle: float
    end_cycle: float
    cycles: float = Field(description="from start to end")
    microseconds: float
    alone_cycles: float = Field(description="what it takes with the machine for itself")
    compute_cycles: float = Field(description="of which its units compute")
    utilisation: float = Field(description="share of the units' lanes that do useful work while they compute")
    rule: str = Field(
        description="how compute_cycles follows: by rates, a stencil, vectors, a systolic array"
    )
    tiles: int = Field(description="points of its outermost loop over transfers; 1 without one")
    operations: dict[str, int] = Field(description="number of operations by 'intrinsic:dtype'")
    macs: int = Field(description="multiply-accumulates; their two operations are in `operations` as well")
    bytes: dict[str, float] = Field(description="bytes read and written, by name of the memory")
    intensity: float | None = Field(
        description="operations per byte of the main memory; null without any byte"
    )
    ops_per_cycle: float = Field(description="operations by cycles")
    peak_ops_per_cycle: float = Field(description="the most that its units do of these operations")
    roof_ops_per_cycle: float = Field(description="what compute and main memory's buses allow: the roofline")
    bound: str = Field(description="'compute', or the bus, transfer unit or memory port that takes longest")
    stalls: dict[str, float] = Field(description="cycles by cause, of those that it took but did not compute")
    energy_pJ: float
    slices: tuple[SliceJson, ...] = Field(
        description="what happens inside; empty for what has no tiles, or too many"
    )


class UnitJson(BaseModel):
    """One unit that computes or transfers."""

    unit: str
    kind: str
    busy_cycles: float = Field(description="cycles in which it was occupied")
    useful_cycles: float = Field(description="cycles of work at its full rate")
    utilisation: float = Field(description="useful cycles by latency")
    stalls: dict[str, float] = Field(
        description="cycles by cause in which it could not go on, or had nothing to do"
    )


class BusJson(BaseModel):
    """One bus that carried anything."""

    name: str
    bytes: float
    busy_cycles: float
    utilisation: float


class MemoryJson(BaseModel):
    """One memory."""

    memory: str
    capacity_bytes: int
    peak_bytes: int = Field(description="the most bytes of buffers alive at one time")
    placed_bytes: int | None = Field(description="where the last placed buffer ends; null before placement")
    read_bytes: float
    written_bytes: float


class SimulationJson(BaseModel):
    """What `stripe-sim --json` writes."""

    input: str
    machine: str
    parameters: dict[str, Scalar]
    clock_mhz: float
    scheduled: bool = Field(
        description="whether the program says what waits for what; else one after the other"
    )
    latency_cycles: float
    latency_us: float
    operations: int
    macs: int
    energy_pJ: float
    energy: dict[str, float] = Field(
        description="pJ by component: compute, memories' reads and writes, buses, leakage"
    )
    statements: tuple[StatementJson, ...]
    units: tuple[UnitJson, ...]
    buses: tuple[BusJson, ...]
    memories: tuple[MemoryJson, ...]
    notes: tuple[str, ...]
    unverified: tuple[SourceJson, ...] = Field(description="numbers of the model without a source")


class TrafficJson(BaseModel):
    """Elements of one operand from one memory level to the next; `array` stands for the execution units."""

    operand: str
    source: str
    sink: str
    elements_read: int = Field(description="read at the source")
    elements_written: int = Field(description="written at the sink")
    bytes_read: int
    bytes_written: int


class KernelCountsJson(BaseModel):
    """The counts of one kernel."""

    name: str
    macs: int
    operations: dict[str, int]
    steps: int = Field(description="points in time, all parallel units busy: ideal cycles")
    held_bytes: dict[str, int] = Field(description="bytes of the copies in each memory")
    traffic: tuple[TrafficJson, ...]
    compute_pJ: float | None
    energy_pJ: float | None


class CountsJson(BaseModel):
    """What `stripe-sim --counts --json` writes."""

    input: str
    halo: Halo
    machine: str | None
    kernels: tuple[KernelCountsJson, ...]
    unverified: tuple[SourceJson, ...]


def counts_json(
    counts: Sequence[KernelCounts], halo: Halo, source: str, model: HardwareModel | None
) -> CountsJson:
    """Counts as data."""
    return CountsJson(
        input=source,
        halo=halo,
        machine=model.name if model else None,
        kernels=tuple(_kernel_counts(kernel) for kernel in counts),
        unverified=_unverified(model) if model else (),
    )


def _kernel_counts(kernel: KernelCounts) -> KernelCountsJson:
    return KernelCountsJson(
        name=kernel.name,
        macs=kernel.macs,
        operations=_operations(kernel.operations),
        steps=kernel.steps,
        held_bytes=dict(kernel.held),
        traffic=tuple(
            TrafficJson(
                operand=row.operand, source=row.source, sink=row.sink, elements_read=row.read,
                elements_written=row.written, bytes_read=row.read * row.element_bytes,
                bytes_written=row.written * row.element_bytes,
            )
            for row in rows_in_order(kernel)
        ),
        compute_pJ=kernel.compute_pJ,
        energy_pJ=kernel.energy_pJ,
    )  # fmt: skip


def simulation_json(found: Simulation, source: str) -> SimulationJson:
    """A simulation as data."""
    model, total = found.model, found.cycles
    operations = Operations.sum(cost.operations for cost in found.costs)
    main = model.main_memory or ""
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
        energy_pJ=sum(found.energy.values()),
        energy=dict(found.energy),
        statements=tuple(
            _statement(cost, run, deps, model, main)
            for cost, run, deps in zip(found.costs, found.runs, found.deps, strict=True)
        ),
        units=tuple(
            UnitJson(
                unit=use.unit, kind=use.kind, busy_cycles=use.busy, useful_cycles=use.useful,
                utilisation=use.useful / total if total else 0.0, stalls=dict(use.stalls),
            )
            for use in found.units
        ),
        buses=tuple(
            BusJson(
                name=use.name, bytes=use.bytes, busy_cycles=use.cycles, utilisation=use.cycles / total if total else 0.0
            )
            for use in found.buses
        ),
        memories=_memories(found),
        notes=found.notes,
        unverified=_unverified(model),
    )  # fmt: skip


def _statement(
    cost: StatementCost, run: Run, deps: tuple[int, ...], model: HardwareModel, main: str
) -> StatementJson:
    cycles = run.end - run.start
    moved = cost.bytes_at(main)
    ops = cost.operations.total
    memory_time = _main_memory_cycles(cost, main)
    roof = min(cost.ops_per_cycle, ops / memory_time) if memory_time else cost.ops_per_cycle
    stalls = dict(cost.stalls)
    for resource, lost in run.slowed.items():
        stalls[f"shares {resource}"] = lost
    return StatementJson(
        number=cost.number,
        name=cost.name,
        kind="transfer" if cost.transfer else "kernel",
        units=run.units,
        waits_for=deps,
        ready_cycle=run.ready,
        start_cycle=run.start,
        end_cycle=run.end,
        cycles=cycles,
        microseconds=model.microseconds(cycles),
        alone_cycles=cost.cycles,
        compute_cycles=cost.compute_cycles,
        utilisation=cost.utilisation,
        rule=cost.rule,
        tiles=cost.tiles,
        operations=_operations(cost.operations),
        macs=cost.operations.mac_count,
        bytes=_bytes(cost),
        intensity=ops / moved if moved else None,
        ops_per_cycle=ops / cycles if cycles else 0.0,
        peak_ops_per_cycle=cost.ops_per_cycle,
        roof_ops_per_cycle=roof,
        bound=_bound(cost),
        stalls=stalls,
        energy_pJ=sum(cost.energy.values()),
        slices=_slices(cost, run),
    )


def _slices(cost: StatementCost, run: Run) -> tuple[SliceJson, ...]:
    """The inner steps in the time of the simulation; where the kernel was slowed down, so are they."""
    stretch = (run.end - run.start) / max((s.end for s in cost.slices), default=1.0)
    return tuple(
        SliceJson(
            unit=s.unit, name=s.name, tile=s.tile, kind="transfer" if s.transfer else "kernel",
            start_cycle=run.start + s.start * stretch, end_cycle=run.start + s.end * stretch,
        )
        for s in cost.slices
    )  # fmt: skip


def _operations(operations: Operations) -> dict[str, int]:
    return {f"{op}:{dtype.name}": number for (op, dtype), number in sorted(
        operations.counts.items(), key=lambda item: (item[0][0], item[0][1].name)
    ) if number}  # fmt: skip


def _bytes(cost: StatementCost) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for flow in cost.flows:
        for name, _, size in _accesses(flow):
            found[name] += size
    return dict(found)


def _accesses(flow: Flow) -> list[tuple[str, str, float]]:
    """Memory, 'read' or 'write', and bytes, for the ends of a flow and for each unit on its way."""
    found = [(flow.source, "read", flow.bytes), (flow.sink, "write", flow.bytes)]
    for unit in flow.way.middle:
        found += [(unit, "write", flow.bytes), (unit, "read", flow.bytes)]
    return [(parse_unit(unit)[0], word, size) for unit, word, size in found]


def _main_memory_cycles(cost: StatementCost, main: str) -> float:
    """Cycles for which the buses at the main memory are needed, the busiest one."""
    needed: dict[int, float] = defaultdict(float)
    for flow in cost.flows:
        for hop in flow.way.hops:
            if main in (parse_unit(hop.source)[0], parse_unit(hop.sink)[0]):
                needed[hop.index] += flow.bytes / hop.bus.bytes_per_cycle
    return max(needed.values(), default=0.0)


def _bound(cost: StatementCost) -> str:
    resource, cycles = max(cost.demand.items(), key=lambda item: item[1], default=("", 0.0))
    return "compute" if cost.compute_cycles >= cycles or not resource else resource


def _memories(found: Simulation) -> tuple[MemoryJson, ...]:
    read: dict[str, float] = defaultdict(float)
    written: dict[str, float] = defaultdict(float)
    for cost in found.costs:
        for flow in cost.flows:
            read[flow.source] += flow.bytes
            written[flow.sink] += flow.bytes
            for unit in flow.way.middle:
                read[unit] += flow.bytes
                written[unit] += flow.bytes
    uses = {use.memory: use for use in found.memories}
    result: list[MemoryJson] = []
    for name, memory in found.model.mem_units.items():
        for number in range(memory.count):
            unit = f"{name}[{number}]"
            use = uses.get(unit)
            if use is None and not read[unit] and not written[unit]:
                continue
            result.append(
                MemoryJson(
                    memory=unit, capacity_bytes=memory.size, peak_bytes=use.peak if use else 0,
                    placed_bytes=use.placed if use else None, read_bytes=read[unit], written_bytes=written[unit],
                )
            )  # fmt: skip
    return tuple(result)


def _unverified(model: HardwareModel) -> tuple[SourceJson, ...]:
    return tuple(
        SourceJson(path=entry.path, value=entry.value, unit=entry.unit, note=entry.note)
        for entry in model.unverified()
    )
