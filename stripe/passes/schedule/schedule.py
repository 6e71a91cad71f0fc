"""The pass `schedule`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle
from typing import ClassVar

from pydantic import Field, model_validator

from stripe.cost.time.machine import Machine
from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Block,
    ConfigError,
    Location,
    Nest,
    Path,
    Program,
    Role,
    Stage,
    block_at,
    buffer_instances,
    nest_at,
    replace_at,
    walk,
    with_directions,
    with_entry,
    with_statements,
)
from stripe.ir.frozen import replace
from stripe.passes.base import (
    LOCATED,
    LocationSpec,
    Pass,
    PassContext,
    PassExample,
    PassGroup,
    Refusal,
    Remark,
    Reqs,
)
from stripe.passes.schedule.banks import Banks
from stripe.passes.schedule.build import build_statements, stream_operands
from stripe.passes.schedule.plan import Residency, ResidencyPlanner, SwapIn, SwapOut, signature
from stripe.passes.schedule.routes import check_transfers, reachable
from stripe.passes.schedule.time import list_scheduled
from stripe.passes.schedule.uses import (
    Needs,
    is_tiled,
    operands_of,
    scratch_of,
    stream_instances,
    tiled_to_fit,
)
from stripe.passes.schedule.written import WrittenElements
from stripe.rewrite.prune import drop_constants, prune_refinements, user_tensors, with_interface

POLICIES = (
    (Residency.COPY, 2), (Residency.MIXED, 16), (Residency.STREAM, 16), (Residency.MIXED, 4), (Residency.STREAM, 4)
)  # fmt: skip
"""The choices of a schedule: the preferred residency, and the fewest tiles of a statement that is tiled to be streamed.
With more of them filling and draining take less of its time, with fewer its tiles overlap less."""


@dataclass(frozen=True, slots=True)
class _Scheduled:
    """A schedule: its entry, cycles, remarks and choices. It `waits` for a whole operand at its beginning, and `drains`
    whole results at its end."""

    entry: Block
    cycles: float
    remarks: list[Remark]
    policies: tuple[Residency, ...]
    least: int
    waits: bool
    drains: bool


class Schedule(Pass):
    """Moves operands through a near memory: copies in and out, their addresses, and the order of all statements.

    With `{ "mem_loc": { "name": "SRAM" }, "xfer_loc": { "name": "DMA" } }`:

        0: #kernel block<DSP[0]> [x:64] (        0: #kernel #pipeline_depth=2 block<DSP[0]> [x:16] (
            in<DRAM[0]> I[x] i8(1:1)                 #buffers=2 #cached #placed none new<SRAM[0]> I[0] i8(4:1)
            out<DRAM[0]> O[x] i8(1:1)       =>       #buffers=2 #cached #placed none new<SRAM[1]> O[0] i8(4:1)
        ) { … }                                      0: #cache #cache_load block<DMA[0]> [d0:4] (
                                                     1: #streamed_tile block [x:4] (
                                                     2: #cache #cache_store block<DMA[0]> [d0:4] (

    Operands become resident, or are streamed tile by tile, with `pipeline_depth` buffers so that transfers overlap with
    computing: on a machine, whichever is quickest. The copy with the latest next use makes room. Statements are then
    ordered by list scheduling on the units of the machine; the remarks tell the estimated time beside its lower bound
    (critical path, busiest unit, busiest bus).
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
    mem_loc: LocationSpec = Field(description="the near memory; its unit is the first bank, 'all' all banks")
    mem_KiB: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="KiB of one bank; 0: as the hardware model says"
    )
    num_banks: int = Field(
        default=0, ge=0, description="banks, that is units of the memory; 0: as the model says"
    )
    alignment: int = Field(default=4, ge=1, le=1 << 40, description="bytes that addresses are multiples of")
    xfer_loc: LocationSpec = Field(
        description="unit that runs the transfers; on 'any' and on 'all' those of the name take turns"
    )
    pipeline_depth: int = Field(
        default=2, ge=1, description="buffers for each streamed operand; 2: double buffering"
    )
    allow_out_of_range_accesses: bool = Field(
        default=True,
        description="without an effect, there for the lists of the slides: transfers are clipped to the tensor, so "
        "that tiles may hang over its edge",
    )

    @model_validator(mode="after")
    def _check(self) -> Schedule:
        if self.mem_KiB and self.alignment > self.mem_KiB * 1024:
            raise ValueError(f"alignment {self.alignment} is more than the {self.mem_KiB} KiB of the memory")
        return self

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError when a statement cannot be made to fit, with the sizes, and unless the machine has the
        units, a memory and a unit that is no memory."""
        hardware = context.hardware
        if self.xfer_loc.is_all:
            context.need_hardware(f"schedule with transfers on all {self.xfer_loc.name}")
        context.check_unit(self.mem_loc)
        context.check_unit(self.xfer_loc)
        if hardware is not None:
            if hardware.memory(self.mem_loc.name).is_cache:
                raise ConfigError(
                    f"'{self.mem_loc.name}' is a cache, and has no addresses",
                    hint="name a memory to which transfers move data",
                )
            if self.xfer_loc.name in hardware.mem_units:
                others = [name for name in hardware.units if name not in hardware.mem_units]
                raise ConfigError(
                    f"'{self.xfer_loc.name}' is a memory, and runs no transfers",
                    hint=f"units that may are {', '.join(others) or 'none'}",
                )
        machine = Machine.of(hardware) if hardware is not None else None
        entry = program.entry
        # A near copy would begin at the identity of merges, not at the values that the caller passes.
        both = sorted({ref.name for ref in program.inputs} & {ref.name for ref in program.outputs})
        for path, block in walk(program.entry):
            if len(path) == 1 or not block.words.has_all(self.reqs) or block.stage >= Stage.SCHEDULED:
                continue
            if block.points > 1:
                reason = f"it has {block.points} points, each with its own part"
            elif both:
                reason = f"{', '.join(both)} is input and output of the program at once"
            elif (shared := _overlapping(block)) is not None:
                # A near copy of either view would not see the writes through the other.
                reason = f"the views {' and '.join(shared)} share elements that are written"
            elif (view := _hanging(nest_at(entry, path))) is not None:
                reason = f"the view {view} hangs over the edge of its tensor, and copies take it whole"
            else:
                scheduled = self._scheduled(entry, path, machine, context)
                if isinstance(scheduled, Block):
                    entry = scheduled
                    break
                reason = scheduled.reason
            context.missed(block, f"not scheduled: {reason}")
        if entry is program.entry:
            return program
        entry = prune_refinements(with_directions(entry), user_tensors(entry))
        return drop_constants(with_entry(program, with_interface(entry, program)))

    def _scheduled(
        self, entry: Block, path: Path, machine: Machine | None, context: PassContext
    ) -> Block | Refusal:
        """The entry with the block at `path` scheduled by the quickest of the policies.

        Copying whole operands moves least, and streaming overlaps moving with computing: it stays among the choices, so
        that a larger memory never makes a schedule slower. Nothing computes while operands of the first statement come
        and results of the last statement leave: where these are whole, streaming them alone is tried, too.
        """
        nest = nest_at(entry, path)
        block, written = nest.block, WrittenElements(nest)
        if (obstacle := written.obstacle()) is not None:
            return Refusal(obstacle)
        best: _Scheduled | None = None
        refused: ConfigError | Refusal | None = None
        tried: list[object] = []

        def choices() -> Iterator[tuple[tuple[Residency, ...], int]]:
            yield from (((policy,) * len(block.statements), least) for policy, least in POLICIES)
            if best is not None and best.waits and len(block.statements) > 1:
                yield (Residency.INPUTS, *best.policies[1:]), best.least
            if best is not None and best.drains and len(block.statements) > 1:
                yield (*best.policies[:-1], Residency.STREAM), best.least

        for policies, least in choices():
            if best is not None and machine is None:
                break  # without a machine times say too little to choose by
            remarks: list[Remark] = []
            quiet = replace(context, listener=remarks.append)
            try:
                banks = self._banks(nest, context.hardware)
                tiled = self._tiled(nest, banks, policies, least, quiet)
                if (policies, tiled) in tried:
                    continue
                tried.append((policies, tiled))
                planner = self._planned(nest.with_block(tiled), banks, policies, written, machine)
                plan = tiled, [signature(step) for step in planner.steps]
                if plan in tried:
                    continue
                tried.append(plan)
                found, estimate = self._built(entry, path, planner, written, machine, quiet)
            except ConfigError as error:
                refused = refused or error
                continue
            if (fault := self._fault(entry, found, path)) is not None:
                refused = refused or fault
            elif best is None or estimate < best.cycles:
                ends = planner.steps[:1], planner.steps[-1:]
                waits, drains = (any(isinstance(step, SwapIn | SwapOut) for step in end) for end in ends)
                best = _Scheduled(found, estimate, remarks, policies, least, waits, drains)
        if best is None:
            assert refused is not None
            if isinstance(refused, Refusal):
                return refused
            raise refused
        if context.listener is not None:
            for remark in best.remarks:
                context.listener(remark)
        return best.entry

    def _fault(self, before: Block, after: Block, path: Path) -> Refusal | None:
        """The reason why a schedule would overwrite other buffers, or fetch tensors that no caller passes."""
        memory = self.mem_loc.name
        old, there = (
            Counter(ref for _, block in walk(entry) for ref in block.allocs if ref.location.name == memory)
            for entry in (before, after)
        )
        others = [ref for ref in there if ref.offset is None or ref in old]
        if others and any(ref.offset is not None for ref in there - old):
            return Refusal(
                f"'{others[0].name}' lies in {memory}, where the schedule would place others over it"
            )
        # Callers do not pass the outputs that main only writes.
        reads = {ref.source for ref in block_at(before, path).refinements if ref.dir.reads}
        views = block_at(after, path).refinements if block_at(after, path).is_main else ()
        for name in (ref.source for ref in views if ref.dir.reads and ref.source not in reads):
            if before.ref(name).role is Role.USER:
                return Refusal(f"it would fetch elements of the output '{name}' again")
        return None

    def _planned(
        self,
        nest: Nest,
        banks: Banks,
        policies: Sequence[Residency],
        written: WrittenElements,
        machine: Machine | None,
    ) -> ResidencyPlanner:
        """The planner of the innermost block with all steps."""
        block, depth, units = nest.block, self.pipeline_depth, self._units(machine)
        inside = dict(nest.children())
        needs = [
            Needs(
                operands_of(block, number),
                scratch_of(inside[number], banks, depth) if number in inside else (),
                reachable(inside.get(number, nest), banks, units, machine and machine.graph),
                number in inside and is_tiled(inside[number], depth),
                stream_instances(inside[number], depth) if number in inside else 1,
            )
            for number in range(len(block.statements))
        ]
        # Temporaries of the program do not outlive main.
        inner = nest.blocks[0].refinements if block.is_main else ()
        temporaries = {ref.name for ref in inner if ref.role is not Role.USER}
        outputs = frozenset(ref.name for ref in block.outputs if ref.source not in temporaries)
        fresh, unread = written.fresh, written.unread()
        planner = ResidencyPlanner(block, needs, banks, depth, outputs, fresh, unread, policies)
        planner.run()
        return planner

    def _built(
        self,
        entry: Block,
        path: Path,
        planner: ResidencyPlanner,
        written: WrittenElements,
        machine: Machine | None,
        context: PassContext,
    ) -> tuple[Block, float]:
        """The entry with the planned steps in the place of the block at `path`, and the cycles of the schedule."""
        units = self._units(machine)
        turns = cycle(units)
        entry = replace_at(entry, path, lambda _: planner.block)
        entry = stream_operands(entry, path, planner, turns, context)
        built, origins = build_statements(nest_at(entry, path), planner, turns, written)
        block = with_directions(built)
        if machine is not None:
            check_transfers(block, units, machine.graph)
        nest = nest_at(replace_at(entry, path, lambda _: block), path)
        block, cycles = list_scheduled(nest, origins, machine, context)
        block = prune_refinements(block, user_tensors(entry))
        return replace_at(entry, path, lambda _: block), cycles

    def _units(self, machine: Machine | None) -> tuple[Location, ...]:
        """The units that take turns with transfers."""
        return self.xfer_loc.each(
            machine.model.unit(self.xfer_loc.name).count if machine is not None else None
        )

    def _banks(self, nest: Nest, hardware: HardwareModel | None) -> Banks:
        unit = hardware.mem_units.get(self.mem_loc.name) if hardware is not None else None
        size = int(self.mem_KiB * 1024) or (unit.size if unit is not None else 0)
        first = self.mem_loc.each(1)[0].devices[-1].units[0].offset
        count = self.num_banks or (unit.count - first if unit is not None else 1)
        if size == 0:
            raise ConfigError(
                "the size of the near memory is not known", hint="set mem_KiB, or give a hardware model"
            )
        if unit is not None and (first + count > unit.count or size > unit.size):
            after = f" from number {first} on" if first else ""
            raise ConfigError(
                f"{count} banks of {size} bytes{after} are more than the model's {unit.count} {self.mem_loc.name} of "
                f"{unit.size}",
                hint="lower num_banks or mem_KiB",
            )
        widths = (ref.dtype.bytes for ref in nest.block.refinements)
        alignment = math.lcm(self.alignment, unit.alignment if unit else 1, *widths)
        return Banks(self.mem_loc.name, count, size, alignment, first, buffer_instances(nest))

    def _tiled(
        self, nest: Nest, banks: Banks, policies: Sequence[Residency], least: int, context: PassContext
    ) -> Block:
        """Tiles each statement whose operands cannot all be resident and that is not tiled yet; all statements where
        operands are to be streamed."""
        block = nest.block
        statements = list(block.statements)
        for number, statement in enumerate(block.statements):
            sizes = [banks.reserved(operand.bytes) for operand in operands_of(block, number)]
            whole = sum(map(banks.aligned, sizes))
            if not isinstance(statement, Block) or any(True for _ in statement.blocks):
                continue
            fits = whole <= banks.capacity and max(sizes, default=0) <= banks.bytes
            if fits and policies[number] is not Residency.STREAM:
                continue
            tiled = tiled_to_fit(statement, banks, self.pipeline_depth * banks.users, least)
            if tiled is not None:
                remark = f"tiled into {tiled.points} tiles to stream: {whole} bytes, {banks.capacity} fit"
                context.applied(statement, remark)
                statements[number] = tiled
        return with_statements(block, statements)


def _hanging(nest: Nest) -> str | None:
    """A view of the innermost block that leaves its tensor."""
    for ref in nest.block.refinements:
        view = nest.views[ref.name]
        tensor = nest.blocks[len(view.buffer.path) - 1].ref(view.buffer.name)
        for origin, size, room in zip(view.origin, ref.sizes, tensor.sizes, strict=True):
            low, high = nest.domain.reach(origin)
            if low < 0 or high + size > room:
                return ref.name
    return None


def _overlapping(block: Block) -> tuple[str, str] | None:
    """Two views of one buffer, of which either writes, that may share elements."""
    views = [ref for ref in block.refinements if not ref.is_alloc]
    for first, second in combinations(views, 2):
        if first.source != second.source or not (first.dir.writes or second.dir.writes):
            continue
        sides = zip(first.access, first.sizes, second.access, second.sizes, strict=True)
        # Along a dimension in which the distance is no number the views may share elements.
        apart = ((a - b).is_constant and not -size < (a - b).offset < other for a, size, b, other in sides)
        if not any(apart):
            return first.name, second.name
    return None
