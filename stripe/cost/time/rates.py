"""Cycles that an execution unit takes to compute: by its operation rates, stencils, vectors, or as a systolic array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Literal

from stripe.cost.counts.operations import Operations
from stripe.cost.time.pieces import Compute
from stripe.hw.engines import Stencil, SystolicArray
from stripe.hw.schema import ExecUnit
from stripe.ir import Affine, Agg, Block, ConfigError, DType, Index, Load, Nest, Store, step


@dataclass(frozen=True)
class Effort:
    """What computing takes of one unit, if one does it all: cycles, the share of its lanes that do useful work, and by
    which rule."""

    cycles: float
    utilisation: float
    rule: str


def effort(compute: Compute, name: str, unit: ExecUnit) -> Effort:
    """Raises ConfigError when the unit has no rate for an operation."""
    plain = rate_cycles(compute.operations, name, unit)
    if unit.array is not None:
        shape = matmul_shape(compute.nest, compute.leaves)
        if shape is not None and unit.array.dataflow in ("weight_stationary", "output_stationary"):
            cycles = compute.runs * systolic_cycles(unit.array, *shape)
            return Effort(cycles, min(1.0, plain / cycles) if cycles else 1.0, "systolic array")
    use = stencil_use(compute.leaves[0].block, unit) if len(compute.leaves) == 1 else None
    if use is not None:
        return _stencil_effort(compute, use, plain)
    if unit.vector_bytes is not None and len(compute.leaves) == 1:
        share = vector_share(compute.leaves[0].block, unit.vector_bytes)
        return Effort(plain / share, share, "vectors")
    return Effort(plain, 1.0, "operations per cycle")


def rated(operations: Operations) -> dict[tuple[str, DType], int]:
    """How many operations go at the rate of each: the add of a multiply-accumulate at that of its multiply."""
    found = dict(operations.counts)
    for (product, result), number in operations.macs.items():
        found["mul", product] = found.get(("mul", product), 0) + number
        found["add", result] = found.get(("add", result), 0) - number
    return {key: number for key, number in found.items() if number}


def rate_cycles(operations: Operations, name: str, unit: ExecUnit) -> float:
    """Cycles of operations on the unit called `name`, by the rates. Raises ConfigError for one without a rate."""
    return sum(number / _rate(unit, name, op, dtype) for (op, dtype), number in rated(operations).items())


def _rate(unit: ExecUnit, name: str, op: str, dtype: DType) -> float:
    rate = unit.rate(op, dtype)
    if rate is None:
        raise ConfigError(
            f"{name} has no rate for '{op}' of {dtype}",
            where=f"exec_units.{name}.ops_per_cycle",
            hint=f"it has {', '.join(unit.ops_per_cycle)}; locate the block on another unit or add a rate",
        )
    return rate


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
    left = Counter(operations.counts)
    for (product, result), number in operations.macs.items():
        left["mul", product] -= number
        left["add", result] -= number
    found = ((op, dtype) for (op, dtype), number in left.items() if number and not unit.names_rate(op, dtype))
    return tuple(sorted(f"{op}:{dtype.name}" for op, dtype in found))


@dataclass(frozen=True, slots=True)
class StencilUse:
    """A block that does what a stencil does. Over the indices of the stencil it has `matched` points, which take so
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
    """The smallest stencil of the unit whose indices those of `block` run through; None where they run through none. An
    index longer than the stencil's takes several instructions."""
    roles = {index.stencil: index for index in block.indices if index.stencil}
    if not roles:
        return None
    fitting = [stencil for stencil in unit.stencils if roles.keys() <= {index.name for index in stencil.idxs}]
    if not fitting:
        return None
    stencil = min(fitting, key=lambda stencil: len(stencil.idxs))
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
    outer = compute.leaves[0].domain
    last = set(compute.leaves[0].own)
    runs = compute.runs * prod(
        high - low + 1
        for name, (low, high) in zip(outer.names, outer.intervals, strict=True)
        if name not in last and name not in compute.nest.prefix(compute.nest.depth - 1)
    )
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
    best = 0.0
    for index, lanes in _vector_candidates(block, vector_bytes):
        best = max(best, index.range / (ceil(index.range / lanes) * lanes))
    return best or 1.0 / max(1, max((lanes for lanes in _lanes(block, vector_bytes)), default=1))


def _lanes(block: Block, vector_bytes: int) -> Iterator[int]:
    for ref in block.refinements:
        if ref.dir.writes:
            yield max(1, vector_bytes // ref.dtype.bytes)


def _vector_candidates(block: Block, vector_bytes: int) -> Iterator[tuple[Index, int]]:
    for ref in block.refinements:
        if not ref.dir.writes:
            continue
        for index in block.iterated:
            if step(ref, index.name) in (1, -1):
                yield index, max(1, vector_bytes // ref.dtype.bytes)


def systolic_cycles(array: SystolicArray, reduction: int, pixels: int, filters: int, batches: int = 1) -> int:
    """Cycles of a matrix product on a systolic array (the closed forms of SCALE-Sim 3.0.0)."""
    rows, columns = array.rows, array.columns
    if array.dataflow == "weight_stationary":
        folds = ceil(reduction / rows) * ceil(filters / columns)
        return batches * (folds * (pixels + 2 * rows + columns - 2) - 1)
    folds = ceil(pixels / rows) * ceil(filters / columns)
    return batches * (folds * (reduction + rows + columns - 2) - 1)


Role = Literal["reduction", "pixels", "filters", "batches"]


def matmul_shape(root: Nest, leaves: tuple[Nest, ...]) -> tuple[int, int, int, int] | None:
    """Reduction length, output pixels, filters and batches of a multiply-accumulate of two operands; None for
    anything else."""
    if len(leaves) != 1:
        return None
    (leaf,) = leaves
    outside = set(root.prefix(root.depth - 1))
    names = [name for name in leaf.domain.names if name not in outside]
    roles = matmul_roles(leaf.block, names, lambda ref: _names(leaf.views[ref].origin))
    if roles is None:
        return None
    sizes: dict[Role, int] = {"reduction": 1, "pixels": 1, "filters": 1, "batches": 1}
    for name, role in roles.items():
        low, high = leaf.domain.ranges[name]
        sizes[role] *= high - low + 1
    return sizes["reduction"], sizes["pixels"], sizes["filters"], sizes["batches"]


def matmul_roles(
    block: Block, names: Sequence[str], moving: Callable[[str], set[str]]
) -> dict[str, Role] | None:
    """The roles of indices in a multiply-accumulate of two operands, `moving` being the indices that move a view;
    None for any other block. Filters are the outputs' indices that only the second operand has."""
    loads = [s for s in block.statements if isinstance(s, Load)]
    stores = [s for s in block.statements if isinstance(s, Store)]
    if len(loads) != 2 or len(stores) != 1 or block.ref(stores[0].ref).agg is not Agg.ADD:
        return None
    first, second, out = (moving(each.ref) for each in (*loads, stores[0]))
    found: dict[str, Role] = {}
    for name in names:
        if name not in out:
            found[name] = "reduction"
        elif name in first and name in second:
            found[name] = "batches"
        else:
            found[name] = "filters" if name in second else "pixels"
    return found


def _names(access: Iterable[Affine]) -> set[str]:
    return {name for affine in access for name in affine.names()}
