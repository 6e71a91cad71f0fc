"""The pass `map`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from stripe.cost.mapping.machine import target_for
from stripe.cost.mapping.problem import LoopNest, Node, Operand
from stripe.hw.schema import ExecUnit, HardwareModel
from stripe.ir import (
    Affine,
    Agg,
    Block,
    ConfigError,
    Index,
    Intrinsic,
    Load,
    Location,
    Nest,
    Store,
    map_statements,
    nest_at,
    replace_at,
    substitute,
)
from stripe.passes.base import NestPass, PassContext, PassExample, PassGroup, Refusal, TagSet
from stripe.rewrite.cached import CacheOptions, cache_view
from stripe.rewrite.prune import prune_indices
from stripe.rewrite.tile import tile_block

if TYPE_CHECKING:
    from stripe.cost.mapping.search import LoopMapping

Level = tuple[list[tuple[str, int]], list[Node]]
"""Loops, and the nodes that hold their operands at each point of these loops."""


class Map(NestPass):
    """Maps a product of two operands onto all memories and the grid of a machine, with the least energy.

    On `ref16x16`, `{ "reqs": ["kernel"] }`:

        #kernel block [m:64, k:128, n:32] (           #kernel block [] (
            in<DRAM[0]> I[m, k] i8(1:128, 1:1)            #cached none new<SRAM[0]> I[0, 0] i8(64:128, 128:1)
            in<DRAM[0]> W[k, n] i8(1:32, 1:1)           1: block [n:2] (
            out<DRAM[0]> O[m, n]:add i8(1:32, 1:1)=>        #cached none new<SRAM[0]> W[0, 0] i8(128:16, 16:1)
        ) { … }                                             #cached none new<SRAM[0]> O[0, 0] i8(64:16, 16:1)
                                                            #cached none new<Orf> O[0, 0] i8(64:16, 16:1)
                                                          0: block [k:8] (
                                                              #cached none new<Wreg> W[0, 0] i8(16:16, 16:1)
                                                            1: block [m:64] (

    Tile sizes on all levels, the memory of each operand at each loop, and the indices that run in space are searched
    jointly, by divisors of the ranges. The model says which memories hold which operands (`operands`, `bypass`,
    `along`, `keeps_halo`) and which indices the axes of a unit's `grid` carry. Constraints of the block stay in the
    innermost block; the price counts the points that they exclude, too.
    """

    pass_name: ClassVar[str] = "map"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[contraction]", programs=("map/matmul.tile",), hardware="ref16x16"
    )
    refused: ClassVar[str] = "not mapped"

    unit: str = Field(default="", description="execution unit with the grid; empty: the first that has one")
    plans: int = Field(default=1, ge=1, description="plans that the remarks rank; the first one is taken")
    inner_set: TagSet = Field(
        default=("step",), description="tags of the innermost block, a step of the grid"
    )

    def rewrite(self, nest: Nest, context: PassContext) -> Block | Refusal:
        """Raises ConfigError without a hardware model, and for a unit that it lacks."""
        from stripe.cost.mapping.search import search  # numpy takes long to load

        hardware = context.need_hardware("map")
        unit_name, unit = self._unit(hardware)
        problem = loop_nest(nest)
        if isinstance(problem, Refusal):
            return problem
        dtype = nest.block.ref(problem.operands[0].name).dtype
        targets = [
            target_for(problem, stationary, hardware, unit, dtype) for stationary in problem.operands[:-1]
        ]
        found = search(problem, targets, plans=self.plans)
        if not found.plans:
            return Refusal("no mapping fits into the memories of the machine")
        best, *others = found.plans
        for number, plan in enumerate(others, 2):
            context.analysis(nest.block, f"plan {number}: {_summary(plan, problem)}")
        array = _Array.of(best, unit_name, unit)
        entry = replace_at(nest.blocks[0], nest.path, lambda block: self._tiled(block, best, problem, array))
        levels = _levels(best, problem)
        for depth in reversed(range(len(levels))):
            path = (*nest.path, *(0,) * depth)
            for node in reversed(levels[depth][1]):
                options = CacheOptions(memory=_location(node, hardware))
                cached = cache_view(entry, path, node.operand.name, options)
                if isinstance(cached, Refusal):
                    return cached
                entry = cached.entry
        rest = "" if found.is_complete else ", not all of them"
        context.applied(nest.block, f"{_summary(best, problem)}; {found.priced} mappings priced{rest}")
        return nest_at(entry, nest.path).block

    def _unit(self, hardware: HardwareModel) -> tuple[str, ExecUnit]:
        if self.unit:
            return self.unit, hardware.exec_unit(self.unit)
        found = next((item for item in hardware.exec_units.items() if item[1].grid), None)
        if found is None:
            raise ConfigError("no execution unit of the machine has a grid", hint="name one with unit")
        return found

    def _tiled(self, block: Block, plan: LoopMapping, problem: LoopNest, array: _Array) -> Block:
        """The block as one block for each level of loops, and the innermost one for a step of the grid."""
        inside = {name: size // array.positions(name) for name, size in problem.ranges.items()}
        space = {part.name: part.size for part in array.parts}
        sizes: list[tuple[list[str], dict[str, int]]] = []
        for loops, _ in _levels(plan, problem):
            inside = {name: size // dict(loops).get(name, 1) for name, size in inside.items()}
            sizes.append(([name for name, _ in loops], {**inside, **space}))
        order = [name for name, size in inside.items() if size > 1]
        sizes.append((order, {**dict.fromkeys(inside, 1), **space}))
        return _pruned(self._nested(array.spread(block), sizes))

    def _nested(self, block: Block, sizes: list[tuple[list[str], dict[str, int]]]) -> Block:
        if not sizes:
            return replace(block, tags=block.tags.add(*self.inner_set))
        (order, inside), *rest = sizes
        outer = tile_block(block, inside)
        (inner,) = outer.blocks
        loops = sorted(
            outer.indices, key=lambda index: order.index(index.name) if index.name in order else len(order)
        )
        return replace(outer, indices=tuple(loops), statements=(self._nested(inner, rest),))


@dataclass(frozen=True)
class _Part:
    """Some values of an index along an axis of the grid, a position apart: `name` counts them, they are `step` values
    apart and lie `stride` units apart."""

    name: str
    index: str
    size: int
    step: int
    stride: int


@dataclass(frozen=True)
class _Array:
    """The part of a mapping that runs in space, on units called `unit`; none where the units are not the grid."""

    unit: str | None
    parts: tuple[_Part, ...]

    @staticmethod
    def of(plan: LoopMapping, name: str, unit: ExecUnit) -> _Array:
        """The positions along each axis are a mixed radix of the indices that run along it."""
        parts: list[_Part] = []
        step = dict.fromkeys(plan.splits, 1)
        first = 1
        for number, axis in enumerate(unit.grid):
            stride = first
            for index, split in plan.splits.items():
                size = split.spatial[number]
                if size > 1:
                    parts.append(_Part(f"{index}_{axis.name}", index, size, step[index], stride))
                    step[index] *= size
                    stride *= size
            first *= axis.size
        return _Array(name if first == unit.count else None, tuple(parts))

    def positions(self, index: str) -> int:
        return prod(part.size for part in self.parts if part.index == index)

    def spread(self, block: Block) -> Block:
        """The block with indices of their own for what runs in space, each point on the unit of its position."""
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


def loop_nest(nest: Nest) -> LoopNest | Refusal:
    """The innermost block of `nest` as a mapping problem: a product of two operands that is summed."""
    block = nest.block
    match block.statements:
        case (Load(a, first), Load(b, second), Intrinsic(c, "mul", inputs), Store(result, value)) if {
            a,
            b,
        } == set(inputs) and c == value:
            names = (first, second, result)
        case _:
            return Refusal("it is not two loads, a product and a store")
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


def _levels(plan: LoopMapping, problem: LoopNest) -> list[Level]:
    """The nodes with the loops right above them; nodes share a level where no loop and no copy of their operand is
    between them."""
    levels: list[Level] = []
    for node, loops in zip(plan.skeleton.nodes, plan.loops(problem), strict=False):
        if levels and not loops and all(node.operand is not other.operand for other in levels[-1][1]):
            levels[-1][1].append(node)
        else:
            levels.append((loops, [node]))
    return levels


def _location(node: Node, hardware: HardwareModel) -> Location:
    memory = node.level.memory
    return Location.of(memory, 0) if hardware.memory(memory).count == 1 else Location.of(memory)


def _summary(plan: LoopMapping, problem: LoopNest) -> str:
    """The energy, and loops and nodes from outermost to innermost."""
    words: list[str] = []
    for loops, node in zip(plan.loops(problem), [*plan.skeleton.nodes, None], strict=True):
        words += [f"{name}:{size}" for name, size in loops]
        words += [f"<{node}>"] if node is not None else []
    space = [
        f"{name}:{prod(split.spatial)}" for name, split in plan.splits.items() if prod(split.spatial) > 1
    ]
    return f"{plan.energy_pJ / 1e6:.3f} uJ: {' '.join(words)}; in space {' '.join(space) or 'nothing'}"
