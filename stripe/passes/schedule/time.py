"""How long statements take on a machine, and list scheduling of them on its units.

The times are those of `stripe.cost` for a statement alone; `stripe-sim` tells what happens when several share buses
and ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stripe.cost.time.workload import CostModel
from stripe.ir import Block, Nest


@dataclass(frozen=True, slots=True)
class Task:
    """A statement as a load on units: `units` are the instances that may run it, `cycles` how long one is busy.
    `shared` are the cycles for which it needs all of each bus and of the ports of each memory, which statements share.
    """

    units: tuple[str, ...]
    cycles: float
    shared: tuple[tuple[str, float], ...] = ()


def task_of(nest: Nest, number: int, model: CostModel | None) -> Task:
    """The load of a direct statement of the innermost block of `nest`, when it has the machine for itself.

    Without a model each block takes one cycle for each of its points. Raises ConfigError when the machine cannot run
    it.
    """
    statement = nest.block.statements[number]
    if not isinstance(statement, Block):
        return Task((), 1.0)
    if model is None:
        return Task((str(statement.location),) if statement.location else (), float(statement.points))
    cost = model.statement(nest.enter(number), number)
    unit = model.machine.model.units.get(cost.unit)  # a transfer without a unit goes by its bus
    instances = cost.instances or range(unit.count if unit is not None else 1)
    units = tuple(f"{cost.unit}[{instance}]" for instance in instances)
    shared = tuple(
        (name, need) for name, need in sorted(cost.demand.items()) if " " in name
    )  # no unit's name
    return Task(units, max(cost.cycles, 1.0), shared)


@dataclass(frozen=True, slots=True)
class Timetable:
    """When each task starts, in cycles, and what no schedule can beat. `makespan` is that of the units; buses and ports
    that tasks share may make it longer."""

    starts: tuple[float, ...]
    makespan: float
    critical_path: float
    busiest_unit: tuple[str, float]
    busiest_shared: tuple[str, float]

    @property
    def lower_bound(self) -> float:
        return max(self.critical_path, self.busiest_unit[1], self.busiest_shared[1])

    @property
    def estimate(self) -> float:
        """Cycles that the schedule takes at least: the units, and what they share, need them."""
        return max(self.makespan, self.busiest_shared[1])


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
        tuple(starts), makespan, max(tails, default=0.0), _busiest_unit(tasks), _busiest_shared(tasks)
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


def _busiest_shared(tasks: Sequence[Task]) -> tuple[str, float]:
    loads: dict[str, float] = {}
    for task in tasks:
        for resource, cycles in task.shared:
            loads[resource] = loads.get(resource, 0.0) + cycles
    return max(loads.items(), key=lambda item: item[1], default=("no bus", 0.0))
