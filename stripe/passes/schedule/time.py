"""Loads of statements on a machine, and list scheduling of them on its units.

`stripe.cost` gives the cycles of a statement alone; `stripe-sim` simulates statements that share buses and ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripe.ir import Block, Nest, Stage, keep_statements, transitive_reduction, with_statements
from stripe.ir.frozen import replace
from stripe.passes.base import PassContext
from stripe.passes.schedule.build import reuse_deps
from stripe.passes.schedule.plan import ScheduleStep, SwapIn, SwapOut
from stripe.poly import statement_deps

if TYPE_CHECKING:
    from stripe.cost.time.machine import Machine
    from stripe.cost.time.workload import CostModel


@dataclass(frozen=True, slots=True)
class UnitLoad:
    """A statement as a load on units: `units` are the instances that may run it, each busy for `cycles` then. `shared`
    are the cycles for which it needs all of each bus and of the ports of each memory, which statements share."""

    units: tuple[str, ...]
    cycles: float
    shared: tuple[tuple[str, float], ...] = ()


def load_of(nest: Nest, number: int, model: CostModel | None) -> UnitLoad:
    """The load of a direct statement of the innermost block of `nest`, when it has the machine for itself.

    Without a model each block takes one cycle for each of its points. Raises ConfigError when the machine cannot run
    it.
    """
    statement = nest.block.statements[number]
    if not isinstance(statement, Block):
        return UnitLoad((), 1.0)
    if model is None:
        return UnitLoad((str(statement.location),) if statement.location else (), float(statement.points))
    cost = model.statement(nest.enter(number), number)
    unit = model.machine.model.units.get(cost.units.name)  # a transfer without a unit goes by its bus
    instances = cost.units.numbers or range(unit.count if unit is not None else 1)
    units = tuple(f"{cost.units.name}[{instance}]" for instance in instances)
    shared = sorted((str(each), need) for each, need in cost.demand.items() if each.is_shared)
    return UnitLoad(units, max(cost.cycles, 1.0), tuple(shared))


@dataclass(frozen=True, slots=True)
class Timetable:
    """The start of each load, in cycles, and lower bounds. `makespan` counts the units; shared buses and ports may make
    it longer."""

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
        """Lower bound on the cycles of this schedule: the makespan, or the busiest shared resource."""
        return max(self.makespan, self.busiest_shared[1])


def list_schedule(loads: Sequence[UnitLoad], deps: Sequence[Sequence[int]]) -> Timetable:
    """List scheduling: of the loads that may start earliest, the load with the longest path to the end goes first.

    `deps[n]` are earlier loads that load n waits for. A load without units runs at once.
    """
    # The longest path from the start of each to the end.
    tails = [load.cycles for load in loads]
    for number in range(len(loads) - 1, -1, -1):
        for dep in deps[number]:
            tails[dep] = max(tails[dep], loads[dep].cycles + tails[number])
    waiting = [len(wanted) for wanted in deps]
    followers: list[list[int]] = [[] for _ in loads]
    for number, wanted in enumerate(deps):
        for dep in wanted:
            followers[dep].append(number)
    released = [0.0] * len(loads)
    starts = [0.0] * len(loads)
    free: dict[str, float] = {}
    ready = [number for number, count in enumerate(waiting) if count == 0]
    while ready:
        options: list[tuple[float, float, int, str]] = []
        for number in ready:
            unit = min(loads[number].units, key=lambda u: (free.get(u, 0.0), u), default="")
            options.append((max(released[number], free.get(unit, 0.0)), -tails[number], number, unit))
        start, _, number, unit = min(options)
        ready.remove(number)
        starts[number] = start
        end = start + loads[number].cycles
        if unit:
            free[unit] = end
        for follower in followers[number]:
            released[follower] = max(released[follower], end)
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.append(follower)
    makespan = max((s + load.cycles for s, load in zip(starts, loads, strict=True)), default=0.0)
    by_unit = ((" or ".join(load.units), load.cycles / len(load.units)) for load in loads if load.units)
    shared = (need for load in loads for need in load.shared)
    return Timetable(
        tuple(starts),
        makespan,
        max(tails, default=0.0),
        _busiest(by_unit, "no unit"),
        _busiest(shared, "no bus"),
    )


def list_scheduled(
    nest: Nest, steps: Sequence[ScheduleStep], machine: Machine | None, context: PassContext
) -> tuple[Block, float]:
    """The innermost block of `nest`, whose statements make the `steps`, with their dependences and in the order of
    their start; and the estimated cycles."""
    from stripe.cost.time.workload import CostModel  # with the simulator behind it

    data = statement_deps(nest, reduced=False)
    deps = transitive_reduction([{*a, *b} for a, b in zip(reuse_deps(steps), data, strict=True)])
    model = CostModel(machine) if machine is not None else None
    loads = [load_of(nest, number, model) for number in range(len(nest.block.statements))]
    table = list_schedule(loads, deps)
    statements = [replace(s, deps=d) for s, d in zip(nest.block.statements, deps, strict=True)]
    # Statements wait for earlier statements only, so that equal starts in their old order keep dependences, too.
    order = sorted(range(len(statements)), key=lambda number: (table.starts[number], number))
    block = keep_statements(with_statements(nest.block, statements), order)
    ins, outs = (sum(isinstance(step, kind) for step in steps) for kind in (SwapIn, SwapOut))
    streams = sum(inner.pipeline_depth is not None for inner in block.blocks)
    context.applied(block, f"{len(steps)} statements: {ins} swap-ins, {outs} swap-outs, {streams} streamed")
    gap = (table.estimate / table.lower_bound - 1) * 100 if table.lower_bound else 0.0
    (unit, busy), (shared, moved) = table.busiest_unit, table.busiest_shared
    context.analysis(
        block,
        f"estimated {table.estimate:.0f} cycles, {gap:.1f} % above the lower bound {table.lower_bound:.0f} "
        f"(critical path {table.critical_path:.0f}, {unit} {busy:.0f}, {shared} {moved:.0f})",
    )
    return replace(block, stage=Stage.SCHEDULED), table.estimate


def _busiest(needs: Iterable[tuple[str, float]], none: str) -> tuple[str, float]:
    """The resource with the most cycles."""
    totals: dict[str, float] = {}
    for resource, cycles in needs:
        totals[resource] = totals.get(resource, 0.0) + cycles
    return max(totals.items(), key=lambda item: item[1], default=(none, 0.0))
