"""The pass `subgroup`."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from pydantic import Field

from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Block,
    ConfigError,
    Location,
    Path,
    Program,
    Refinement,
    Special,
    indices_of,
    replace_at,
    walk,
    with_entry,
    with_statements,
)
from stripe.ir.frozen import replace
from stripe.passes.base import LocationSpec, Pass, PassContext, PassExample, PassGroup, Refusal, Reqs
from stripe.passes.subgroup.search import LaneMachine, LaneTile, LaneView, lane_index, search
from stripe.rewrite.banks import Cut, rebanked
from stripe.rewrite.cached import CacheOptions, cache_view
from stripe.rewrite.tile import tile_block


class Subgroup(Pass):
    """Tiles a block for a subgroup: threads in lockstep that hold a tile in their registers and share their reads.

    With subgroups of 16 lanes, `{ "reqs": ["kernel"], "register_loc": { "name": "REGS" } }`:

        #kernel block [k:64, m:32, n:64] (      #kernel #subgroup_outer block [k:1, m:4, n:4] (
            in A[m, k]                              #cached none new<REGS[0]> O[0, 0, 0] ({16:8}, 8:1, 1:1)
            in B[k, n]                            0: #subgroup_steps block [k:4, m:1, n:1] (
            out O[m, n]:add                =>         #cached none new<REGS[0]> A[0, 0, 0] ({16:8}, 8:1, 1:1)
        ) { … }                                       #cached none new<REGS[0]> B[0, 0, 0] ({16:16}, 16:1, 1:1)
                                                    0: #cache #cache_load block [d0:8, d1:16] (
                                                    1: #cache #cache_load block [d0:16, d1:16] (
                                                    2: #subgroup_inner block [k:16, m:8, n:1] (
                                                      0: #subgroup_thread block [k:1, m:1, #subgroup_lane n:16] (
                                                          #broadcast in<REGS[0]> A[0, 0, 0] …
                                                  1: #cache #cache_store block [d0:8, d1:16] (

    One index that is contiguous in the output runs over the lanes and numbers the threads. An index that is summed
    over may run over the lanes too where it is contiguous in an input: each lane then loads a share, and the threads
    hand elements around (views tagged `broadcast`). All divisors of all ranges are tried; the cost of a tile is the
    cycles that it waits, with the latencies of the hardware model: (misses * of main memory + hits * of its smallest
    cache) / operations.
    """

    pass_name: ClassVar[str] = "subgroup"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[kernel],register_loc={name:REGS}", hardware="mobile_gpu"
    )
    refused: ClassVar[str] = "no subgroup"

    reqs: Reqs
    register_loc: LocationSpec | None = Field(default=None, description="where the registers are")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError without a hardware model that has subgroups, registers and a cache."""
        hardware = context.need_hardware("subgroup")
        _machine(hardware, Location())
        entry = program.entry
        for path, block in list(walk(entry)):
            inner = any(isinstance(statement, Block | Special) for statement in block.statements)
            done = block.tags.has_any(("subgroup_thread", "cache"))
            if inner or done or not block.words.has_all(self.reqs):
                continue
            best = search(block, _machine(hardware, block.location))
            if isinstance(best, Refusal):
                self.settled(block, best, context)
                continue
            context.applied(block, str(best))
            nested = replace_at(entry, path, partial(self._nest, best))
            entry = self._with_registers(nested, path, block, best)
        return with_entry(program, entry)

    def _nest(self, chosen: LaneTile, block: Block) -> Block:
        """Tiles of the output, steps of the sums, points of a lane, lanes: one inside the other."""
        output = block.outputs[0]
        moving = indices_of(output.access)
        grid = tile_block(
            block, {i.name: chosen.tile[i.name] if i.name in moving else i.range for i in block.iterated}
        )
        (rest,) = grid.blocks
        steps = tile_block(rest, dict(chosen.tile))
        (tile,) = steps.blocks
        points = tile_block(
            tile, {i.name: chosen.lanes if i.name == chosen.thread else 1 for i in tile.iterated}
        )
        (lanes,) = points.blocks
        indices = tuple(
            replace(i, tags=i.tags.add("subgroup_lane")) if i.name == chosen.thread else i
            for i in lanes.indices
        )
        # a view of which all threads use the same element needs a broadcast
        moved = {ref.name for ref in lanes.refinements for a in ref.access if chosen.thread in a.names()}
        refs = tuple(
            ref if ref.name in moved else replace(ref, tags=ref.tags.add("broadcast"))
            for ref in lanes.refinements
        )
        lanes = replace(lanes, indices=indices, refinements=refs, tags=lanes.tags.add("subgroup_thread"))
        points = replace(with_statements(points, [lanes]), tags=points.tags.add("subgroup_inner"))
        steps = replace(with_statements(steps, [points]), tags=steps.tags.add("subgroup_steps"))
        return replace(with_statements(grid, [steps]), tags=grid.tags.add("subgroup_outer"))

    def _with_registers(self, entry: Block, path: Path, block: Block, chosen: LaneTile) -> Block:
        """Copies in registers, spread over the lanes: of the inputs for each step, of the output for all of them."""
        location = self.register_loc.location() if self.register_loc else Location()
        options = CacheOptions(location)
        for where, refs in (((*path, 0), block.inputs), (path, block.outputs)):
            for ref in refs:
                cached = cache_view(entry, where, ref.name, options)
                if isinstance(cached, Refusal):
                    continue  # nothing loads or stores through the view
                entry = cached.entry
                entry = replace_at(entry, where, partial(_spread, ref=ref, chosen=chosen))
        return entry


def _spread(block: Block, ref: Refinement, chosen: LaneTile) -> Block:
    """`block` with the copy of a view dealt out to the lanes, along the dimension of the index that does so."""
    index = lane_index(LaneView.of(ref).steps, chosen.wide, chosen.thread)
    for dim, affine in enumerate(ref.access):
        if index in affine.names():
            part = block.ref(ref.name).sizes[dim] // chosen.lanes
            return rebanked(block, ref.name, Cut(dim, part, chosen.lanes, interleave=True)) or block
    return block


def _machine(hardware: HardwareModel, location: Location) -> LaneMachine:
    """The subgroups of the unit at `location`, else of the first unit with subgroups."""
    unit = hardware.exec_unit_with("subgroups", location)
    main = hardware.mem_units.get(hardware.main_memory or "")
    caches = [memory for memory in hardware.mem_units.values() if memory.is_cache]
    if unit.register_file_bytes is None or main is None or not caches:
        raise ConfigError(
            "subgroup needs registers, a main memory and a cache", hint="add them to the hardware model"
        )
    nearest = min(caches, key=lambda memory: memory.size)
    return LaneMachine(unit.subgroup, unit.register_file_bytes, main, nearest)
