"""The units, buses and memories of a simulation, as reports show them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from stripe.cost.report.schema import BusJson, MemoryJson, UnitJson
from stripe.cost.time.simulate import Simulation
from stripe.cost.time.statement import Flow, Resource
from stripe.hw.graph import parse_unit
from stripe.hw.schema import HardwareModel


def unit_reports(found: Simulation) -> tuple[UnitJson, ...]:
    """Every unit that computes, then every one that transfers."""
    occupied: dict[str, list[int]] = defaultdict(list)
    for position, run in enumerate(found.runs):
        for unit in run.units:
            occupied[unit].append(position)
    return tuple(
        _unit(unit, kind, occupied[unit], found)
        for kind, units in (("compute", found.model.exec_units), ("transfer", found.model.tx_units))
        for name in units
        for unit in found.machine.graph.instances(name)
    )


def _unit(unit: str, kind: str, positions: list[int], found: Simulation) -> UnitJson:
    """Busy and useful cycles of a unit, and its idle cycles by cause. `positions` are the statements that occupy it."""
    costs, runs, total = found.costs, found.runs, found.cycles
    stalls: dict[str, float] = defaultdict(float)
    inside = _load_of(unit, kind, found)
    busy = useful = reached = 0.0

    def idle(cause: str, start: float, end: float) -> float:
        """A stretch without a statement of its own: the cycles of work inside other statements."""
        worked = inside.between(start, end)
        stalls[cause] += end - start - worked
        return worked

    for position in sorted(positions, key=lambda p: (runs[p].start, p)):
        run, cost = runs[position], costs[position]
        if run.ready > reached:
            by_transfer = run.last_dep is not None and costs[run.last_dep].transfer
            busy += idle("waits for a transfer" if by_transfer else "waits for results", reached, run.ready)
        free = max(reached, run.ready)
        if run.start > free:
            busy += idle("waits for other units", free, run.start)
        for cause, cycles in cost.stalls.items():
            stalls[cause] += cycles
        for resource, cycles in run.slowed.items():
            stalls[f"shares {resource}"] += cycles
        busy += run.end - max(run.start, min(reached, run.end))
        useful += cost.own.useful.get(unit, cost.work.cycles * cost.work.utilisation)
        reached = max(reached, run.end)
    if total > reached:
        busy += idle("nothing to do", reached, total)
    if kind == "transfer":
        useful = inside.between(0.0, total)
    else:
        useful += sum(cost.inside.useful.get(unit, 0.0) for cost in costs)
    return UnitJson(
        unit=unit,
        kind=kind,
        busy_cycles=busy,
        useful_cycles=useful,
        utilisation=useful / total if total else 0.0,
        stalls={cause: cycles for cause, cycles in stalls.items() if cycles > 1e-9},
    )


@dataclass(frozen=True, slots=True)
class _Load:
    """The work of a unit over time: `done` cycles of it until each of `times`, between which its rate is constant."""

    times: Sequence[float]
    done: Sequence[float]

    def between(self, start: float, end: float) -> float:
        """The cycles of work in a stretch of time."""
        first, last = np.interp((start, end), self.times, self.done)
        return float(last - first)


def _load_of(unit: str, kind: str, found: Simulation) -> _Load:
    """The work of a unit inside statements: of one that computes, on its own and in those that do not occupy it; of one
    that transfers, what flows through it. A statement spreads it evenly over its time."""
    needs: list[tuple[float, float, Mapping[str, float]]] = []
    for cost, run in zip(found.costs, found.runs, strict=True):
        if kind == "compute":
            cycles = {unit: cost.inside.compute.get(unit, 0.0)}
        else:
            cycles = {unit: cost.demand.get(Resource.unit(unit), 0.0), **_on_buses(unit, cost.flows)}
        if run.end > run.start and any(cycles.values()):
            needs.append((run.start, run.end, cycles))
    times, done = [0.0], [0.0]
    waiting = sorted(needs, key=itemgetter(0))
    active: list[tuple[float, float, Mapping[str, float]]] = []
    for time in sorted({time for start, end, _ in needs for time in (start, end)}):
        rates: dict[str, float] = defaultdict(float)
        for start, end, cycles in active:
            for name, needed in cycles.items():
                rates[name] += needed / (end - start)
        rate = min(1.0, max(rates.values(), default=0.0))  # in both directions at once
        times.append(time)
        done.append(done[-1] + rate * (time - times[-2]))
        active = [need for need in active if need[1] > time]
        while waiting and waiting[0][0] <= time:
            active.append(waiting.pop(0))
    return _Load(times, done)


def _on_buses(unit: str, flows: Iterable[Flow]) -> dict[str, float]:
    """The cycles of each bus at a transfer unit for the flows that pass through it."""
    through: dict[str, float] = defaultdict(float)
    for flow in flows:
        if unit in flow.route.units:
            for hop in flow.route.hops:
                if unit in (hop.source, hop.sink):
                    through[f"bus {hop.index}"] += flow.bytes / hop.bus.bytes_per_cycle
    return through


def busy_cycles(
    needs: Mapping[Resource, float], flows: Sequence[Flow], model: HardwareModel
) -> dict[str, float]:
    """The cycles for which each resource is needed, and each transfer unit that flows pass through: those of its
    busiest bus, since they pass in both directions at once."""
    busy = {str(resource): cycles for resource, cycles in needs.items()}
    for unit in dict.fromkeys(unit for flow in flows for unit in flow.route.units):
        if parse_unit(unit)[0] in model.tx_units:
            busy[unit] = max(busy.get(unit, 0.0), *_on_buses(unit, flows).values())
    return busy


def bus_reports(found: Simulation) -> tuple[BusJson, ...]:
    """Every bus that carried anything."""
    carried: dict[int, float] = defaultdict(float)
    for cost in found.costs:
        for flow in cost.flows:
            for hop in flow.route.hops:
                carried[hop.index] += flow.bytes
    total = found.cycles
    return tuple(
        BusJson(
            name=bus.name or str(index),
            bytes=carried[index],
            busy_cycles=carried[index] / bus.bytes_per_cycle,
            utilisation=carried[index] / bus.bytes_per_cycle / total if total else 0.0,
        )
        for index, bus in enumerate(found.model.buses)
        if carried[index]
    )


def memory_reports(found: Simulation) -> tuple[MemoryJson, ...]:
    """Every memory that is read or written, or holds anything."""
    read: dict[str, float] = defaultdict(float)
    written: dict[str, float] = defaultdict(float)
    for cost in found.costs:
        for flow in cost.flows:
            for unit in (flow.source, *flow.route.units):
                read[unit] += flow.bytes
            for unit in (*flow.route.units, flow.sink):
                written[unit] += flow.bytes
    return tuple(
        MemoryJson(
            memory=unit,
            capacity_bytes=memory.size,
            peak_bytes=max((held for _, held in found.held.get(unit, ())), default=0),
            placed_bytes=found.placed.get(unit) if unit in found.held else None,
            read_bytes=read[unit],
            written_bytes=written[unit],
        )
        for name, memory in found.model.mem_units.items()
        for unit in found.machine.graph.instances(name)
        if unit in found.held or read[unit] or written[unit]
    )


def idle_memories(used: Iterable[MemoryJson], model: HardwareModel) -> dict[str, int]:
    """By name, the number of memories that are not among those `used`."""
    counts = Counter(parse_unit(memory.memory)[0] for memory in used)
    idle = ((name, memory.count - counts[name]) for name, memory in model.mem_units.items())
    return {name: count for name, count in idle if count}
