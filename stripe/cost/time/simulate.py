"""Simulates a program on a machine: the time and the units of each statement of `main`, and the causes of its waits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from stripe.cost.time.contention import Run, Task, simulate
from stripe.cost.time.machine import Machine, check_locations
from stripe.cost.time.occupancy import Life, lives
from stripe.cost.time.statement import StatementCost
from stripe.cost.time.workload import CostModel
from stripe.hw.graph import parse_unit
from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Block,
    Nest,
    Program,
    Stage,
    StripeError,
    keep_statements,
    reads_of,
    replace_at,
    writes_of,
)
from stripe.poly import statement_deps


@dataclass(frozen=True)
class Simulation:
    """A simulated program: costs, runs and dependences (as positions in `costs`) belong to `program.main`'s statements,
    in their order. `simulation_json` makes the report."""

    program: Program
    machine: Machine
    scheduled: bool
    costs: tuple[StatementCost, ...]
    runs: tuple[Run, ...]
    deps: tuple[tuple[int, ...], ...]
    lives: tuple[Life, ...]

    @property
    def model(self) -> HardwareModel:
        """The hardware model."""
        return self.machine.model

    @property
    def cycles(self) -> float:
        """Inference latency."""
        return max((run.end for run in self.runs), default=0.0)

    @cached_property
    def held(self) -> dict[str, tuple[tuple[float, int], ...]]:
        """For each memory that holds anything: times, in cycles, and the bytes held from then on."""
        changes: dict[str, dict[float, int]] = {}
        for life in self.lives:
            mine = changes.setdefault(life.memory, {})
            mine[life.start] = mine.get(life.start, 0) + life.bytes
            mine[life.end] = mine.get(life.end, 0) - life.bytes
        names = tuple(self.model.mem_units)

        def order(memory: str) -> tuple[int, int]:
            name, number = parse_unit(memory)
            return names.index(name), number or 0

        return {
            memory: tuple(zip(times, accumulate(changes[memory][time] for time in times), strict=True))
            for memory in sorted(changes, key=order)
            if (times := sorted(changes[memory]))
        }

    @cached_property
    def fullness(self) -> dict[str, float]:
        """For each explicit memory that holds anything the most that it holds at one time, as a share of its size."""
        return {
            unit: max(held for _, held in times) / self.machine.memory_of(unit).size
            for unit, times in self.held.items()
            if not self.machine.memory_of(unit).is_cache
        }

    def check_fits(self) -> None:
        """Raises StripeError for an explicit memory that has to hold more than its size."""
        for unit, share in self.fullness.items():
            end, size = self.placed.get(unit, 0), self.machine.memory_of(unit).size
            if max(share, end / size) <= 1:
                continue
            time, need = max(self.held[unit], key=lambda change: change[1])
            alive = [life for life in self.lives if life.memory == unit and life.start <= time < life.end]
            largest = sorted(alive, key=lambda life: -life.bytes)
            text = ", ".join(f"{life.buffer} {life.bytes:,}" for life in largest[:3])
            more = f" and {len(largest) - 3} more" if len(largest) > 3 else ""
            pairs = zip(self.costs, self.runs, strict=True)
            names = [cost.name for cost, run in pairs if run.start <= time < run.end]
            raise StripeError(
                f"{unit} has {size:,} bytes, and {max(need, end):,} are needed at one time ({text}{more})",
                where=f"kernel {names[0]}" if names else None,
                hint="make its tiles smaller, or hold fewer buffers there",
            )

    @cached_property
    def placed(self) -> dict[str, int]:
        """The end of the last buffer with an address in each memory, in bytes."""
        ends: dict[str, int] = {}
        for ref in (*self.program.entry.allocs, *self.program.main.allocs):
            if ref.offset is not None:
                memory = self.machine.memory(ref.location)
                ends[memory] = max(ends.get(memory, 0), ref.address + ref.bytes)
        return ends


def simulate_program(program: Program, model: HardwareModel) -> Simulation:
    """Runs the program once on the machine.

    Statements keep to the dependences that are set on them; where none are although some statement needs another, they
    run one after the other. Statements without a location run on the units that take least time, on data in the main
    memory.

    Raises ConfigError for locations, operations and routes that the machine lacks; StripeError for a `main` that holds
    anything but blocks.
    """
    check_locations(program.entry, model)
    machine = Machine.of(model)
    costs = _costs(program, machine)
    main = program.main
    scheduled = program.stage >= Stage.SCHEDULED or any(statement.deps for statement in main.statements)
    scheduled = scheduled or (len(costs) > 1 and _are_independent(program))
    if scheduled:
        deps = tuple(main.statements[cost.number].deps for cost in costs)
    else:
        deps = tuple((position - 1,) if position else () for position in range(len(costs)))
    tasks = [_task(cost, machine, own) for cost, own in zip(costs, deps, strict=True)]
    transfers = model.tx_units.items()
    channels = {unit: tx.channels for name, tx in transfers for unit in machine.graph.instances(name)}
    runs = simulate(tasks, channels)
    found = lives(program, costs, runs, machine)
    return Simulation(program, machine, scheduled, tuple(costs), tuple(runs), deps, tuple(found))


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


def _are_independent(program: Program) -> bool:
    """Whether no statement of main touches elements that another one writes: dependences then have nothing to say."""
    main = program.main
    buffers = {ref.name: ref.source or ref.name for ref in main.refinements}
    place = next(n for n, s in enumerate(program.entry.statements) if s is main)
    reads = [frozenset(buffers[name] for name in reads_of(statement)) for statement in main.statements]
    writes = [frozenset(buffers[name] for name in writes_of(statement)) for statement in main.statements]
    for second in range(len(reads)):
        for first in range(second):
            if not (writes[first] & (reads[second] | writes[second]) or reads[first] & writes[second]):
                continue
            pair = keep_statements(main, (first, second))
            entry = replace_at(program.entry, (place,), lambda _, pair=pair: pair)
            if any(statement_deps(Nest.root(entry).enter(place))):
                return False
    return True


def _task(cost: StatementCost, machine: Machine, deps: tuple[int, ...]) -> Task:
    """Transfers occupy their transfer unit, computing its execution units."""
    pools: list[tuple[tuple[str, ...], int]] = []
    if cost.units.name in machine.model.units:
        if cost.units.numbers is None:
            pools = [(machine.graph.instances(cost.units.name), cost.units.parallel)]
        else:
            pools = [((unit,), 1) for unit in cost.units.units]
    return Task(
        cost.name,
        cost.latency,
        max(0.0, cost.cycles - cost.latency),
        tuple(pools),
        {str(resource): cycles for resource, cycles in cost.demand.items()},
        deps,
        cost.work.cycles if cost.units.numbers is None else 0.0,
    )
