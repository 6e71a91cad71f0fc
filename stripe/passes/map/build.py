"""The blocks of a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from stripe.cost.counts.operations import widenings
from stripe.cost.mapping.loop_mapping import LoopMapping
from stripe.cost.mapping.mapper import CutNest, MappedNest, NestPlan
from stripe.cost.mapping.problem import LoopNest, Operand
from stripe.cost.mapping.skeletons import Node
from stripe.hw.schema import ExecUnit, HardwareModel
from stripe.ir import (
    Affine,
    Agg,
    Block,
    Index,
    Intrinsic,
    Load,
    Location,
    Nest,
    Path,
    Store,
    fresh,
    map_statements,
    replace_at,
    substitute,
)
from stripe.ir.frozen import replace
from stripe.rewrite.cached import CacheOptions, cache_view
from stripe.rewrite.parts import in_parts
from stripe.rewrite.prune import prune_indices
from stripe.rewrite.refusal import Refusal
from stripe.rewrite.tile import tile_block

LoopLevel = tuple[list[tuple[str, int]], list[Node]]
"""Loops, and the nodes that hold their operands at each point of these loops."""


@dataclass(frozen=True)
class MappingBuilder:
    """The blocks of mappings onto all units called `unit`: the innermost block gets `tags`, and `buffers` says by
    memory how often it holds each tile."""

    hardware: HardwareModel
    unit: str
    tags: tuple[str, ...]
    buffers: Mapping[str, int]

    def mapped(self, entry: Block, path: Path, planned: NestPlan) -> Block | Refusal:
        """The entry with the block at `path` mapped; a refusal where an operand cannot be copied."""
        if isinstance(planned, CutNest):
            entry = replace_at(entry, path, lambda block: _cut(block, planned.index, planned.first))
            for number, part in enumerate(planned.parts):
                found = self.mapped(entry, (*path, number), part)
                if isinstance(found, Refusal):
                    return found
                entry = found
            return entry
        assert isinstance(planned, MappedNest)
        plan, problem = planned.mapping, planned.nest
        entry = replace_at(entry, path, lambda block: self._tiled(block, plan, problem))
        levels = _loop_levels(plan, problem)
        for depth in reversed(range(len(levels))):
            inner = (*path, *(0,) * depth)
            for node in reversed(levels[depth][1]):
                memory = node.level.memory
                is_alone = self.hardware.memory(memory).count == 1
                options = CacheOptions(Location.of(memory, 0) if is_alone else Location.of(memory))
                cached = cache_view(entry, inner, node.operand.name, options)
                if isinstance(cached, Refusal):
                    return cached
                entry = cached.entry
            copies = max(self.buffers.get(node.level.memory, 1) for node in levels[depth][1])
            if copies > 1:
                entry = replace_at(
                    entry, inner, lambda tiles, depth=copies: replace(tiles, pipeline_depth=depth)
                )
        return entry

    def _tiled(self, block: Block, plan: LoopMapping, problem: LoopNest) -> Block:
        """A block for each level of loops, around the innermost block for a step of the grid, or for the loops that
        each of the units runs by itself."""
        unit = self.hardware.exec_unit(self.unit)
        if not unit.grid:
            inside = dict(problem.ranges)
            levels: list[tuple[list[str], dict[str, int]]] = []
            for loops, _ in _loop_levels(plan, problem):
                inside = {name: size // dict(loops).get(name, 1) for name, size in inside.items()}
                levels.append(([name for name, _ in loops], inside))
            parts = {name: inside[name] // prod(split.spatial) for name, split in plan.splits.items()}
            return _pruned(self._nested(block, levels, parts))
        grid = _Grid.of(plan, self.unit, unit, {index.name for index in block.indices})
        inside = {name: size // grid.positions(name) for name, size in problem.ranges.items()}
        space = {part.name: part.size for part in grid.parts}
        sizes: list[tuple[list[str], dict[str, int]]] = []
        for loops, _ in _loop_levels(plan, problem):
            inside = {name: size // dict(loops).get(name, 1) for name, size in inside.items()}
            sizes.append(([name for name, _ in loops], {**inside, **space}))
        order = [name for name, size in inside.items() if size > 1]
        sizes.append((order, {**dict.fromkeys(inside, 1), **space}))
        return _pruned(self._nested(grid.spread(block), sizes))

    def _nested(
        self,
        block: Block,
        sizes: list[tuple[list[str], dict[str, int]]],
        parts: Mapping[str, int] | None = None,
    ) -> Block:
        """Blocks for the levels of `sizes`, loops in order and sizes inside, around the innermost block, of which each
        unit runs a tile of `parts`."""
        if not sizes:
            block = replace(block, tags=block.tags.add(*self.tags))
            if parts is None:
                return block
            if all(parts[index.name] == index.range for index in block.iterated):
                return replace(block, location=Location.of(self.unit, 0))
            return in_parts(block, parts, self.unit)
        (order, inside), *rest = sizes
        outer = tile_block(block, inside)
        (inner,) = outer.blocks
        place = {name: number for number, name in enumerate(order)}
        loops = sorted(outer.indices, key=lambda index: place.get(index.name, len(order)))
        return replace(outer, indices=tuple(loops), statements=(self._nested(inner, rest, parts),))


@dataclass(frozen=True)
class _AxisIndex:
    """Some values of an index along an axis of the grid, a position apart: `name` counts them, they are `step` values
    apart and lie `stride` units apart."""

    name: str
    index: str
    size: int
    step: int
    stride: int


@dataclass(frozen=True)
class _Grid:
    """The part of a mapping that runs in space, on units called `unit`; None where the units are not the grid."""

    unit: str | None
    parts: tuple[_AxisIndex, ...]

    @staticmethod
    def of(plan: LoopMapping, name: str, unit: ExecUnit, taken: set[str]) -> _Grid:
        """The positions along each axis are a mixed radix of the indices that run along it. The indices that count them
        have none of the names `taken`."""
        parts: list[_AxisIndex] = []
        step = dict.fromkeys(plan.splits, 1)
        first = 1
        for number, axis in enumerate(unit.grid):
            stride = first
            for index, split in plan.splits.items():
                size = split.spatial[number]
                if size > 1:
                    along = fresh(f"{index}_{axis.name}", taken)
                    taken.add(along)
                    parts.append(_AxisIndex(along, index, size, step[index], stride))
                    step[index] *= size
                    stride *= size
            first *= axis.size
        return _Grid(name if first == unit.count else None, tuple(parts))

    def positions(self, index: str) -> int:
        return prod(part.size for part in self.parts if part.index == index)

    def spread(self, block: Block) -> Block:
        """The block with further indices for its part in space, each point on the unit of its position."""
        indices = [
            index if index.is_passed else replace(index, range=index.range // self.positions(index.name))
            for index in block.indices
        ]
        indices += [Index(part.name, part.size, is_spatial=True) for part in self.parts]
        values = {
            index.name: Affine.var(index.name) * self.positions(index.name)
            + sum((Affine.var(p.name) * p.step for p in self.parts if p.index == index.name), Affine())
            for index in block.iterated
        }
        place = sum((Affine.var(part.name) * part.stride for part in self.parts), Affine())
        location = Location.of(self.unit, place) if self.unit else block.location
        return replace(substitute(block, values), indices=tuple(indices), location=location)


def _pruned(block: Block) -> Block:
    """The nest without indices of one value, outer before inner."""
    return map_statements(prune_indices(block), lambda s: _pruned(s) if isinstance(s, Block) else s)


def _cut(block: Block, name: str, size: int) -> Block:
    """The block as two, the first with `size` values of the index `name`. Both keep all indices: their mappings have
    them."""
    outer = tile_block(block, {})
    (inner,) = outer.blocks
    parts = [
        replace(
            substitute(inner, {name: Affine.var(name) + low}),
            indices=tuple(replace(i, range=count) if i.name == name else i for i in inner.indices),
        )
        for low, count in ((0, size), (size, block.index(name).range - size))
    ]
    return prune_indices(replace(outer, statements=tuple(parts)))


def loop_nest(nest: Nest) -> LoopNest | Refusal:
    """The innermost block of `nest` as a mapping problem: a product of two operands, widened or not, that is
    summed."""
    block = nest.block
    widened = {cast.into: cast.inputs[0] for cast in widenings(block)}
    match [s for s in block.statements if not (isinstance(s, Intrinsic) and s.into in widened)]:
        case [Load(a, first), Load(b, second), Intrinsic(c, "mul", inputs), Store(result, value)] if {
            a,
            b,
        } == {widened.get(name, name) for name in inputs} and c == value:
            names = (first, second, result)
        case _:
            return Refusal("it is not two loads, which may be widened, a product and a store")
    if block.ref(result).agg is not Agg.ADD:
        return Refusal(f"{result} is not summed")
    if not block.indices:
        return Refusal("it has one point alone")
    if block.passed or block.allocs:
        return Refusal("indices are passed in, or it has allocations of its own")
    operands: list[Operand] = []
    for name in names:
        ref = block.ref(name)
        if not all(affine.is_linear for affine in ref.access):
            return Refusal(f"the access of {name} has floors")
        index = tuple(
            {i.name: affine.coeff(i.name) for i in block.indices if affine.coeff(i.name)}
            for affine in ref.access
        )
        operands.append(Operand(name, index, name == result, ref.dtype.bytes))
    return LoopNest({index.name: index.range for index in block.indices}, tuple(operands))


def _loop_levels(plan: LoopMapping, problem: LoopNest) -> list[LoopLevel]:
    """The nodes with the loops right above them; nodes share a level where no loop and no copy of their operand is
    between them."""
    levels: list[LoopLevel] = []
    for node, loops in zip(plan.skeleton.nodes, plan.loops(problem), strict=False):
        if levels and not loops and all(node.operand is not other.operand for other in levels[-1][1]):
            levels[-1][1].append(node)
        else:
            levels.append((loops, [node]))
    return levels


def summary(planned: NestPlan) -> str:
    """The energy and the time, and loops and nodes from outermost to innermost."""
    time = f", {planned.cycles:,.0f} cycles" if planned.cycles else ""
    total = f"{planned.energy_pJ / 1e6:.3f} uJ{time}"
    if isinstance(planned, CutNest):
        below, above = map(summary, planned.parts)
        return f"{total}; {planned.index} below {planned.first}: {below}; above: {above}"
    assert isinstance(planned, MappedNest)
    plan = planned.mapping
    words: list[str] = []
    for loops, node in zip(plan.loops(planned.nest), [*plan.skeleton.nodes, None], strict=True):
        words += [f"{name}:{size}" for name, size in loops]
        words += [f"<{node}>"] if node is not None else []
    space = [
        f"{name}:{prod(split.spatial)}" for name, split in plan.splits.items() if prod(split.spatial) > 1
    ]
    return f"{total}: {' '.join(words)}; in space {' '.join(space) or 'nothing'}"
