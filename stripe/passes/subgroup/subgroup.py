"""The pass `subgroup`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field, PositiveInt

from stripe.hw.schema import ExecUnit, HardwareModel, MemUnit
from stripe.ir import (
    Block,
    ConfigError,
    Location,
    Path,
    Program,
    Refinement,
    Special,
    block_at,
    replace_at,
    walk,
    with_entry,
    with_statements,
)
from stripe.passes.base import LocationSpec, Pass, PassContext, PassExample, PassGroup, Refusal, Reqs, TagSet
from stripe.passes.subgroup.search import Choice, Limits, Operand, lane_index, search, unfit
from stripe.rewrite.banks import Cut, rebanked
from stripe.rewrite.cached import CacheOptions, cache_view
from stripe.rewrite.tile import tile_block


class Subgroup(Pass):
    """Tiles a block for a subgroup: threads in lockstep that hold a tile in their registers and share what they read.

    With subgroups of 8 lanes:

        #kernel block [k:64, m:32, n:64] (      #kernel #subgroup_outer block [k:1, m:8, n:4] (
            in A[m, k] …                          none new O[0, 0, 0]#0 (8:8, 4:2, 2:1)     // 8 lanes
            in B[k, n] …                   =>   ) {
            out O[m, n]:add …                     0: #subgroup_steps block [k:8, m:1, n:1] (
                                                      none new A … none new B …             // 8 lanes each
                                                  ) { 0: load A … 1: load B …
                                                      2: #subgroup_inner block [k:8, m:4, n:2] (…) {
                                                        0: #subgroup_thread block [#subgroup_lane n:8] ( …
                                                  1: store O

    One index that is contiguous in the output runs over the lanes and numbers the threads. An index that is summed
    over may run over the lanes too where it is contiguous in an input: each lane then loads a share, and the threads
    hand elements around (views tagged `broadcast`). All divisors of all ranges are tried; the cost of a tile is the
    cycles that it waits, (misses * mem_latency + hits * cache_latency) / operations.
    """

    pass_name: ClassVar[str] = "subgroup"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[kernel],subgroup_sizes=[8],max_mem=[4096],mem_latency=400,cache_latency=40,"
        "cache_width=64,cache_size=4096,register_loc={name:REGS}"
    )

    reqs: Reqs
    subgroup_sizes: tuple[PositiveInt, ...] = Field(
        default=(), description="numbers of lanes to try; that of `unit` in the hardware model where empty"
    )
    max_mem: tuple[PositiveInt, ...] = Field(
        default=(),
        description="bytes of registers in a lane, for each of `subgroup_sizes`; the unit's where empty",
    )
    mem_latency: float | None = Field(
        default=None, ge=0, description="cycles of an access to memory; the hardware model's where null"
    )
    cache_latency: float | None = Field(
        default=None, ge=0, description="cycles of an access to the cache; the hardware model's where null"
    )
    cache_width: int | None = Field(
        default=None, gt=0, description="bytes of a cache line; the hardware model's where null"
    )
    cache_size: int | None = Field(
        default=None, ge=0, description="bytes of the cache; the hardware model's where null"
    )
    mem_bounded_threshold: float = Field(
        default=0.0,
        ge=0,
        description="tag blocks `mem_bounded` and leave them alone that wait longer, cycles an operation; 0: none",
    )
    inner_stmts_limit: int = Field(
        default=1024, ge=1, description="intrinsics and stores at most that a lane runs for a tile"
    )
    min_groups: int = Field(
        default=1, ge=1, description="subgroups at least, so that there is work for all units"
    )
    unit: str = Field(
        default="", description="execution unit of the subgroups; the first that has some where empty"
    )
    cache: str = Field(default="", description="memory that is the cache; the nearest cache where empty")
    register_loc: LocationSpec | None = Field(default=None, description="where the registers are")
    outer_set: TagSet = Field(default=(), description="tags added to the outermost block")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a number that neither the options nor the hardware model give."""
        if self.max_mem and len(self.max_mem) != len(self.subgroup_sizes):
            raise ConfigError(
                f"subgroup has {len(self.max_mem)} numbers in max_mem for {len(self.subgroup_sizes)} subgroup_sizes",
                hint="give one for each",
            )
        limits = self._limits(context)
        entry = program.entry
        for path in [path for path, block in walk(entry) if self._wants(block)]:
            entry = self._tiled(entry, path, limits, context)
        return with_entry(program, entry)

    def _wants(self, block: Block) -> bool:
        inner = any(isinstance(statement, Block | Special) for statement in block.statements)
        done = block.tags.has_any(("subgroup_thread", "mem_bounded", "cache"))
        return block.tags.has_all(self.reqs) and not inner and not done

    def _limits(self, context: PassContext) -> list[Limits]:
        hardware = context.hardware
        unit = self._unit(context) if not (self.subgroup_sizes and self.max_mem) else None
        sizes = self.subgroup_sizes or ((unit.subgroup,) if unit is not None else ())
        held = self.max_mem or tuple(_register_bytes(unit) for _ in sizes)
        memory, cache = _memories(hardware, self.cache)
        numbers = (
            self._number("mem_latency", self.mem_latency, memory and memory.read_latency_cycles),
            self._number("cache_latency", self.cache_latency, cache and cache.read_latency_cycles),
            int(self._number("cache_width", self.cache_width, cache and cache.line_bytes)),
            int(self._number("cache_size", self.cache_size, cache and cache.size)),
        )
        return [
            Limits(lanes, most, *numbers, self.inner_stmts_limit, self.min_groups)
            for lanes, most in zip(sizes, held, strict=True)
        ]

    def _unit(self, context: PassContext) -> ExecUnit:
        hardware = context.need_hardware("subgroup without subgroup_sizes and max_mem")
        if self.unit:
            return hardware.exec_unit(self.unit)
        found = [unit for unit in hardware.exec_units.values() if unit.subgroup > 1]
        if not found:
            raise ConfigError(
                "the hardware model has no unit with subgroups", hint="give subgroup_sizes and max_mem"
            )
        return found[0]

    def _number(self, option: str, given: float | None, modelled: float | None) -> float:
        found = given if given is not None else modelled
        if found is None:
            raise ConfigError(f"subgroup needs {option}", hint="give it, or a hardware model with a cache")
        return found

    def _tiled(self, entry: Block, path: Path, limits: list[Limits], context: PassContext) -> Block:
        block = block_at(entry, path)
        reason = unfit(block)
        if reason:
            context.missed(block, f"no subgroup: {reason}")
            return entry
        found = [choice for limit in limits if (choice := search(block, limit)) is not None]
        if not found:
            asked = ", ".join(f"{limit.lanes} lanes of {limit.max_mem} bytes" for limit in limits)
            context.missed(block, f"no subgroup: no tile of whole divisors fits ({asked})")
            return entry
        best = min(found, key=lambda choice: choice.cost)
        if self.mem_bounded_threshold and best.cost > self.mem_bounded_threshold:
            context.missed(
                block,
                f"memory bounded: {best.cost:.3g} cycles an operation, over {self.mem_bounded_threshold:g}",
            )
            return replace_at(entry, path, lambda b: replace(b, tags=b.tags.add("mem_bounded")))
        tile = ", ".join(f"{name}:{size}" for name, size in best.tile.items())
        context.applied(
            block,
            f"{best.groups} groups of {best.lanes} lanes along {', '.join(best.wide)}, tile [{tile}], "
            f"{best.lane_bytes} bytes a lane, {best.loads} loads, {best.misses} misses, "
            f"{best.cost:.3g} cycles an operation",
        )
        nested = replace_at(entry, path, lambda outer: self._nest(outer, best))
        return self._with_registers(nested, path, block, best)

    def _nest(self, block: Block, choice: Choice) -> Block:
        """Tiles of the output, steps of the sums, points of a lane, lanes: one inside the other."""
        output = block.outputs[0]
        moving = {name for affine in output.access for name in affine.names()}
        grid = tile_block(
            block, {i.name: choice.tile[i.name] if i.name in moving else i.range for i in block.iterated}
        )
        (rest,) = grid.blocks
        steps = tile_block(rest, dict(choice.tile))
        (tile,) = steps.blocks
        points = tile_block(
            tile, {i.name: choice.lanes if i.name == choice.thread else 1 for i in tile.iterated}
        )
        (lanes,) = points.blocks
        indices = tuple(
            replace(i, tags=i.tags.add("subgroup_lane")) if i.name == choice.thread else i
            for i in lanes.indices
        )
        refs = tuple(_shared(ref, choice) for ref in lanes.refinements)
        lanes = replace(lanes, indices=indices, refinements=refs, tags=lanes.tags.add("subgroup_thread"))
        points = replace(with_statements(points, [lanes]), tags=points.tags.add("subgroup_inner"))
        steps = replace(with_statements(steps, [points]), tags=steps.tags.add("subgroup_steps"))
        return replace(with_statements(grid, [steps]), tags=grid.tags.add("subgroup_outer", *self.outer_set))

    def _with_registers(self, entry: Block, path: Path, block: Block, choice: Choice) -> Block:
        """Copies in registers, spread over the lanes: of the inputs for each step, of the output for all of them."""
        location = self.register_loc.location() if self.register_loc else Location()
        options = CacheOptions(location)
        for where, refs in (((*path, 0), block.inputs), (path, block.outputs)):
            for ref in refs:
                cached = cache_view(entry, where, ref.name, options)
                if isinstance(cached, Refusal):
                    continue  # nothing loads or stores through the view
                entry = cached.entry
                dim = _wide_dim(ref, choice)
                if dim is not None:
                    entry = _spread(entry, where, ref.name, dim, choice.lanes)
        return entry


def _shared(ref: Refinement, choice: Choice) -> Refinement:
    """A view that all threads use the same element of needs a broadcast."""
    moves = any(choice.thread in affine.names() for affine in ref.access)
    return ref if moves else replace(ref, tags=ref.tags.add("broadcast"))


def _wide_dim(ref: Refinement, choice: Choice) -> int | None:
    """The dimension of a view of the block as it was whose elements are dealt out to the lanes."""
    index = lane_index(Operand.of(ref).steps, choice.wide, choice.thread)
    return next((dim for dim, affine in enumerate(ref.access) if index in affine.names()), None)


def _spread(entry: Block, path: Path, name: str, dim: int, lanes: int) -> Block:
    """The copy `name` with its elements dealt out to the lanes along a dimension."""
    block = block_at(entry, path)
    changed = rebanked(block, name, Cut(dim, block.ref(name).sizes[dim] // lanes, lanes, interleave=True))
    return entry if changed is None else replace_at(entry, path, lambda _: changed)


def _register_bytes(unit: ExecUnit | None) -> int:
    if unit is None or not unit.registers or not (unit.register_bytes or unit.vector_bytes):
        raise ConfigError("the hardware model has no registers", hint="give max_mem")
    return unit.registers * (unit.register_bytes or unit.vector_bytes or 0)


def _memories(hardware: HardwareModel | None, cache: str) -> tuple[MemUnit | None, MemUnit | None]:
    """The memory of the program's tensors, and the cache before it: the one called `cache`, else the smallest."""
    if hardware is None:
        return None, None
    main = hardware.mem_units.get(hardware.main_memory or "")
    caches = [memory for memory in hardware.mem_units.values() if memory.is_cache]
    nearest = hardware.memory(cache) if cache else min(caches, key=lambda memory: memory.size, default=None)
    return main, nearest
