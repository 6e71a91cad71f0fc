"""The pass `memory_placement`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Block,
    ConfigError,
    LiveRange,
    Location,
    Path,
    Program,
    Refinement,
    Stage,
    interference,
    live_ranges,
    peak_bytes,
    with_entry,
    with_statements,
)
from stripe.passes.base import LOCATED, LocationSpec, Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.passes.memory_placement.packing import Item, pack


class MemoryPlacement(Pass):
    """Gives each buffer of a memory its address, such that no two that are alive at the same time overlap.

    With dependences in brackets, `{ "reqs": ["program"] }`:

        #tmp none new@0x00000000<DRAM[0]> T[0] i8(64:1)          #placed #tmp none new@0x00000000<DRAM[0]> T[0] …
        #tmp none new@0x00000000<DRAM[0]> U[0] i8(64:1)          #placed #tmp none new@0x00000040<DRAM[0]> U[0] …
        #tmp none new@0x00000000<DRAM[0]> V[0] i8(64:1)          #placed #tmp none new@0x00000000<DRAM[0]> V[0] …
        0: block [x:64] ( out<DRAM[0]> T[x] i8(1:1) ) { … }
        1[0]: block [x:64] ( in<DRAM[0]> T[x] i8(1:1)      =>
            out<DRAM[0]> U[x] i8(1:1) ) { … }
        2[1]: block [x:64] ( in<DRAM[0]> U[x] i8(1:1)
            out<DRAM[0]> V[x] i8(1:1) ) { … }

    Two buffers may share bytes when every statement that uses one waits, by its dependences, for every statement that
    uses the other. Tensors of the user live throughout. The remark tells the bytes taken and their lower bound: the
    peak of bytes alive at one statement.
    """

    pass_name: ClassVar[str] = "memory_placement"
    group: ClassVar[PassGroup] = PassGroup.PLACEMENT
    example: ClassVar[PassExample] = PassExample("locs=[{name:DRAM}]", after=(LOCATED, "compute_deps"))
    requires: ClassVar[Stage] = Stage.LOCATED
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("program",)
    locs: tuple[LocationSpec, ...] = Field(
        default=(), description="memories to place; every memory where empty"
    )
    alignment: int = Field(default=4, ge=1, description="bytes that addresses are multiples of")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError when the buffers do not fit into a memory of the hardware model, with the sizes."""
        entry = program.entry
        if not entry.words.has_all(self.reqs):
            context.missed(
                entry, f"nothing is placed: the program lacks one of the tags {', '.join(self.reqs)}"
            )
            return program
        ranges = [live for live in live_ranges(entry) if live.ref.location]
        wanted = {spec.name for spec in self.locs}
        offsets: dict[tuple[Path, str], int] = {}
        for location in dict.fromkeys(live.ref.location for live in ranges):
            if not wanted or location.name in wanted:
                members = [live for live in ranges if live.ref.location == location]
                offsets |= self._place(location, members, context)
        return with_entry(program, _with_offsets(entry, (0,), offsets))

    def _place(
        self, location: Location, members: list[LiveRange], context: PassContext
    ) -> Mapping[tuple[Path, str], int]:
        """Addresses for the buffers of one memory, by the path of their block and their name."""
        unit = context.hardware.mem_units.get(location.name) if context.hardware else None
        align = max(self.alignment, unit.alignment if unit else 1)
        fixed = {n: live.ref.offset for n, live in enumerate(members) if live.ref.offset is not None}
        items = [Item(live.ref.bytes, math.lcm(align, live.ref.dtype.bytes)) for live in members]
        bound = peak_bytes(members)
        always = frozenset(n for n, live in enumerate(members) if live.always)
        offsets = pack(items, interference(members), fixed, bound, always)
        taken = max(offset + item.bytes for offset, item in zip(offsets, items, strict=True))
        gap = (taken - bound) / bound * 100 if bound else 0.0
        context.applied(
            str(location),
            f"{len(members)} buffers in {taken} bytes; lower bound {bound}, {gap:.1f} % above it",
        )
        if unit is not None and taken > unit.size:
            raise ConfigError(
                f"the buffers in {location} take {taken} bytes, it has {unit.size}",
                hint=f"at least {bound} bytes are alive at one time; tile more finely, or enlarge the memory",
            )
        return {(live.path, live.ref.name): offset for live, offset in zip(members, offsets, strict=True)}


def _with_offsets(block: Block, path: Path, offsets: Mapping[tuple[Path, str], int]) -> Block:
    def placed(ref: Refinement) -> Refinement:
        offset = offsets.get((path, ref.name)) if ref.is_alloc else None
        if offset is None or offset == ref.offset:
            return ref
        return replace(ref, offset=offset)

    refs = tuple(placed(ref) for ref in block.refinements)
    if any(a is not b for a, b in zip(refs, block.refinements, strict=True)):
        block = replace(block, refinements=refs)
    statements = [
        _with_offsets(s, (*path, number), offsets) if isinstance(s, Block) else s
        for number, s in enumerate(block.statements)
    ]
    return with_statements(block, statements)
