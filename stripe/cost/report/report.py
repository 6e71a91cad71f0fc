"""The result of a simulation or of counting as data, for `stripe-sim --json`, tables and pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from stripe.cost.counts.loops import Halo
from stripe.cost.counts.operations import Operations
from stripe.cost.counts.traffic import KernelCounts, rows_in_order
from stripe.cost.report.schema import (
    BusJson,
    CountsJson,
    KernelCountsJson,
    MemoryJson,
    SimulationJson,
    SliceJson,
    SourceJson,
    StatementJson,
    TrafficJson,
    UnitJson,
)  # fmt: skip
from stripe.cost.time.contention import Run
from stripe.cost.time.pieces import reads_and_writes
from stripe.cost.time.simulate import Simulation
from stripe.cost.time.statement import Flow, StatementCost
from stripe.hw.graph import parse_unit
from stripe.hw.schema import HardwareModel
from stripe.ir import Block


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
    owned = _transfers_of(found)
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
            _statement(cost, run, deps, owned.get(cost.number, ()), found, main)
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


def _transfers_of(found: Simulation) -> dict[int, tuple[int, ...]]:
    """For each kernel the transfers that belong to it: what a transfer brings belongs to the first kernel that reads
    it, what one takes away to the last that wrote it."""
    statements = found.program.main.statements
    uses = [
        reads_and_writes(s) if isinstance(s, Block) else (frozenset[str](), frozenset[str]())
        for s in statements
    ]
    kernels = [cost.number for cost in found.costs if not cost.transfer]
    owned: dict[int, tuple[int, ...]] = {}
    for cost in found.costs:
        if not cost.transfer:
            continue
        reads, writes = uses[cost.number]
        after = (k for k in kernels if k > cost.number and uses[k][0] & writes)
        before = (k for k in reversed(kernels) if k < cost.number and uses[k][1] & reads)
        owner = next(after, None) if writes & _near(found) else next(before, None)
        if owner is not None:
            owned[owner] = (*owned.get(owner, ()), cost.number)
    return owned


def _near(found: Simulation) -> frozenset[str]:
    """The names in main of buffers that lie elsewhere than in the main memory."""
    main = found.model.main_memory
    refs = found.program.main.refinements
    return frozenset(ref.name for ref in refs if ref.location and ref.location.name != main)


def _statement(
    cost: StatementCost, run: Run, deps: tuple[int, ...], owned: tuple[int, ...], found: Simulation, main: str
) -> StatementJson:
    model = found.model
    cycles = run.end - run.start
    with_it = [cost, *(found.costs[number] for number in owned)]
    moved = sum(each.bytes_at(main) for each in with_it)
    ops = cost.operations.total
    memory_time = _main_memory_cycles(with_it, main)
    roof = min(cost.ops_per_cycle, ops / memory_time) if memory_time else cost.ops_per_cycle
    taken = max(cycles, memory_time, sum(found.runs[n].end - found.runs[n].start for n in owned))
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
        transfers=owned,
        ops_per_cycle=ops / cycles if cycles else 0.0,
        sustained_ops_per_cycle=ops / taken if taken else 0.0,
        peak_ops_per_cycle=cost.ops_per_cycle,
        main_bytes_per_cycle=moved / memory_time if memory_time else None,
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
    """Memory, 'read' or 'write', and bytes, for the ends of a flow and for each unit of its route."""
    found = [(flow.source, "read", flow.bytes), (flow.sink, "write", flow.bytes)]
    for unit in flow.route.units:
        found += [(unit, "write", flow.bytes), (unit, "read", flow.bytes)]
    return [(parse_unit(unit)[0], word, size) for unit, word, size in found]


def _main_memory_cycles(costs: Sequence[StatementCost], main: str) -> float:
    """Cycles for which the buses at the main memory are needed, the busiest one."""
    needed: dict[int, float] = defaultdict(float)
    for flow in (flow for cost in costs for flow in cost.flows):
        for hop in flow.route.hops:
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
            for unit in flow.route.units:
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
