"""Simulates a program on a machine: when each statement of `main` runs where, and what it waits for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stripe.cost.time.contention import Run, Task, simulate
from stripe.cost.time.machine import Machine, check_locations
from stripe.cost.time.occupancy import Life, MemoryUse, lives, memory_use
from stripe.cost.time.statement import StatementCost
from stripe.cost.time.workload import CostModel
from stripe.hw.schema import HardwareModel
from stripe.ir import Block, Nest, Program, StripeError


@dataclass(frozen=True)
class UnitUse:
    """What one unit did: cycles in which it had a statement, cycles in which it did useful work, and its idle cycles by
    cause."""

    unit: str
    kind: str
    busy: float
    useful: float
    stalls: Mapping[str, float]


@dataclass(frozen=True)
class BusUse:
    """What one bus carried, and for how many cycles it was needed."""

    name: str
    bytes: float
    cycles: float


@dataclass(frozen=True)
class Simulation:
    """The result: `costs` and `runs` belong to `program.main`'s statements, in their order."""

    program: Program
    model: HardwareModel
    scheduled: bool
    costs: tuple[StatementCost, ...]
    runs: tuple[Run, ...]
    units: tuple[UnitUse, ...]
    buses: tuple[BusUse, ...]
    energy: Mapping[str, float]
    lives: tuple[Life, ...]
    memories: tuple[MemoryUse, ...]
    notes: tuple[str, ...]

    @property
    def cycles(self) -> float:
        """Inference latency."""
        return max((run.end for run in self.runs), default=0.0)

    @property
    def deps(self) -> tuple[tuple[int, ...], ...]:
        """The statements that each waits for, as positions in `costs`."""
        return _dependences(self.program.main, self.scheduled, [cost.number for cost in self.costs])


def simulate_program(program: Program, model: HardwareModel) -> Simulation:
    """Runs the program once on the machine.

    Statements keep to the dependences that are set on them; where none are, they run one after the other. What has no
    location runs on the units that take least time, on data in the main memory.

    Raises ConfigError for locations, operations and routes that the machine lacks; StripeError for a `main` that holds
    anything but blocks.
    """
    check_locations(program.entry, model)
    machine = Machine(model)
    costs = _costs(program, machine)
    main = program.main
    scheduled = "scheduled" in main.tags or any(statement.deps for statement in main.statements)
    deps = _dependences(main, scheduled, [cost.number for cost in costs])
    tasks = [_task(cost, machine, own) for cost, own in zip(costs, deps, strict=True)]
    channels = {
        unit: model.tx_units[name].channels
        for name in model.tx_units
        for unit in machine.graph.instances(name)
    }
    runs = simulate(tasks, channels)
    total = max((run.end for run in runs), default=0.0)
    found = lives(program, costs, runs, machine)
    memories = memory_use(found, program, machine)
    return Simulation(
        program=program,
        model=model,
        scheduled=scheduled,
        costs=tuple(costs),
        runs=tuple(runs),
        units=_unit_uses(costs, runs, machine, total),
        buses=_bus_uses(costs, machine),
        energy=_energy(costs, machine, total),
        lives=tuple(found),
        memories=memories,
        notes=tuple(_notes(costs, scheduled, memories, len(program.main.statements))),
    )


def _costs(program: Program, machine: Machine) -> list[StatementCost]:
    try:
        main = program.main
    except ValueError as error:
        raise StripeError(str(error), hint="tag the block of the kernels #main") from None
    number = next(n for n, s in enumerate(program.entry.statements) if s is main)
    nest = Nest.root(program.entry).enter(number)
    model = CostModel(machine)
    costs: list[StatementCost] = []
    for place, statement in enumerate(main.statements):
        if not isinstance(statement, Block):
            raise StripeError(
                f"statement {place} of main is no block", hint="put each operation into a block of its own"
            )
        costs.append(model.statement(nest.enter(place), place))
    return costs


def _dependences(main: Block, scheduled: bool, numbers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    if not scheduled:
        return tuple((position - 1,) if position else () for position in range(len(numbers)))
    return tuple(main.statements[number].deps for number in numbers)


def _task(cost: StatementCost, machine: Machine, deps: tuple[int, ...]) -> Task:
    """Transfers occupy their transfer unit, computing its execution units."""
    pools: list[tuple[tuple[str, ...], int]] = []
    if cost.unit in machine.model.units:
        if cost.instances is None:
            pools = [(machine.graph.instances(cost.unit), cost.parallel)]
        else:
            pools = [((f"{cost.unit}[{number}]",), 1) for number in cost.instances]
    return Task(
        cost.name,
        cost.latency,
        max(0.0, cost.cycles - cost.latency),
        tuple(pools),
        cost.demand,
        deps,
        cost.compute_cycles if cost.instances is None else 0.0,
    )


def _unit_uses(
    costs: Sequence[StatementCost], runs: Sequence[Run], machine: Machine, total: float
) -> tuple[UnitUse, ...]:
    model = machine.model
    found: list[UnitUse] = []
    occupied: dict[str, list[int]] = defaultdict(list)
    for position, run in enumerate(runs):
        for unit in run.units:
            occupied[unit].append(position)
    for kind, names in (("compute", model.exec_units), ("transfer", model.tx_units)):
        for name in names:
            for unit in machine.graph.instances(name):
                use = _unit_use(unit, kind, occupied[unit], costs, runs, total)
                found.append(_with_inner_work(use, costs, total))
    return tuple(found)


def _moved(unit: str, costs: Sequence[StatementCost]) -> float:
    """Cycles for which a transfer unit is needed: by transfers one after the other, and by its busiest bus, since what
    streams through it to and from other units goes in both directions at once."""
    through: dict[int, float] = defaultdict(float)
    for cost in costs:
        for flow in cost.flows:
            if unit in flow.route.units:
                for hop in flow.route.hops:
                    if unit in (hop.source, hop.sink):
                        through[hop.index] += flow.bytes / hop.bus.bytes_per_cycle
    return max(sum(cost.demand.get(unit, 0.0) for cost in costs), *through.values(), 0.0)


def _unit_use(
    unit: str, kind: str, mine: list[int],
    costs: Sequence[StatementCost], runs: Sequence[Run], total: float,
) -> UnitUse:  # fmt: skip
    stalls: dict[str, float] = defaultdict(float)
    busy = useful = reached = 0.0
    for position in sorted(mine, key=lambda p: (runs[p].start, p)):
        run, cost = runs[position], costs[position]
        if run.start > reached:
            for cause, cycles in _waited(reached, run, costs):
                stalls[cause] += cycles
        for cause, cycles in cost.stalls.items():
            stalls[cause] += cycles
        for resource, cycles in run.slowed.items():
            stalls[f"shares {resource}"] += cycles
        busy += run.end - max(run.start, min(reached, run.end))
        useful += cost.useful.get(unit, cost.compute_cycles * cost.utilisation)
        reached = max(reached, run.end)
    if total > reached:
        stalls["nothing to do"] += total - reached
    return UnitUse(unit, kind, busy, useful, stalls)


def _with_inner_work(use: UnitUse, costs: Sequence[StatementCost], total: float) -> UnitUse:
    """With what the unit did inside of statements that do not occupy it."""
    if use.kind == "transfer":
        useful = _moved(use.unit, costs)
        busy = max(use.busy, useful)
    else:
        useful = use.useful + sum(cost.useful_inside.get(use.unit, 0.0) for cost in costs)
        busy = min(total, use.busy + sum(cost.inside.get(use.unit, 0.0) for cost in costs))
    idle = {"nothing to do": total - busy} if use.busy == 0 else {}
    stalls = {cause: value for cause, value in {**use.stalls, **idle}.items() if value > 1e-9}
    return UnitUse(use.unit, use.kind, busy, useful, stalls)


def _waited(reached: float, run: Run, costs: Sequence[StatementCost]) -> list[tuple[str, float]]:
    """Why a unit stood still before a task: for data, for results, or for another unit of the task."""
    found: list[tuple[str, float]] = []
    if run.ready > reached:
        by_transfer = run.last_dep is not None and costs[run.last_dep].transfer
        found.append(("waits for a transfer" if by_transfer else "waits for results", run.ready - reached))
    late = run.start - max(reached, run.ready)
    if late > 0:
        found.append(("waits for other units", late))
    return found


def _bus_uses(costs: Sequence[StatementCost], machine: Machine) -> tuple[BusUse, ...]:
    carried: dict[int, float] = defaultdict(float)
    for cost in costs:
        for flow in cost.flows:
            for hop in flow.route.hops:
                carried[hop.index] += flow.bytes
    return tuple(
        BusUse(bus.name or str(index), carried[index], carried[index] / bus.bytes_per_cycle)
        for index, bus in enumerate(machine.model.buses)
        if carried[index]
    )


def _energy(costs: Sequence[StatementCost], machine: Machine, total: float) -> dict[str, float]:
    """pJ by component; static power for the whole time (1 mW for 1 us is 1000 pJ)."""
    found: dict[str, float] = defaultdict(float)
    for cost in costs:
        for component, value in cost.energy.items():
            found[component] += value
    model = machine.model
    power = model.leakage_mW + sum(unit.leakage_mW * unit.count for unit in model.units.values())
    found["leakage"] += power * model.microseconds(total) * 1000.0
    return {component: value for component, value in sorted(found.items()) if value}


def _notes(
    costs: Sequence[StatementCost], scheduled: bool, memories: Sequence[MemoryUse], statements: int
) -> list[str]:
    notes: list[str] = []
    if not scheduled and statements > 1:
        notes.append("no dependences are set: statements run one after the other")
    defaulted: dict[str, int] = defaultdict(int)
    for cost in costs:
        defaulted[cost.unit] += cost.defaulted
    for unit, count in defaulted.items():
        if count:
            notes.append(
                f"{count} statement{'s' * (count > 1)} without a location: on {unit}, the quickest for them"
            )
    for use in memories:
        if max(use.peak, use.placed or 0) > use.capacity:
            need = max(use.peak, use.placed or 0)
            notes.append(
                f"{use.memory} is too small: {need} bytes are needed at one time, it has {use.capacity}"
            )
    said: dict[str, list[str]] = defaultdict(list)
    for cost in costs:
        for note in cost.notes:
            said[note].append(cost.name)
    for note, names in said.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        notes.append(f"{note} ({', '.join(names[:3])}{more})")
    return notes
