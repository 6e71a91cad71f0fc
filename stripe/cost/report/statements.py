"""The statements of a simulation, as reports show them."""

from __future__ import annotations

from collections import defaultdict

from stripe.cost.report.schema import SliceJson, StatementJson, StepJson
from stripe.cost.report.table import summed
from stripe.cost.report.units import busy_cycles
from stripe.cost.time.contention import Run
from stripe.cost.time.pieces import reads_and_writes
from stripe.cost.time.simulate import Simulation
from stripe.cost.time.statement import StatementCost
from stripe.hw.graph import parse_unit
from stripe.hw.schema import HardwareModel
from stripe.ir import Block


def statement_reports(found: Simulation, *, slices: bool) -> tuple[StatementJson, ...]:
    """Every statement of main; with the steps of its tiles where `slices`."""
    owned = _transfers_of(found)
    return tuple(
        _statement(position, owned.get(cost.number, ()), found, slices=slices)
        for position, cost in enumerate(found.costs)
    )


def _transfers_of(found: Simulation) -> dict[int, tuple[int, ...]]:
    """Attributes each load to the first kernel that reads it, and each store to the last that wrote it."""
    statements = found.program.main.statements
    uses = [
        reads_and_writes(s) if isinstance(s, Block) else (frozenset[str](), frozenset[str]())
        for s in statements
    ]
    main = found.model.main_memory
    refs = found.program.main.refinements
    near = frozenset(ref.name for ref in refs if ref.location and ref.location.name != main)
    kernels = [cost.number for cost in found.costs if not cost.transfer]
    owned: dict[int, tuple[int, ...]] = {}
    for cost in found.costs:
        if not cost.transfer:
            continue
        reads, writes = uses[cost.number]
        after = (k for k in kernels if k > cost.number and uses[k][0] & writes)
        before = (k for k in reversed(kernels) if k < cost.number and uses[k][1] & reads)
        owner = next(after, None) if writes & near else next(before, None)
        if owner is not None:
            owned[owner] = (*owned.get(owner, ()), cost.number)
    return owned


def _statement(position: int, owned: tuple[int, ...], found: Simulation, *, slices: bool) -> StatementJson:
    """The report of one statement; `owned` are the transfers of its operands and results."""
    model, main = found.model, found.model.main_memory or ""
    cost, run = found.costs[position], found.runs[position]
    cycles = run.end - run.start
    with_it = [cost, *(found.costs[number] for number in owned)]
    moved = sum(each.bytes_at(main) for each in with_it)
    ops = cost.work.operations.total
    # the busiest bus at the main memory
    needed_of: dict[int, float] = defaultdict(float)
    for flow in (flow for each in with_it for flow in each.flows):
        for hop in flow.route.hops:
            if main in (parse_unit(hop.source)[0], parse_unit(hop.sink)[0]):
                needed_of[hop.index] += flow.bytes / hop.bus.bytes_per_cycle
    memory_time = max(needed_of.values(), default=0.0)
    taken = max(cycles, memory_time, sum(found.runs[n].end - found.runs[n].start for n in owned))
    resource, needed = max(cost.demand.items(), key=lambda item: item[1], default=(None, 0.0))
    return StatementJson(
        number=cost.number,
        name=cost.name,
        kind="transfer" if cost.transfer else "kernel",
        units=run.units,
        waits_for=found.deps[position],
        ready_cycle=run.ready,
        start_cycle=run.start,
        end_cycle=run.end,
        cycles=cycles,
        microseconds=model.microseconds(cycles),
        alone_cycles=cost.cycles,
        compute_cycles=cost.work.cycles,
        utilisation=cost.work.utilisation,
        rule=cost.work.rule,
        tiles=cost.tiles,
        operations=cost.work.operations.by_name,
        macs=cost.work.operations.mac_count,
        # at the ends of each flow, and twice at the units between: they take bytes in and give them out
        bytes=summed(
            (parse_unit(unit)[0], flow.bytes)
            for flow in cost.flows
            for unit in (flow.source, flow.sink, *flow.route.units, *flow.route.units)
        ),
        intensity=ops / moved if moved else None,
        transfers=owned,
        ops_per_cycle=ops / cycles if cycles else 0.0,
        sustained_ops_per_cycle=ops / taken if taken else 0.0,
        peak_ops_per_cycle=cost.work.ops_per_cycle,
        main_bytes_per_cycle=moved / memory_time if memory_time else None,
        roof_ops_per_cycle=min(cost.work.ops_per_cycle, ops / memory_time)
        if memory_time
        else cost.work.ops_per_cycle,
        bound="compute"
        if cost.work.cycles / cost.units.share >= needed or resource is None
        else str(resource),
        stalls={**cost.stalls, **{f"shares {name}": lost for name, lost in run.slowed.items()}},
        busy=_busy(cost, run, model),
        energy_pJ=sum(cost.energy.values()),
        steps=_steps(cost, run, model) if slices and cost.slices else (),
        slices=_slices(cost, run) if slices else (),
    )


def _busy(cost: StatementCost, run: Run, model: HardwareModel) -> dict[str, float]:
    """Cycles by resource: the whole time for the units that the statement occupies, or one channel of theirs."""
    channels = {unit: tx.channels for unit in run.units if (tx := model.tx_units.get(parse_unit(unit)[0]))}
    whole = {unit: (run.end - run.start) / channels.get(unit, 1) for unit in run.units}
    return {**busy_cycles(cost.demand, cost.flows, model), **cost.inside.compute, **whole}


def _taken(cost: StatementCost, run: Run) -> dict[str, str]:
    """The units that a statement took, by those that stand for them in its cost, which leaves their numbers open."""
    return dict(zip(cost.units.units, run.units, strict=False)) if cost.units.numbers is None else {}


def _steps(cost: StatementCost, run: Run, model: HardwareModel) -> tuple[StepJson, ...]:
    """The steps of the tiles of a kernel."""
    if cost.loop is None:
        return ()
    taken = _taken(cost, run)
    found: list[StepJson] = []
    for stage, step in zip(cost.loop.stages, cost.loop.steps, strict=True):
        busy = busy_cycles(step.needs, step.flows, model)
        found.append(
            StepJson(
                name=step.name,
                kind="transfer" if step.transfer else "kernel",
                cycles=sum(stage.each) if stage.each else stage.cycles * cost.loop.tiles,
                busy={taken.get(name, name): cycles for name, cycles in busy.items()},
            )
        )
    return tuple(found)


def _slices(cost: StatementCost, run: Run) -> tuple[SliceJson, ...]:
    """The inner steps in the time of the simulation; where the kernel was slowed down, so are they."""
    stretch = (run.end - run.start) / max((s.end for s in cost.slices), default=1.0)
    begin, taken = run.start, _taken(cost, run)
    return tuple(
        [
            SliceJson(
                taken.get(unit, unit), name, tile, "transfer" if transfer else "kernel",
                begin + start * stretch, begin + end * stretch, step,
            )
            for step, unit, name, tile, transfer, start, end in cost.slices
        ]
    )  # fmt: skip
