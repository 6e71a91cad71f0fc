"""The pass `hoist`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from stripe.cost.objective import UNITS, ObjectiveOption, objective_value
from stripe.ir import (
    Affine,
    Agg,
    Block,
    ConfigError,
    Constraint,
    Direction,
    Load,
    Nest,
    Program,
    Refinement,
    Statement,
    Store,
    aggregations,
    nest_at,
    reads_of,
    walk,
    with_directions,
    with_statement,
    with_statements,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Refusal, Reqs
from stripe.rewrite.excerpt import MAIN
from stripe.rewrite.nests import rewrite_nests
from stripe.rewrite.tile import tile_block

if TYPE_CHECKING:
    from stripe.cost.time.statement import StatementCost, TileLoop
    from stripe.cost.time.workload import CostModel


class Hoist(Pass):
    """Moves transfers out of loops that do not move their box.

    `{ "reqs": ["tile"] }`:

        #tile block [co:4, x:8] (
            in<DRAM[0]> K_raw = K[16*co] (16:1)
            none new<SRAM[0]> K[0] (16:1)
            out<DRAM[0]> O[16*co, x] (16:8, 1:1)
        ) {
          0: block<DMA[0]> [d0:16] ( in<DRAM[0]> K_raw[d0] (1:1), out<SRAM[0]> K[d0] (1:1) ) { … }
          1: block [c:16] ( in<SRAM[0]> K[c] (1:1), out<DRAM[0]> O[c, 0] (1:8, 1:1) ) { … }
        }
        =>
        #tile block [co:4] (
            in<DRAM[0]> K_raw = K[16*co] (16:1)
            out<DRAM[0]> O[16*co, 0] (16:8, 8:1)
            none new<SRAM[0]> K[0] (16:1)
        ) {
          0: block<DMA[0]> [d0:16] ( in<DRAM[0]> K_raw[d0] (1:1), out<SRAM[0]> K[d0] (1:1) ) { … }
          1: block [x:8] (
              in<SRAM[0]> K[0] (16:1)
              out<DRAM[0]> O[0, x] (16:8, 1:1)
          ) { 0: block [c:16] ( in<SRAM[0]> K[c] (1:1), out<DRAM[0]> O[c, 0] (1:8, 1:1) ) { … } }
        }

    Loops run in the order of the indices, the last fastest, as `--counts` takes it: a box that its last
    indices do not move is loaded once for all of them, and the sum of an aggregated result leaves once.
    `reorder_indexes` gives another order. On a machine, transfers leave a loop where the block takes no more time then
    (`objective`): a loop between transfers fills and drains its pipeline anew in each run, which may take longer than
    moving a box again.
    """

    pass_name: ClassVar[str] = "hoist"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[tile]",
        after=(
            "autotile{reqs=[contraction],max_total_size=4096,outer_set=[tile],inner_set=[inner]}",
            "cache{reqs=[tile],mem_loc={name:SRAM}}",
        ),
    )

    refused: ClassVar[str] = "not hoisted"

    reqs: Reqs
    objective: ObjectiveOption = Field(
        default="latency",
        description="with a hardware model, move transfers where that makes the block no dearer by this; none: always",
    )

    def run(self, program: Program, context: PassContext) -> Program:
        prices = _Prices(self.objective, context)

        def visit(nest: Nest) -> Block:
            nest = nest.with_block(self._hoisted(nest, prices, context))
            statements: list[Statement] = list(nest.block.statements)
            for number, child in nest.children():
                if any(block.allocs for _, block in walk(child.block)):
                    statements[number] = visit(child)
            return with_statements(nest.block, statements)

        return rewrite_nests(program, self.reqs, visit)

    def _hoisted(self, nest: Nest, prices: _Prices, context: PassContext) -> Block:
        """The innermost block of `nest` with its transfers as far outside as their boxes allow, level by level."""
        block = nest.block
        loops = [index.name for index in block.iterated if index.range > 1]
        found = [transfer for transfer in _transfers(nest) if transfer.level(loops) < len(loops)]
        if not found:
            return block
        level = max(transfer.level(loops) for transfer in found)
        reason = _obstacle(block, loops[level:])
        if reason is not None:
            return self.settled(block, Refusal(reason), context)
        rounds = prod(block.index(name).range for name in loops[:level])
        known = prices.known(nest, found, rounds)
        if isinstance(known, Refusal):
            return self.settled(block, known, context)
        outer = self._split(block, loops[:level], found)
        after = nest.with_block(outer)
        answer = known or prices.compared(nest, after)
        if isinstance(answer, Refusal):
            return self.settled(block, answer, context)
        for transfer in found:
            times = f"{outer.points} times, not {block.points}"
            text = f"{transfer.buffer} is {'loaded' if transfer.fills else 'stored'} {times}"
            context.applied(block, f"{text}{answer}")
        return self._hoisted(after, prices, context)

    def _split(self, block: Block, outside: Sequence[str], transfers: Sequence[_Hoistable]) -> Block:
        split = tile_block(block, dict.fromkeys(outside, 1))
        (inner,) = split.blocks
        back = {index.name: index.affine for index in inner.passed if index.affine is not None}
        # no constraint uses the loops that go inside
        limits = tuple(Constraint(constraint.affine.subs(back)) for constraint in inner.constraints)
        moved = {inner.statements[each.number]: each.fills for each in transfers}
        allocs: list[Refinement] = []
        views: dict[str, Refinement] = {}
        for each in transfers:
            alloc = inner.ref(each.buffer)
            allocs.append(replace(alloc, location=alloc.location.subs(back)))
            views[alloc.name] = Refinement(
                alloc.name, Direction.IN if each.fills else Direction.OUT, alloc.name, (Affine(),) * len(alloc.dims),
                alloc.dtype, alloc.dims, agg=each.agg, location=alloc.location,
            )  # fmt: skip
        rest = [statement for statement in inner.statements if statement not in moved]
        used = {name for statement in rest for name in (*reads_of(statement), *writes_of(statement))}
        inner = replace(
            inner,
            constraints=(),
            indices=tuple(index for index in inner.indices if index.is_passed or index.range > 1),
            refinements=tuple(views.get(r.name, r) for r in inner.refinements if r.name in used),
            statements=tuple(rest),
        )
        loads, stores = (
            [_moved_out(s, back) for s, fills in moved.items() if fills is wanted and isinstance(s, Block)]
            for wanted in (True, False)
        )
        outer = replace(
            split,
            constraints=limits,
            indices=tuple(index for index in split.indices if index.is_passed or index.range > 1),
            refinements=(*split.refinements, *allocs),
        )
        return with_directions(with_statements(outer, [*loads, inner, *stores]))


class _Prices:
    """Prices of statements of main before and after transfers leave a loop, by the rules of the simulator."""

    def __init__(self, objective: ObjectiveOption, context: PassContext) -> None:
        self._objective: ObjectiveOption = objective
        self._model: CostModel | None = None
        if objective != "none" and context.hardware is not None:
            from stripe.cost.time.machine import Machine
            from stripe.cost.time.workload import CostModel  # with the simulator behind it

            self._model = CostModel(Machine.of(context.hardware))

    def known(self, nest: Nest, moved: Sequence[_Hoistable], rounds: int) -> str | Refusal | None:
        """The answer of `compared` for a loop over tiles whose transfers `moved` run `rounds` times afterwards, from
        the stages of the loop alone; None where tiles are unequal and may gain."""
        before = self._cost(nest) if self._objective == "latency" and len(nest.path) == MAIN + 1 else None
        if before is None or before.loop is None or not all(each.fills for each in moved):
            return None  # of sums that leave once, partial ones need not come back
        cycles = _hoisted_cycles(before, before.loop, moved, rounds)
        if cycles <= before.cycles and any(stage.each for stage in before.loop.stages):
            return None
        return self._judged(before.cycles, cycles)

    def compared(self, nest: Nest, hoisted: Nest) -> str | Refusal:
        """The prices of the innermost blocks of `nest` and of `hoisted` in words, empty where there are none; a refusal
        where the second is dearer."""
        before = self._cost(nest)
        after = self._cost(hoisted) if before is not None else None
        if before is None or after is None:
            return ""
        costs = (
            objective_value(cost.cycles, sum(cost.energy.values()), self._objective)
            for cost in (before, after)
        )
        return self._judged(*costs)

    def _judged(self, one: float, other: float) -> str | Refusal:
        unit = UNITS[self._objective]
        if other > one:
            return Refusal(f"it would take {other:,.0f} {unit}, and takes {one:,.0f}")
        return f"; {other:,.0f} {unit}, {one:,.0f} before"

    def _cost(self, nest: Nest) -> StatementCost | None:
        """The cost of the statement of main that holds the innermost block of `nest`; None where the machine cannot run
        it."""
        if self._model is None or len(nest.path) <= MAIN:
            return None
        block = nest.block
        for outer, number in zip(reversed(nest.blocks[:-1]), reversed(nest.path), strict=False):
            block = with_statement(outer, number, block)
        try:
            return self._model.statement(nest_at(block, nest.path[: MAIN + 1]), nest.path[MAIN])
        except ConfigError:
            return None


def _hoisted_cycles(before: StatementCost, loop: TileLoop, moved: Sequence[_Hoistable], rounds: int) -> float:
    """The time of a statement, a loop over tiles, as `rounds` runs of a loop inside of the loads `moved`, with the
    mean of each stage."""
    from stripe.cost.time.pipeline import PipelineStage, pipeline_cycles  # with the simulator behind it

    taken = {each.number for each in moved}
    kept = [number for number in range(len(loop.stages)) if number not in taken]
    place = {number: position for position, number in enumerate(kept)}
    inner = [
        PipelineStage(
            stage.resource,
            stage.cycles,
            tuple(place[n] for n in stage.deps if n in place),
            tuple(place[n] for n in stage.shares if n in place),
            tuple(place[n] for n in stage.turns if n in place),
        )
        for stage in (loop.stages[number] for number in kept)
    ]
    inside = pipeline_cycles(inner, loop.tiles // rounds, loop.depth).cycles
    loads = [loop.stages[each.number] for each in moved]
    middle = len(loads)
    resource = next(
        (stage.resource for stage, step in zip(loop.stages, loop.steps, strict=True) if not step.transfer),
        None,
    )
    outer = [PipelineStage(load.resource, load.cycles, (), (n, middle)) for n, load in enumerate(loads)]
    outer.append(PipelineStage(resource, inside, tuple(range(middle)), tuple(range(middle + 1))))
    # the loops share transfer units, which no time is too short for
    cycles = pipeline_cycles(outer, rounds, loop.depth).cycles
    spared = {load.resource: 0.0 for load in loads}
    for load in loads:
        spared[load.resource] += load.cycles * (loop.tiles - rounds)
    for resource, needed in before.demand.items():
        if resource in spared:
            cycles = max(cycles, needed - spared[resource])
    return cycles


@dataclass(frozen=True, slots=True)
class _Hoistable:
    """The only transfer that fills an allocation of its block from a view, or stores the sums of one into a view."""

    number: int
    buffer: str
    fills: bool
    agg: Agg
    names: frozenset[str]
    """The indices of the block that move its box or its units."""

    def level(self, loops: Sequence[str]) -> int:
        """The number of loops that have to stay around it."""
        return max((number for number, name in enumerate(loops, 1) if name in self.names), default=0)


def _transfers(nest: Nest) -> Iterator[_Hoistable]:
    """The transfers of the innermost block that may run less often, as far as their indices allow."""
    block = nest.block
    allocs = {ref.name: ref for ref in block.allocs}
    for number, statement in enumerate(block.statements):
        if not isinstance(statement, Block):
            continue
        match statement.statements:
            case (Load(into, read), Store(written, value)) if into == value:
                source, sink = statement.ref(read), statement.ref(written)
            case _:
                continue
        fills = sink.source in allocs
        if fills == (source.source in allocs) or "" in (source.source, sink.source):
            continue
        near, far = (sink.source, source.source) if fills else (source.source, sink.source)
        others = [other for place, other in enumerate(block.statements) if place != number]
        reads = {name for other in others for name in reads_of(other)}
        writes = {name for other in others for name in writes_of(other)}
        buffer = nest.views[far].buffer
        same = {ref.name for ref in block.refinements if nest.views[ref.name].buffer == buffer}
        if fills:
            lawful = sink.agg is Agg.ASSIGN and not (same | {near}) & writes
        else:
            sums = aggregations(block, [near]).get(near)
            lawful = sink.agg is not Agg.ASSIGN and sums == (sink.agg,)
            lawful = lawful and near not in reads and not same & (reads | writes)
        if not lawful:
            continue
        affines = [*block.ref(far).access, *(i.affine for i in statement.indices if i.affine is not None)]
        holders = (statement, block.ref(far), allocs[near], source, sink)
        movers = (*affines, *(holder.location for holder in holders))
        names = frozenset(name for each in movers for name in each.names())
        yield _Hoistable(number, near, fills, sink.agg, names)


def _obstacle(block: Block, inside: Sequence[str]) -> str | None:
    """The reason why no loop of the block can be put inside of a transfer."""
    held = {name for constraint in block.constraints for name in constraint.affine.names()}
    if bound := sorted(held.intersection(inside)):
        return f"a constraint of the block limits {', '.join(bound)}"
    if any(index.is_spatial for index in block.iterated):
        return "its points run at the same time"
    if any(statement.deps for statement in block.statements) or block.pipeline_depth is not None:
        return "it is scheduled"
    return None


def _moved_out(transfer: Block, back: dict[str, Affine]) -> Block:
    """The transfer for the block outside of its own; `back` has the indices there."""
    indices = tuple(
        index if index.affine is None else replace(index, affine=index.affine.subs(back))
        for index in transfer.indices
    )
    return replace(transfer, indices=indices, location=transfer.location.subs(back))
