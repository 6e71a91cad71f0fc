"""Cycles that an execution unit takes to compute: by its operation rates, stencils, vectors, or as a systolic array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from stripe.cost.operations import Operations
from stripe.cost.pieces import Compute
from stripe.hw.schema import ExecUnit, Stencil, SystolicArray
from stripe.ir import Agg, Block, ConfigError, DType, Index, Load, Store
from stripe.poly import Nest


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
    stencil = _stencil_of(compute, unit)
    if stencil is not None:
        return _stencil_effort(compute, stencil, plain)
    if unit.vector_bytes is not None and len(compute.leaves) == 1:
        share = vector_share(compute.leaves[0].block, unit.vector_bytes)
        return Effort(plain / share, share, "vectors")
    return Effort(plain, 1.0, "operations per cycle")


def rate_cycles(operations: Operations, name: str, unit: ExecUnit) -> float:
    """Operations by the rate of each; the add of a multiply-accumulate goes at the rate of the multiply."""
    left = dict(operations.counts)
    cycles = 0.0
    for (product, result), number in operations.macs.items():
        cycles += 2 * number / _rate(unit, name, "mul", product)
        left["mul", product] = left.get(("mul", product), 0) - number
        left["add", result] = left.get(("add", result), 0) - number
    return cycles + sum(n / _rate(unit, name, op, dtype) for (op, dtype), n in left.items() if n)


def _rate(unit: ExecUnit, name: str, op: str, dtype: DType) -> float:
    rate = unit.rate(op, dtype)
    if rate is None:
        raise ConfigError(
            f"{name} has no rate for '{op}' of {dtype}",
            where=f"exec_units.{name}.ops_per_cycle",
            hint=f"it has {', '.join(unit.ops_per_cycle)}; locate the block on another unit or add a rate",
        )
    return rate


def can_compute(operations: Operations, unit: ExecUnit) -> bool:
    """Whether the unit has a rate for each operation."""
    left = dict(operations.counts)
    for (product, result), number in operations.macs.items():
        left["add", result] = left.get(("add", result), 0) - number
        if unit.rate("mul", product) is None:
            return False
    return all(unit.rate(op, dtype) is not None for (op, dtype), number in left.items() if number)


def _stencil_of(compute: Compute, unit: ExecUnit) -> tuple[Block, Stencil] | None:
    """The stencil of the unit that the leaf is an instance of, by the tags that `tensorize` sets."""
    if len(compute.leaves) != 1 or "stencil" not in compute.leaves[0].block.tags:
        return None
    block = compute.leaves[0].block
    roles = {
        tag.removeprefix("stencil_") for i in block.indices for tag in i.tags if tag.startswith("stencil_")
    }
    fitting = [stencil for stencil in unit.stencils if roles <= {index.name for index in stencil.idxs}]
    return (block, min(fitting, key=lambda s: len(s.idxs))) if fitting else None


def _stencil_effort(compute: Compute, found: tuple[Block, Stencil], plain: float) -> Effort:
    """Uses of the stencil, each as long as a full one: lanes that have no point idle."""
    block, stencil = found
    by_role = {
        tag.removeprefix("stencil_"): i for i in block.indices for tag in i.tags if tag.startswith("stencil_")
    }
    useful = prod(by_role[rules.name].range if rules.name in by_role else 1 for rules in stencil.idxs)
    full = prod(
        rules.size if rules.size != -1 else (by_role[rules.name].range if rules.name in by_role else 1)
        for rules in stencil.idxs
    )
    rest = prod(index.range for index in block.iterated if index not in by_role.values())
    outer = compute.leaves[0].domain
    last = set(compute.leaves[0].own)
    uses = compute.runs * prod(
        high - low + 1
        for name, (low, high) in zip(outer.names, outer.intervals, strict=True)
        if name not in last and name not in compute.nest.prefix(compute.nest.depth - 1)
    )
    points = uses * useful * rest
    share = useful / full if full else 1.0
    startup = uses * rest * stencil.startup_cost * (plain / points if points else 0.0)
    if stencil.cycles is not None:
        cycles = uses * rest * stencil.cycles
        return Effort(cycles, min(1.0, plain / cycles), f"stencil {stencil.name or ''}".strip())
    cycles = plain / share + startup
    return Effort(cycles, plain / cycles if cycles else 1.0, f"stencil {stencil.name or ''}".strip())


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
        for affine, dim in zip(ref.access, ref.dims, strict=True):
            for index in block.iterated:
                if abs(affine.coeff(index.name)) * dim.stride == 1:
                    yield index, max(1, vector_bytes // ref.dtype.bytes)


def systolic_cycles(array: SystolicArray, reduction: int, pixels: int, filters: int, batches: int = 1) -> int:
    """Cycles of a matrix product on a systolic array (the closed forms of SCALE-Sim 3.0.0)."""
    rows, columns = array.rows, array.columns
    if array.dataflow == "weight_stationary":
        folds = ceil(reduction / rows) * ceil(filters / columns)
        return batches * (folds * (pixels + 2 * rows + columns - 2) - 1)
    folds = ceil(pixels / rows) * ceil(filters / columns)
    return batches * (folds * (reduction + rows + columns - 2) - 1)


def matmul_shape(root: Nest, leaves: tuple[Nest, ...]) -> tuple[int, int, int, int] | None:
    """Reduction length, output pixels, filters and batches of a multiply-accumulate of two operands; None for
    anything else. Filters are the outputs' indices that only the second operand has."""
    if len(leaves) != 1:
        return None
    (leaf,) = leaves
    loads = [s for s in leaf.block.statements if isinstance(s, Load)]
    stores = [s for s in leaf.block.statements if isinstance(s, Store)]
    if len(loads) != 2 or len(stores) != 1 or leaf.block.ref(stores[0].ref).agg is not Agg.ADD:
        return None
    first, second = (_names(leaf, load.ref) for load in loads)
    out = _names(leaf, stores[0].ref)
    sizes = {"reduction": 1, "pixels": 1, "filters": 1, "batches": 1}
    outside = set(root.prefix(root.depth - 1))
    for name, (low, high) in zip(leaf.domain.names, leaf.domain.intervals, strict=True):
        if name in outside:
            continue
        if name not in out:
            kind = "reduction"
        elif name in first and name in second:
            kind = "batches"
        else:
            kind = "filters" if name in second else "pixels"
        sizes[kind] *= high - low + 1
    return sizes["reduction"], sizes["pixels"], sizes["filters"], sizes["batches"]


def _names(leaf: Nest, ref: str) -> set[str]:
    return {name for affine in leaf.views[ref].origin for name in affine.names()}
