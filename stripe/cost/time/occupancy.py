"""The live ranges of buffers in a simulation, in cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stripe.cost.time.contention import Run
from stripe.cost.time.machine import Machine
from stripe.cost.time.statement import StatementCost
from stripe.ir import Block, Program, Refinement, uses_by_name


@dataclass(frozen=True)
class Life:
    """A buffer in a memory from one time to another, in cycles."""

    buffer: str
    memory: str
    bytes: int
    start: float
    end: float


def lives(
    program: Program, costs: Sequence[StatementCost], runs: Sequence[Run], machine: Machine
) -> list[Life]:
    """The life of each buffer: the program's tensors throughout, others from first to last use; allocations of a
    kernel while it runs, once for each tile in flight."""
    end = max((run.end for run in runs), default=0.0)
    main = program.main
    by_number = {cost.number: run for cost, run in zip(costs, runs, strict=True)}
    names = {ref.source: ref.name for ref in main.refinements if ref.source}
    users = uses_by_name(main)
    found: list[Life] = []
    for ref in program.entry.allocs:
        if ref.is_kept:
            found.append(_life(ref, machine, 0.0, end))
        elif ref.name in names:
            found += _used(ref, users.get(names[ref.name], ()), by_number, machine)
    for ref in main.allocs:
        found += _used(ref, users.get(ref.name, ()), by_number, machine)
    for cost in costs:
        block = main.statements[cost.number]
        if isinstance(block, Block):
            run = by_number[cost.number]
            unit = machine.model.exec_units.get(cost.units.name)
            depth = unit.pipeline_depth if unit is not None and cost.tiles > 1 else 1
            if block.pipeline_depth is not None:
                depth = 1  # then the buffers have their number of copies
            for ref, copies in _inside(block, depth):
                if ref.location:
                    size = ref.bytes * copies
                    memory = machine.model.memory(ref.location.name)
                    if memory.along and not ref.location.devices[-1].units:
                        size = -(-size // memory.count)  # each position of the grid holds its part
                    found.append(Life(ref.name, machine.memory(ref.location), size, run.start, run.end))
    return found


def _inside(block: Block, depth: int, in_flight: int = 1) -> list[tuple[Refinement, int]]:
    """The buffers that a kernel allocates, with their copies, the larger of blocks one after the other. Tiles are in
    flight `depth` at a time; what is around them is there once."""
    in_flight = depth if block.points > 1 else in_flight
    below = max(
        (_inside(inner, depth, in_flight) for inner in block.blocks),
        key=lambda refs: sum(ref.bytes * copies for ref, copies in refs),
        default=list[tuple[Refinement, int]](),
    )
    return [*((ref, ref.copies if ref.copies > 1 else in_flight) for ref in block.allocs), *below]


def _used(ref: Refinement, users: Sequence[int], runs: Mapping[int, Run], machine: Machine) -> list[Life]:
    """The life of a buffer that the statements `users` of main use."""
    found = [runs[number] for number in users if number in runs]
    if not found:
        return []
    return [_life(ref, machine, min(run.start for run in found), max(run.end for run in found))]


def _life(ref: Refinement, machine: Machine, start: float, end: float) -> Life:
    return Life(ref.name, machine.memory(ref.location), ref.bytes, start, end)
