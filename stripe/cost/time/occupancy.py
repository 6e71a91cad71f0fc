"""Which buffers are alive when, and how many bytes each memory holds over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stripe.cost.time.contention import Run
from stripe.cost.time.machine import Machine
from stripe.cost.time.statement import StatementCost
from stripe.ir import Block, Program, Refinement, uses_by_name

ALWAYS = ("user", "const")
"""Tags of buffers that live from beginning to end."""


@dataclass(frozen=True)
class Life:
    """A buffer in a memory from one time to another, in cycles."""

    buffer: str
    memory: str
    bytes: int
    start: float
    end: float


@dataclass(frozen=True)
class MemoryUse:
    """How full a memory is: the bytes after each change, the most at one time, and where the placed buffers end."""

    memory: str
    capacity: int
    peak: int
    placed: int | None
    steps: tuple[tuple[float, int], ...]


def lives(
    program: Program, costs: Sequence[StatementCost], runs: Sequence[Run], machine: Machine
) -> list[Life]:
    """The life of each buffer: the program's tensors throughout, others from first to last use; what a kernel
    allocates while it runs, once for each tile in flight."""
    end = max((run.end for run in runs), default=0.0)
    main = program.main
    by_number = {cost.number: run for cost, run in zip(costs, runs, strict=True)}
    names = {ref.source: ref.name for ref in main.refinements if ref.source}
    users = uses_by_name(main)
    found: list[Life] = []
    for ref in program.entry.allocs:
        if any(tag in ref.tags for tag in ALWAYS):
            found.append(_life(ref, machine, 0.0, end))
        elif ref.name in names:
            found += _used(ref, users.get(names[ref.name], ()), by_number, machine)
    for ref in main.allocs:
        found += _used(ref, users.get(ref.name, ()), by_number, machine)
    for cost in costs:
        block = main.statements[cost.number]
        if isinstance(block, Block):
            run = by_number[cost.number]
            unit = machine.model.exec_units.get(cost.unit)
            depth = unit.pipeline_depth if unit is not None and cost.tiles > 1 else 1
            depth = (
                1 if "pipeline_depth" in block.tags else depth
            )  # then the buffers say how many there are of each
            for ref in _inside(block):
                if ref.location:
                    told = ref.tags.get("buffers")
                    copies = told if isinstance(told, int) else depth
                    size = ref.bytes * copies
                    found.append(Life(ref.name, machine.memory(ref.location), size, run.start, run.end))
    return found


def _inside(block: Block) -> list[Refinement]:
    """What a kernel allocates, the larger of blocks one after the other."""
    below: list[Refinement] = []
    for inner in block.blocks:
        found = _inside(inner)
        if sum(ref.bytes for ref in found) > sum(ref.bytes for ref in below):
            below = found
    return [*block.allocs, *below]


def _used(ref: Refinement, users: Sequence[int], runs: Mapping[int, Run], machine: Machine) -> list[Life]:
    """The life of a buffer that the statements `users` of main use."""
    found = [runs[number] for number in users if number in runs]
    if not found:
        return []
    return [_life(ref, machine, min(run.start for run in found), max(run.end for run in found))]


def _life(ref: Refinement, machine: Machine, start: float, end: float) -> Life:
    return Life(ref.name, machine.memory(ref.location), ref.bytes, start, end)


def memory_use(found: Sequence[Life], program: Program, machine: Machine) -> tuple[MemoryUse, ...]:
    """The use of each memory that holds anything."""
    placed = _placed(program, machine)
    result: list[MemoryUse] = []
    for memory in machine.graph.memories:
        mine = [life for life in found if life.memory == memory]
        if not mine:
            continue
        changes: dict[float, int] = {}
        for life in mine:
            changes[life.start] = changes.get(life.start, 0) + life.bytes
            changes[life.end] = changes.get(life.end, 0) - life.bytes
        steps: list[tuple[float, int]] = []
        held = 0
        for time in sorted(changes):
            held += changes[time]
            steps.append((time, held))
        peak = max(bytes_ for _, bytes_ in steps)
        result.append(
            MemoryUse(memory, machine.memory_of(memory).size, peak, placed.get(memory), tuple(steps))
        )
    return tuple(result)


def _placed(program: Program, machine: Machine) -> dict[str, int]:
    """Where the last placed buffer of each memory ends."""
    ends: dict[str, int] = {}
    for ref in (*program.entry.allocs, *program.main.allocs):
        if "placed" in ref.tags:
            memory = machine.memory(ref.location)
            ends[memory] = max(ends.get(memory, 0), ref.offset + ref.bytes)
    return ends
