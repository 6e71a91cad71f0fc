"""The pass `schedule`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field, model_validator

from stripe.cost.time.machine import Machine
from stripe.cost.time.workload import CostModel
from stripe.hw.graph import UnitGraph
from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Block,
    ConfigError,
    Location,
    Path,
    Program,
    Stage,
    Statement,
    block_at,
    keep_statements,
    nest_at,
    replace_at,
    walk,
    with_directions,
    with_entry,
    with_statements,
)
from stripe.passes.base import LOCATED, LocationSpec, Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.passes.schedule.banks import Banks
from stripe.passes.schedule.build import Target, build_statements, reduced, reuse_deps, stream_operands
from stripe.passes.schedule.plan import Limits, Planner, Step, SwapIn, SwapOut
from stripe.passes.schedule.time import Timetable, list_schedule, task_of
from stripe.passes.schedule.uses import is_tiled, operands_of, scratch_of, tiled_to_fit
from stripe.poly import statement_deps
from stripe.rewrite.prune import drop_constants, prune_refinements, user_tensors


class Schedule(Pass):
    """Moves operands through a near memory: what is copied in and out when, where it lies, and who waits for whom.

        0: #kernel block<CONV[0]> ( in<DRAM[0]> I …      0: #swap_in block<DMA[0]> ( in<DRAM[0]> I … out<SRAM[0]> I^0 …
            out<DRAM[0]> O:add … )                  =>   1[0]: #kernel block<CONV[0]> ( in<SRAM[0]> I^0 … out O^0:add …
                                                         2[1]: #swap_out block<DMA[0]> ( in<SRAM[0]> O^0 … out<DRAM[0]>

    Operands that fit become resident; others are streamed tile by tile, with `pipeline_depth` buffers so that transfers
    overlap with computing. What must make room is what is needed again last. Statements are then ordered by list
    scheduling on the units of the machine; the remarks tell the estimated time beside its lower bound (critical path,
    busiest unit, busiest bus).
    """

    pass_name: ClassVar[str] = "schedule"
    group: ClassVar[PassGroup] = PassGroup.PLACEMENT
    example: ClassVar[PassExample] = PassExample(
        "mem_loc={name:SRAM},xfer_loc={name:DMA},mem_KiB=64,num_banks=4", after=(LOCATED,)
    )
    requires: ClassVar[Stage] = Stage.LOCATED
    ensures: ClassVar[Stage | None] = Stage.SCHEDULED
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("main",)
    mem_loc: LocationSpec = Field(description="the near memory; its unit is the first bank")
    mem_KiB: float = Field(default=0.0, ge=0, description="KiB of one bank; 0: what the hardware model says")
    num_banks: int = Field(
        default=0, ge=0, description="banks, that is units of the memory; 0: as the model says"
    )
    alignment: int = Field(default=4, ge=1, description="bytes that addresses are multiples of")
    xfer_loc: LocationSpec = Field(description="unit that runs the transfers")
    pipeline_depth: int = Field(
        default=2, ge=1, description="buffers for each streamed operand; 2: double buffering"
    )
    allow_out_of_range_accesses: bool = Field(
        default=True,
        description="as the slides have it; either way transfers are clipped to the tensor, so that tiles may hang "
        "over its edge",
    )

    @model_validator(mode="after")
    def _check(self) -> Schedule:
        if self.mem_KiB and self.alignment > self.mem_KiB * 1024:
            raise ValueError(f"alignment {self.alignment} is more than the {self.mem_KiB} KiB of the memory")
        return self

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError when a statement cannot be made to fit, with the sizes."""
        context.check_unit(self.mem_loc)
        context.check_unit(self.xfer_loc)
        entry = program.entry
        for path, block in walk(program.entry):
            if len(path) > 1 and block.tags.has_all(self.reqs) and "scheduled" not in block.tags:
                if block.points > 1:
                    context.missed(
                        block, f"not scheduled: it has {block.points} points, each with its own part"
                    )
                    continue
                entry = self._scheduled(entry, path, context)
                break
        if entry is program.entry:
            return program
        user = user_tensors(program)
        entry = prune_refinements(with_directions(entry), user)
        return drop_constants(with_entry(program, entry))

    def _scheduled(self, entry: Block, path: Path, context: PassContext) -> Block:
        banks = self._banks(block_at(entry, path), context.hardware)
        entry = replace_at(entry, path, lambda block: self._tiled(block, banks, context))
        block = block_at(entry, path)
        outputs = frozenset(ref.name for ref in block.outputs if self._outlives(entry, block, ref.source))
        memory, align = self.mem_loc.name, banks.alignment
        scratch = [scratch_of(s, memory, self.pipeline_depth, align) for s in block.statements]
        limits = Limits(
            banks, self.pipeline_depth, self._reachable(block, banks, context.hardware),
            outputs, _fresh(entry, block),
            tuple(map(is_tiled, block.statements)), scratch,
        )  # fmt: skip
        planner = Planner(block, limits)
        steps = planner.run()
        target = Target(self.mem_loc.name, self.xfer_loc.fixed(), self.pipeline_depth)
        entry = stream_operands(entry, path, steps, target, context)
        built, expanded = build_statements(nest_at(entry, path), steps, planner.entries, target)
        entry = replace_at(entry, path, lambda _: with_directions(built))
        return self._ordered(entry, path, expanded, context)

    @staticmethod
    def _outlives(entry: Block, block: Block, source: str) -> bool:
        """Whether somebody outside of the block sees what it writes there."""
        outside = entry.find_ref(source)
        return outside is None or "user" in outside.tags or "main" not in block.tags

    def _banks(self, block: Block, hardware: HardwareModel | None) -> Banks:
        unit = hardware.mem_units.get(self.mem_loc.name) if hardware is not None else None
        size = int(self.mem_KiB * 1024) or (unit.size if unit is not None else 0)
        count = self.num_banks or (unit.count if unit is not None else 1)
        if size == 0:
            raise ConfigError(
                "the size of the near memory is not known", hint="set mem_KiB, or give a hardware model"
            )
        if unit is not None and (count > unit.count or size > unit.size):
            raise ConfigError(
                f"{count} banks of {size} bytes are more than the model's {unit.count} {self.mem_loc.name} of "
                f"{unit.size}",
                hint="lower num_banks or mem_KiB",
            )
        alignment = max(self.alignment, unit.alignment if unit else 1)
        widths = (ref.dtype.bytes for ref in block.refinements)
        return Banks(count, size, math.lcm(alignment, *widths))

    def _reachable(self, block: Block, banks: Banks, hardware: HardwareModel | None) -> list[tuple[int, ...]]:
        """The banks that each statement may use."""
        everything = tuple(range(banks.count))
        result: list[tuple[int, ...]] = []
        graph = UnitGraph(hardware) if hardware is not None else None
        for statement in block.statements:
            location = statement.location if isinstance(statement, Block) else Location()
            result.append(self._reached_from(location, everything, graph))
        return result

    def _reached_from(
        self, location: Location, everything: tuple[int, ...], graph: UnitGraph | None
    ) -> tuple[int, ...]:
        if graph is None or not location or str(location) not in graph.units:
            return everything
        near = graph.memories_of(str(location))
        found = tuple(bank for bank in everything if f"{self.mem_loc.name}[{bank}]" in near)
        if not found:
            hint = "add a bus to the hardware model, or locate the block elsewhere"
            raise ConfigError(f"{location} reaches no {self.mem_loc.name}", hint=hint)
        return found

    def _tiled(self, block: Block, banks: Banks, context: PassContext) -> Block:
        """Tiles each statement whose operands cannot all be resident and that is not tiled yet."""
        statements: list[Statement] = []
        for number, statement in enumerate(block.statements):
            whole = sum(
                -(-op.bytes // banks.alignment) * banks.alignment for op in operands_of(block, number)
            )
            largest = max((op.bytes for op in operands_of(block, number)), default=0)
            fits = whole <= banks.capacity and largest <= banks.bytes
            if isinstance(statement, Block) and not fits and not is_tiled(statement):
                tiled = None
                if not any(True for _ in statement.blocks):
                    tiled = tiled_to_fit(statement, banks, self.pipeline_depth)
                if tiled is not None:
                    points = tiled.points
                    context.applied(
                        statement, f"tiled into {points} tiles to stream: {whole} bytes, {banks.capacity} fit"
                    )
                    statement = tiled
            statements.append(statement)
        return with_statements(block, statements)

    def _ordered(self, entry: Block, path: Path, steps: Sequence[Step], context: PassContext) -> Block:
        """Sets the dependences and puts the statements in the order of their start."""
        nest = nest_at(entry, path)
        deps = reuse_deps(steps)
        for wanted, data in zip(deps, statement_deps(nest, reduced=False), strict=True):
            wanted.update(data)
        final = reduced(deps)
        model = CostModel(Machine(context.hardware)) if context.hardware is not None else None
        tasks = [task_of(nest, number, model) for number in range(len(nest.block.statements))]
        table = list_schedule(tasks, final)
        statements = [replace(s, deps=d) for s, d in zip(nest.block.statements, final, strict=True)]
        order = sorted(range(len(statements)), key=lambda number: (table.starts[number], number))
        block = keep_statements(with_statements(nest.block, statements), _topological(order, final))
        block = replace(block, tags=block.tags.add("scheduled"))
        self._report(block, steps, table, context)
        return replace_at(
            entry,
            path,
            lambda _: prune_refinements(
                block, frozenset(r.name for r in entry.refinements if "user" in r.tags)
            ),
        )

    def _report(self, block: Block, steps: Sequence[Step], table: Timetable, context: PassContext) -> None:
        ins = sum(isinstance(step, SwapIn) for step in steps)
        outs = sum(isinstance(step, SwapOut) for step in steps)
        streams = sum("pipeline_depth" in statement.tags for statement in block.statements)
        context.applied(
            block, f"{len(steps)} statements: {ins} swap-ins, {outs} swap-outs, {streams} streamed"
        )
        gap = (table.estimate / table.lower_bound - 1) * 100 if table.lower_bound else 0.0
        unit, busy = table.busiest_unit
        shared, moved = table.busiest_shared
        context.analysis(
            block,
            f"estimated {table.estimate:.0f} cycles, {gap:.1f} % above the lower bound {table.lower_bound:.0f} "
            f"(critical path {table.critical_path:.0f}, {unit} {busy:.0f}, {shared} {moved:.0f})",
        )


def _topological(order: Sequence[int], deps: Sequence[Sequence[int]]) -> list[int]:
    """`order` with each statement after those it waits for, also where starts are equal."""
    result: list[int] = []
    done: set[int] = set()
    pending = list(order)
    while pending:
        for number in pending:
            if all(dep in done for dep in deps[number]):
                result.append(number)
                done.add(number)
                pending.remove(number)
                break
    return result


def _fresh(entry: Block, block: Block) -> frozenset[str]:
    """The buffers of `block` that hold nothing before it runs: its own, and temporaries of the program for main."""
    user = {ref.name for ref in entry.refinements if ref.tags.has_any(("user", "const"))}
    whole = "main" in block.tags
    return frozenset(
        ref.name for ref in block.refinements if ref.is_alloc or (whole and ref.source not in user)
    )
