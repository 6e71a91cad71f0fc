"""Cycles that an execution unit takes to compute: by its operation rates, stencils, vectors, or as a systolic array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from stripe.cost.counts.operations import Operations, point_operations
from stripe.cost.time.arrays import array_use
from stripe.cost.time.cores import core_work
from stripe.cost.time.pieces import Compute, Stream
from stripe.cost.time.stencils import body_of, unfit
from stripe.hw.engines import Stencil
from stripe.hw.schema import ExecUnit
from stripe.ir import Block, ConfigError, DType, Nest, step
from stripe.ir.frozen import replace


@dataclass(frozen=True, slots=True)
class Phase:
    """A block of vectorized code: cycles of its operations, cycles in which its loads begin, and its operands."""

    cycles: float
    loading: float
    streams: tuple[Stream, ...]


@dataclass(frozen=True)
class Effort:
    """The effort of one unit that computes alone: cycles, the share of its lanes that do useful work, and by
    which rule; `streams` are the operands in and out where the unit takes others than the blocks touch. A core has a
    phase for each block."""

    cycles: float
    utilisation: float
    rule: str
    streams: tuple[Stream, ...] | None = None
    phases: tuple[Phase, ...] = ()


def effort(compute: Compute, name: str, unit: ExecUnit, *, as_position: bool = False) -> Effort:
    """`as_position`: positions of an array compute by themselves, not the array as a whole. Raises ConfigError when the
    unit has no rate for an operation."""
    plain = rate_cycles(compute.operations, name, unit)
    array = array_use(compute, unit.array) if unit.array is not None and not as_position else None
    if array is not None:
        # units that make up the array share its cycles
        cycles = array.cycles * (unit.count if unit.is_array_position else 1)
        return Effort(cycles, min(1.0, plain / cycles) if cycles else 1.0, array.rule, array.streams)
    use = stencil_use(compute.leaves[0].block, unit) if len(compute.leaves) == 1 else None
    if use is not None:
        return _stencil_effort(compute, use, plain)
    if unit.loads_per_cycle is not None and any(leaf.block.tags.get("vector") for leaf in compute.leaves):
        return _core_effort(compute, name, unit, plain)
    if unit.vector_bytes is not None and len(compute.leaves) == 1:
        share = vector_share(compute.leaves[0].block, unit.vector_bytes)
        return Effort(plain / share, share, "vectors")
    return Effort(plain, 1.0, "operations per cycle")


def _core_effort(compute: Compute, name: str, unit: ExecUnit, plain: float) -> Effort:
    """Vectorized blocks on a core, and blocks without vectors among them by the lanes that they could use."""
    phases: list[Phase] = []
    for leaf, points in zip(compute.leaves, compute.points, strict=True):
        cycles = rate_cycles(point_operations(leaf.block).times(points), name, unit)
        work = core_work(leaf, len(compute.nest.path), unit)
        if work is None:
            share = vector_share(leaf.block, unit.vector_bytes or 1)
            phases.append(Phase(cycles / share, 0.0, tuple(_point_streams(leaf, points))))
            continue
        runs = points / leaf.block.points
        waiting = runs * work.chain * unit.accumulate_latency_cycles
        loading = runs * work.loads / (unit.loads_per_cycle or 1)
        streams = tuple(replace(stream, bytes=round(runs * stream.bytes)) for stream in work.streams)
        phases.append(Phase(max(cycles / work.share, waiting), loading, streams))
    total = sum(phase.cycles for phase in phases)
    streams = tuple(stream for phase in phases for stream in phase.streams)
    return Effort(
        total, min(1.0, plain / total) if total else 1.0, "vector registers", streams, tuple(phases)
    )


def _point_streams(leaf: Nest, points: int) -> Iterator[Stream]:
    """The operands of a block that loads and stores at each point."""
    for ref in leaf.block.refinements:
        place = ref.location.subs(leaf.local)
        for writes in (False,) * ref.dir.reads + (True,) * ref.dir.writes:
            yield Stream(ref.name, place, writes, points * ref.dtype.bytes)


def rated(operations: Operations) -> dict[tuple[str, DType], int]:
    """The numbers of operations by rate: the add of a multiply-accumulate goes at the rate of its multiply."""
    found = dict(operations.counts)
    for (product, result), number in operations.macs.items():
        found["mul", product] = found.get(("mul", product), 0) + number
        found["add", result] = found.get(("add", result), 0) - number
    return {key: number for key, number in found.items() if number}


def rate_cycles(operations: Operations, name: str, unit: ExecUnit) -> float:
    """Cycles of operations on the unit called `name`, by the rates. Raises ConfigError for one without a rate."""
    total = 0.0
    for (op, dtype), number in rated(operations).items():
        rate = unit.rate(op, dtype)
        if rate is None:
            reason, where = f"{name} has no rate for '{op}' of {dtype}", f"exec_units.{name}.ops_per_cycle"
            rates = ", ".join(unit.ops_per_cycle)
            hint = f"it has {rates}; locate the block on another unit or add a rate"
            raise ConfigError(reason, where=where, hint=hint)
        total += number / rate
    return total


def missing_rates(operations: Operations, unit: ExecUnit) -> tuple[str, ...]:
    """The operations for which the unit has no rate, as `op:dtype`, in order."""
    return tuple(
        sorted(f"{op}:{dtype.name}" for op, dtype in rated(operations) if unit.rate(op, dtype) is None)
    )


def unnamed_rates(operations: Operations, unit: ExecUnit) -> tuple[str, ...]:
    """The operations beside multiply-accumulates that a matrix engine does at a rate that does not name them, as
    `op:dtype`, in order."""
    if not unit.is_matrix_engine:
        return ()
    found = (key for key in operations.beside_macs if not unit.names_rate(*key))
    return tuple(sorted(f"{op}:{dtype.name}" for op, dtype in found))


@dataclass(frozen=True, slots=True)
class StencilUse:
    """A block that a stencil computes. Over the indices of the stencil it has `matched` points, which take so
    many `instructions` of `full` points each, idle lanes too; and all that `times` over its other indices."""

    stencil: Stencil
    matched: int
    full: int
    instructions: int
    times: int

    @property
    def share(self) -> float:
        """The part of the lanes that has a point to work on."""
        return self.matched / (self.full * self.instructions)


def stencil_use(block: Block, unit: ExecUnit) -> StencilUse | None:
    """The smallest stencil of the unit whose indices those of `block` run through, of the stencils for its dtypes where
    there are some; None where they run through none. An index longer than the stencil's takes several instructions.
    """
    roles = {index.stencil: index for index in block.indices if index.stencil}
    if not roles:
        return None
    fitting = [stencil for stencil in unit.stencils if roles.keys() <= {index.name for index in stencil.idxs}]
    if not fitting:
        return None
    body = body_of(block)
    stencil = min(fitting, key=lambda s: (not isinstance(body, str) and unfit(body, s) != "", len(s.idxs)))
    ranges = [roles[index.name].range if index.name in roles else 1 for index in stencil.idxs]
    sizes = [there if i.size == -1 else i.size for i, there in zip(stencil.idxs, ranges, strict=True)]
    return StencilUse(
        stencil,
        matched=prod(ranges),
        full=prod(sizes),
        instructions=prod(ceil(there / size) for there, size in zip(ranges, sizes, strict=True)),
        times=prod(index.range for index in block.iterated if index not in roles.values()),
    )


def _stencil_effort(compute: Compute, use: StencilUse, plain: float) -> Effort:
    """Uses of the stencil, each as long as a full one: lanes that have no point idle."""
    (leaf,) = compute.leaves
    outside = {*leaf.own, *compute.nest.prefix(compute.nest.depth - 1)}
    runs = compute.runs * leaf.domain.volume(name for name in leaf.domain.names if name not in outside)
    instructions = runs * use.times * use.instructions
    rule = f"stencil {use.stencil.name or ''}".strip()
    if use.stencil.cycles is not None:
        cycles = instructions * use.stencil.cycles
        return Effort(cycles, min(1.0, plain / cycles), rule)
    a_point = plain / (runs * use.times * use.matched)
    cycles = plain / use.share + instructions * use.stencil.startup_cost * a_point
    return Effort(cycles, plain / cycles if cycles else 1.0, rule)


def vector_share(block: Block, vector_bytes: int) -> float:
    """Useful lanes of vectors along the index that walks the output contiguously and wastes least."""
    written = [(ref, max(1, vector_bytes // ref.dtype.bytes)) for ref in block.refinements if ref.dir.writes]
    shares = [
        index.range / (ceil(index.range / lanes) * lanes)
        for ref, lanes in written
        for index in block.iterated
        if step(ref, index.name) in (1, -1)
    ]
    return max(shares, default=1.0 / max((lanes for _, lanes in written), default=1))
