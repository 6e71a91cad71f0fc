"""How long statements take on a machine, and list scheduling of them on its units.

Estimates, for the order alone: `stripe-sim` tells what happens. A transfer takes its bytes over its route, a kernel its
operations at the unit's rate, a kernel that streams the longer of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stripe.hw.graph import Route, UnitGraph
from stripe.hw.schema import ExecUnit, HardwareModel
from stripe.ir import Agg, Block, Intrinsic, Load, Location, Refinement, Special, Statement, Store
from stripe.poly import Nest, count_domain


@dataclass(frozen=True, slots=True)
class Task:
    """A statement as a load on units: `units` are the instances that may run it, `cycles` how long one is busy; `buses`
    the cycles that each bus of its transfers is busy.
    """

    units: tuple[str, ...]
    cycles: float
    buses: tuple[tuple[str, float], ...] = ()


class Machine:
    """Times of statements; without a hardware model each block takes one cycle for each of its points."""

    def __init__(self, hardware: HardwareModel | None) -> None:
        self._hardware = hardware
        self._graph = UnitGraph(hardware) if hardware is not None else None

    def task(self, nest: Nest, number: int) -> Task:
        """The load of a direct statement of the innermost block of `nest`."""
        statement = nest.block.statements[number]
        if not isinstance(statement, Block):
            return Task((), 1.0)
        units = self._instances(statement.location)
        child = nest.enter(number)
        compute, transfer, buses = self._work(child, statement.location)
        return Task(units, max(compute, transfer, 1.0), tuple(sorted(buses.items())))

    def _instances(self, location: Location) -> tuple[str, ...]:
        if not location:
            return ()
        device = location.devices[-1]
        if device.units and all(unit.is_constant for unit in device.units):
            return (str(device),)
        if self._hardware is None or device.name not in self._hardware.units:
            return (device.name,)
        return tuple(f"{device.name}[{n}]" for n in range(self._hardware.units[device.name].count))

    def _work(self, nest: Nest, unit: Location) -> tuple[float, float, dict[str, float]]:
        """Cycles of computing and of transferring in all leaf statements below, and the cycles of each bus."""
        compute = transfer = 0.0
        buses: dict[str, float] = {}
        for inner in nest.walk():
            leaves = [s for s in inner.block.statements if not isinstance(s, Block)]
            if not leaves:
                continue
            points = count_domain(inner.domain)
            ends = _transfer_ends(inner.block)
            route = self._route(*ends) if ends is not None else None
            if route is not None and ends is not None:
                bytes_moved = points * ends[0].dtype.bytes
                transfer += route.cycles(bytes_moved)
                for hop in route.hops:
                    name = hop.bus.name or f"bus {hop.index}"
                    buses[name] = buses.get(name, 0.0) + bytes_moved / hop.bus.bytes_per_cycle
            else:
                compute += points * self._cycles_per_point(inner.block, leaves, inner.block.location or unit)
        return compute, transfer, buses

    def _route(self, source: Refinement, sink: Refinement) -> Route | None:
        if self._graph is None:
            return None
        return self._graph.find_route(_unit_name(source.location), _unit_name(sink.location))

    def _cycles_per_point(self, block: Block, leaves: Sequence[Statement], location: Location) -> float:
        unit = self._hardware.exec_units.get(location.name) if self._hardware is not None else None
        total = 0.0
        for statement in leaves:
            if isinstance(statement, Special):
                total += block.ref(statement.outputs[0]).elements
            elif isinstance(statement, Intrinsic):
                total += 1 / _rate(unit, statement.op, block)
            elif isinstance(statement, Store) and block.ref(statement.ref).agg is not Agg.ASSIGN:
                total += 1 / _rate(unit, block.ref(statement.ref).agg.value, block)
        return total if unit is not None else 1.0


def _rate(unit: ExecUnit | None, op: str, block: Block) -> float:
    """Operations per cycle; 1 where the unit does not say."""
    rate = unit.rate(op, block.refinements[0].dtype) if unit is not None and block.refinements else None
    return rate or 1.0


def _unit_name(location: Location) -> str:
    device = location.devices[-1] if location.devices else None
    if device is None:
        return ""
    number = device.units[0].offset if device.units and device.units[0].is_constant else 0
    return f"{device.name}[{number}]"


def _transfer_ends(block: Block) -> tuple[Refinement, Refinement] | None:
    """Source and target of a block that only copies between two memories."""
    match block.statements:
        case (Load(scalar, source), Store(target, value)) if scalar == value:
            ends = (block.ref(source), block.ref(target))
            return ends if ends[0].location != ends[1].location else None
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Timetable:
    """When each task starts, in cycles, and what no schedule can beat."""

    starts: tuple[float, ...]
    makespan: float
    critical_path: float
    busiest_unit: tuple[str, float]
    busiest_bus: tuple[str, float]

    @property
    def lower_bound(self) -> float:
        return max(self.critical_path, self.busiest_unit[1], self.busiest_bus[1])


def list_schedule(tasks: Sequence[Task], deps: Sequence[Sequence[int]]) -> Timetable:
    """List scheduling: of the tasks that may start earliest, the one with the longest path to the end goes first.

    `deps[n]` are earlier tasks that task n waits for. A task without units runs at once.
    """
    tails = _longest_tails(tasks, deps)
    waiting = [len(wanted) for wanted in deps]
    followers: list[list[int]] = [[] for _ in tasks]
    for number, wanted in enumerate(deps):
        for dep in wanted:
            followers[dep].append(number)
    released = [0.0] * len(tasks)
    starts = [0.0] * len(tasks)
    free: dict[str, float] = {}
    ready = [number for number, count in enumerate(waiting) if count == 0]
    while ready:
        number, start, unit = _next(ready, tasks, released, free, tails)
        ready.remove(number)
        starts[number] = start
        end = start + tasks[number].cycles
        if unit:
            free[unit] = end
        for follower in followers[number]:
            released[follower] = max(released[follower], end)
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.append(follower)
    makespan = max((s + t.cycles for s, t in zip(starts, tasks, strict=True)), default=0.0)
    return Timetable(
        tuple(starts), makespan, max(tails, default=0.0), _busiest_unit(tasks), _busiest_bus(tasks)
    )


def _next(
    ready: Sequence[int],
    tasks: Sequence[Task],
    released: Sequence[float],
    free: Mapping[str, float],
    tails: Sequence[float],
) -> tuple[int, float, str]:
    """The ready task to start next, when, and on which unit."""
    best: tuple[float, float, int, str] | None = None
    for number in ready:
        unit = min(tasks[number].units, key=lambda u: (free.get(u, 0.0), u), default="")
        start = max(released[number], free.get(unit, 0.0))
        key = (start, -tails[number], number, unit)
        if best is None or key < best:
            best = key
    assert best is not None
    return best[2], best[0], best[3]


def _longest_tails(tasks: Sequence[Task], deps: Sequence[Sequence[int]]) -> list[float]:
    """For each task the longest path from its start to the end."""
    tails = [task.cycles for task in tasks]
    for number in range(len(tasks) - 1, -1, -1):
        for dep in deps[number]:
            tails[dep] = max(tails[dep], tasks[dep].cycles + tails[number])
    return tails


def _busiest_unit(tasks: Sequence[Task]) -> tuple[str, float]:
    """The kind of unit with the most work for each instance."""
    loads: dict[tuple[str, ...], float] = {}
    for task in tasks:
        if task.units:
            loads[task.units] = loads.get(task.units, 0.0) + task.cycles / len(task.units)
    units, cycles = max(loads.items(), key=lambda item: item[1], default=(("no unit",), 0.0))
    return " or ".join(units), cycles


def _busiest_bus(tasks: Sequence[Task]) -> tuple[str, float]:
    loads: dict[str, float] = {}
    for task in tasks:
        for bus, cycles in task.buses:
            loads[bus] = loads.get(bus, 0.0) + cycles
    return max(loads.items(), key=lambda item: item[1], default=("no bus", 0.0))
