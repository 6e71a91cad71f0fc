"""The pass `map`."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from stripe.cost.objective import UNITS, Objective, objective_value
from stripe.hw.schema import HardwareModel
from stripe.ir import Block, ConfigError, Nest, Program, StripeError, block_at
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Refusal, Reqs, TagSet, matching
from stripe.rewrite.excerpt import MAIN, excerpt
from stripe.rewrite.nests import rewrite_nests

if TYPE_CHECKING:
    from stripe.cost.mapping.hierarchy import MappingRules
    from stripe.cost.mapping.mapper import Mapper, NestPlan
    from stripe.cost.mapping.problem import LoopNest

SIMULATED = 8
"""The number of the best plans that are simulated where time counts."""

Sizes = dict[str, Annotated[int, Field(ge=1)]]


class Map(Pass):
    """Maps a product of two operands onto all memories and the grid of a machine, with the least energy or time.

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
    innermost block; the price counts the points that they exclude, too. An index of the results that no divisor
    spreads well over an axis of the grid is cut in two, and both parts are mapped.

    Units without a grid share the loops inside of the last memory: each computes results of its own, reads its operands
    once for these loops, and finds them in its registers then, as the simulator has it.

    The search counts no caches: operands behind them come from the memory that fills them. Where `objective` has time
    in it, the simulation of the best plans sees caches, but a plan that only they make good may not be among these.
    """

    pass_name: ClassVar[str] = "map"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[contraction]", programs=("map/matmul.tile",), hardware="ref16x16"
    )
    refused: ClassVar[str] = "not mapped"

    reqs: Reqs
    objective: Objective = Field(
        default="energy",
        description="least energy (static energy included), least time, or least product of the two. Time is an "
        "estimate: that of the busiest resource, transfers with their latency, and a part of all work one after the "
        "other. Where time counts, the best plans are simulated, and the best of them is taken",
    )
    unit: str = Field(
        default="",
        description="execution unit with the grid, or of which all units share the work; empty: the first with a grid",
    )
    stationary: str = Field(
        default="", description="operand that the units hold while the other moves past; empty: either"
    )
    fixed: dict[str, Sizes] = Field(
        default_factory=dict, description="by memory, how many values of an index lie inside it"
    )
    keep: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="by memory, operands that it holds as a whole"
    )
    space: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="by axis of the grid ('units' where there is none), the indices that may run along it",
    )
    buffers: Sizes = Field(
        default_factory=dict,
        description="by memory, how often it holds each tile, so that transfers overlap with computing",
    )
    peel: bool = Field(
        default=True, description="cut an index in two where no divisor of its range fits the grid well"
    )
    limit: int = Field(
        default=0,
        ge=0,
        description="combinations of splits after which the exact search ends with a gap; the inexact one before it, "
        "which finds good plans, goes to its end. 0: 200 million",
    )
    plans: int = Field(default=1, ge=1, description="plans that the remarks rank; the best of them is taken")
    inner_set: TagSet = Field(
        default=("step",), description="tags of the innermost block, a step of the grid"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError without a hardware model, and for a unit, memory or axis that it lacks."""
        from stripe.cost.mapping.mapper import Mapper  # numpy takes long to load

        hardware = context.need_hardware("map")
        unit = self._unit(hardware)
        self._check(program, context, hardware, unit)
        mapper = Mapper(hardware, unit, self.objective, self.limit, peels=self.peel)
        caches = ", ".join(name for name, memory in hardware.mem_units.items() if memory.is_cache)

        def answer(nest: Nest) -> Block:
            if caches:
                context.analysis(nest.block, f"the search counts no caches ({caches})")
            return self.settled(nest.block, self._mapped(program, nest, mapper, context), context)

        return rewrite_nests(program, self.reqs, answer)

    def _mapped(self, program: Program, nest: Nest, mapper: Mapper, context: PassContext) -> Block | Refusal:
        from stripe.passes.map.build import MappingBuilder, loop_nest, summary

        problem = loop_nest(nest)
        if isinstance(problem, Refusal):
            return problem
        simulates = mapper.counts_time and context.price is not None
        wanted = max(self.plans, SIMULATED) if simulates else self.plans
        cycles = mapper.point_cycles(nest) if mapper.counts_time else 0.0
        ranked = mapper.plans(
            problem, mapper.point_pJ(nest), self._rules(problem), self.stationary, wanted, cycles
        )
        if not ranked:
            return Refusal("no mapping fits into the memories of the machine")
        blocks: list[tuple[float, int, NestPlan, Block]] = []
        refusal: Refusal | None = None
        builder = MappingBuilder(mapper.hardware, mapper.unit, self.inner_set, self.buffers)
        for number, plan in enumerate(ranked[: wanted if simulates else 1]):
            entry = builder.mapped(nest.blocks[0], nest.path, plan)
            if isinstance(entry, Refusal):
                refusal = refusal or entry
                continue
            price = self._price(replace(program, entry=entry), nest, context) if simulates else 0.0
            blocks.append((price, number, plan, block_at(entry, nest.path)))
        if not blocks:
            return refusal or Refusal("no plan can be built")
        price, number, plan, block = min(blocks, key=lambda entry: entry[:2])
        others = [other for other in ranked if other is not plan][: self.plans - 1]
        for place, other in enumerate(others, 2):
            context.analysis(nest.block, f"plan {place}: {summary(other)}")
        figures = {"latency": f"{price:,.0f}", "energy": f"{price / 1e6:.3f} uJ"}
        figure = figures.get(self.objective, f"{price:.4g} {UNITS[self.objective]}")
        simulated = f", {figure} simulated" if 0 < price < inf else ""
        gap = f"{100 * plan.gap:.1f} % above the bound" if plan.bound else "not all of them"
        searched = f"{mapper.priced} mappings priced" if mapper.priced else "as the equal block before"
        context.applied(nest.block, f"{summary(plan)}{simulated}; {searched}, {gap}")
        return block

    def _price(self, program: Program, nest: Nest, context: PassContext) -> float:
        """What the objective counts of the block, after the rest of the pass list."""
        assert context.price is not None
        try:
            found = context.price(excerpt(program, [nest.path[MAIN]]) if len(nest.path) > MAIN else program)
        except StripeError:
            return inf
        return objective_value(found.cycles, found.energy_pJ, self.objective)

    def _rules(self, problem: LoopNest) -> MappingRules:
        """The options in the names of a canonical nest."""
        from stripe.cost.mapping.hierarchy import MappingRules

        index = problem.numbers
        operand = {each.name: str(number) for number, each in enumerate(problem.operands)}
        return MappingRules(
            {
                memory: {index[n]: size for n, size in sizes.items() if n in index}
                for memory, sizes in self.fixed.items()
            },
            {
                memory: frozenset(operand[n] for n in names if n in operand)
                for memory, names in self.keep.items()
            },
            {axis: frozenset(index[n] for n in names if n in index) for axis, names in self.space.items()},
            self.buffers,
        )

    def _unit(self, hardware: HardwareModel) -> str:
        if self.unit:
            hardware.exec_unit(self.unit)
            return self.unit
        found = next((name for name, unit in hardware.exec_units.items() if unit.grid), None)
        if found is None and len(hardware.exec_units) > 1:
            kinds = ", ".join(hardware.exec_units)
            raise ConfigError(
                "no execution unit of the machine has a grid", hint=f"name one with unit: {kinds}"
            )
        return found or next(iter(hardware.exec_units))

    def _check(self, program: Program, context: PassContext, hardware: HardwareModel, unit: str) -> None:
        """Raises ConfigError for a memory or axis that the machine lacks; remarks on names that no block has."""
        for memory in (*self.fixed, *self.keep, *self.buffers):
            hardware.memory(memory)
        axes = [axis.name for axis in hardware.exec_unit(unit).axes]
        for axis in self.space:
            if axis not in axes:
                raise ConfigError(
                    f"the grid of {unit} has no axis '{axis}'", hint=f"it has {', '.join(axes) or 'none'}"
                )
        blocks = matching(program, self.reqs)
        indices = {index.name for block in blocks for index in block.iterated}
        tensors = {ref.name for block in blocks for ref in block.refinements}
        context.unknown_names("fixed", "index", {n for sizes in self.fixed.values() for n in sizes}, indices)
        context.unknown_names("space", "index", {n for names in self.space.values() for n in names}, indices)
        context.unknown_names("keep", "operand", {n for names in self.keep.values() for n in names}, tensors)
        context.unknown_names("stationary", "operand", [self.stationary] if self.stationary else [], tensors)
        for option, chosen in (("fixed", self.fixed), ("keep", self.keep), ("buffers", self.buffers)):
            if (main := hardware.main_memory) in chosen:
                context.warned(f"{option}: {main} is the main memory, which holds all of each operand")
        inputs = {ref.name for block in blocks for ref in block.inputs}
        for memory, names in self.keep.items():
            holds = set(hardware.memory(memory).operands)
            for name in names:
                if not holds & ({"stationary", "moving"} if name in inputs else {"output"}):
                    kind = "inputs" if name in inputs else "results"
                    context.warned(f"keep: {memory} holds no {kind}, by the field operands of the model")
