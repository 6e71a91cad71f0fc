"""The pass `memory_placement`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from stripe.hw.schema import MemUnit
from stripe.ir import (
    Block,
    ConfigError,
    LiveRange,
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
from stripe.ir.frozen import replace
from stripe.passes.base import LOCATED, LocationSpec, Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.passes.memory_placement.in_flight import pairs_in_flight, pipelined_blocks, with_copies
from stripe.passes.memory_placement.packing import Item, all_conflicts, pack
from stripe.passes.memory_placement.side_by_side import SideBySide
from stripe.passes.memory_placement.units import UnitPath, aliasing, index_intervals, may_alias, unit_path


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
    ensures: ClassVar[Stage | None] = Stage.PLACED
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("program",)
    locs: tuple[LocationSpec, ...] = Field(
        default=(), description="memories to place; every memory where empty"
    )
    alignment: int = Field(default=4, ge=1, le=1 << 40, description="bytes that addresses are multiples of")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError when the buffers do not fit into a memory of the hardware model, with the sizes."""
        entry = program.entry
        if not entry.words.has_all(self.reqs):
            context.missed(
                entry, f"nothing is placed: the program lacks one of the tags {', '.join(self.reqs)}"
            )
            return program
        wanted = {spec.name for spec in self.locs}
        memories = context.hardware.mem_units if context.hardware else {}
        caches = {name for name, memory in memories.items() if memory.is_cache}  # these have no addresses
        members = [
            live
            for live in live_ranges(entry)
            if live.ref.location
            and live.ref.location.name not in caches
            and (not wanted or live.ref.location.name in wanted or live.ref.offset is not None)
        ]
        pipelined = pipelined_blocks(entry)
        sharing = SideBySide.of(entry, members, context.hardware)
        members = [
            self._spaced(sharing.instantiated(with_copies(live, pipelined)), memories) for live in members
        ]
        intervals = index_intervals(entry)
        units = [unit_path(live.ref, intervals[live.path]) for live in members]
        paths = list(dict.fromkeys(units))
        placed: dict[tuple[Path, str], Refinement] = {}
        for group in aliasing(paths):
            chosen = {paths[number] for number in group}
            inside = [number for number, path in enumerate(units) if path in chosen]
            alike = [members[n] for n in inside]
            at_once = [*sharing.pairs(alike), *pairs_in_flight(alike, pipelined)]
            found = self._place(alike, [units[n] for n in inside], at_once, context)
            placed |= {
                (members[n].path, members[n].ref.name): replace(members[n].ref, offset=offset)
                for n, offset in zip(inside, found, strict=True)
            }

        def put(block: Block, path: Path) -> Block:
            refs = tuple(placed.get((path, ref.name), ref) for ref in block.refinements)
            block = block if refs == block.refinements else replace(block, refinements=refs)
            inside = enumerate(block.statements)
            return with_statements(
                block, [put(s, (*path, n)) if isinstance(s, Block) else s for n, s in inside]
            )

        result = with_entry(program, put(entry, (0,)))
        allocs = (*result.entry.allocs, *result.main.allocs)
        if result.stage is Stage.SCHEDULED and all(ref.offset is not None for ref in allocs):
            return result.at_stage(Stage.PLACED)
        return result

    def _spaced(self, live: LiveRange, memories: Mapping[str, MemUnit]) -> LiveRange:
        """The live range with copies as far apart that each is aligned; those of a buffer with an address stay."""
        ref, alignment = live.ref, self._alignment(live, memories)
        if ref.copies == 1 or ref.offset is not None or ref.copy_distance % alignment == 0:
            return live
        return replace(live, ref=replace(ref, pitch=-(-ref.copy_distance // alignment) * alignment))

    def _alignment(self, live: LiveRange, memories: Mapping[str, MemUnit]) -> int:
        """Bytes that addresses of a buffer are multiples of."""
        memory = memories.get(live.ref.location.name)
        return math.lcm(self.alignment, memory.alignment if memory else 1, live.ref.dtype.bytes)

    def _place(
        self,
        members: list[LiveRange],
        units: Sequence[UnitPath],
        at_once: Iterable[tuple[int, int]],
        context: PassContext,
    ) -> list[int]:
        """Addresses for buffers in units that may be one; the pairs `at_once` are used at one time."""
        memories = context.hardware.mem_units if context.hardware else {}
        items: list[Item] = []
        for live in members:
            items.append(Item(live.bytes, self._alignment(live, memories)))
        fixed = {n: live.ref.offset for n, live in enumerate(members) if live.ref.offset is not None}
        # Buffers whose location has the same text in the same block are in one unit at each point.
        places: dict[tuple[object, ...], list[LiveRange]] = {}
        for live in members:
            home = live.path if live.ref.location.names() else ()
            places.setdefault((live.ref.location, home), []).append(live)
        bound = max(map(peak_bytes, places.values()))
        offsets = pack(items, *_conflicts(members, units, at_once), fixed, bound)
        ends = [offset + item.bytes for offset, item in zip(offsets, items, strict=True)]
        gap = (max(ends) - bound) / bound * 100 if bound else 0.0
        context.applied(
            ", ".join(dict.fromkeys(str(live.ref.location) for live in members)),
            f"{len(members)} buffers in {max(ends)} bytes; lower bound {bound}, {gap:.1f} % above it",
        )
        for end, live in sorted(zip(ends, members, strict=True), key=lambda pair: -pair[0]):
            location, memory = live.ref.location, memories.get(live.ref.location.name)
            if memory is not None and end > memory.size:
                raise ConfigError(
                    f"the buffers in {location} take {end} bytes, it has {memory.size}",
                    hint=f"at least {bound} bytes are alive at one time; tile more finely, or enlarge the memory",
                )
        return offsets


def _conflicts(
    members: Sequence[LiveRange], units: Sequence[UnitPath], at_once: Iterable[tuple[int, int]]
) -> tuple[list[list[int]], frozenset[int]]:
    """For each buffer the others that it may not overlap, and the buffers that may overlap none, which have no list."""
    met = interference(members)
    for first, second in at_once:
        met[first].append(second)
        met[second].append(first)
    met = [sorted(set(numbers)) for numbers in met]
    always = frozenset(n for n, live in enumerate(members) if live.always)
    paths = dict.fromkeys(units)
    apart = {(a, b) for a in paths for b in paths if not may_alias(a, b)}
    if not apart:
        return met, always
    alive = enumerate(all_conflicts(met, always))
    near = [[m for m in others if (units[n], units[m]) not in apart] for n, others in alive]
    return near, frozenset()
