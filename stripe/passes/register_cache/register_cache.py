"""The pass `register_cache`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from stripe.ir import ConfigError, Program, with_entry
from stripe.passes.base import TILES, LocationSpec, Pass, PassContext, PassExample, PassGroup, Reqs, TagSet
from stripe.passes.register_cache.copy import Latencies, RegisterOptions, to_registers


class RegisterCache(Pass):
    """Replaces copies in local memory by copies in registers, where these are faster and there are enough.

    `{ "reqs": ["tile"], "local_loc": { "name": "SRAM" }, "register_loc": { "name": "REGS" },
    "comp_parent_tag": "thread" }`:

        #tile block [x:8] (                              #tile block [x:8] (
            in<DRAM[0]> I_raw = I[8*x] (8:1)                 in<DRAM[0]> I_raw = I[8*x] (8:1)
            none new@…<SRAM[0]> I[0] (8:1)               ) {
        ) {                                                0: #thread block [y:4] (
          0: #cache #cache_load block [d0:8] ( … )             in<DRAM[0]> I_raw = I_raw[2*y] (2:1)
          1: #thread block [y:4] (                     =>      none new@…<REGS[0]> I[0] (2:1)
              in<SRAM[0]> I[2*y] (2:1)                       ) {
          ) {                                                  0: #cache #cache_load block [d0:2] ( … )
            0: block [i:2, k:9] ( in<SRAM[0]> I[i] … )         1: block [i:2, k:9] ( in<REGS[0]> I[i] … )

    A copy moves when the footprint of one point of the block tagged `comp_parent_tag` fits into the registers that
    are left, and when, with L, G and R the latencies of local, global and register memory,
    `L*uses + (L + G)*copies >= R*uses + (R + G)*new_copies`: uses are the accesses inside, copies the
    elements that the transfer moves now, new_copies those that it moves for all points of that block together, all
    exact.
    """

    pass_name: ClassVar[str] = "register_cache"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[tile],local_loc={name:SRAM},register_loc={name:REGS},global_memory_latency=100,"
        "local_memory_latency=50,register_latency=1,register_size=65536,comp_parent_tag=inner",
        after=(TILES, "cache{reqs=[tile],mem_loc={name:SRAM}}"),
    )

    reqs: Reqs
    local_loc: LocationSpec = Field(description="memory of the copies to replace")
    register_loc: LocationSpec = Field(description="where the registers are")
    dir: Literal["in", "out"] = Field(
        default="in", description="copies of what is read, or of what is written"
    )
    comp_parent_tag: str = Field(
        default="", description="tag of the block, inside, for each point of which registers are loaded"
    )
    register_size: int | None = Field(
        default=None, gt=0, description="bytes of registers; those of `unit` in the hardware model where null"
    )
    unit: str = Field(
        default="", description="execution unit whose registers count; the first that has some where empty"
    )
    align_size: int = Field(
        default=1, ge=1, description="bytes to which each copy in registers is rounded up"
    )
    global_memory_latency: float | None = Field(
        default=None,
        ge=0,
        description="cycles of an access to the far memory; the hardware model's where null",
    )
    local_memory_latency: float | None = Field(
        default=None, ge=0, description="cycles of an access to local memory; the hardware model's where null"
    )
    register_latency: float | None = Field(
        default=None,
        ge=0,
        description="cycles of an access to a register; the hardware model's, else 0, where null",
    )
    load_set: TagSet = Field(default=("cache", "cache_load"), description="tags of the blocks that load")
    store_set: TagSet = Field(default=("cache", "cache_store"), description="tags of the blocks that store")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a number that neither the options nor the hardware model give."""
        context.check_unit(self.local_loc)
        options = RegisterOptions(
            self.reqs, self.local_loc.location(), self.register_loc.location(), self.dir == "in",
            self.comp_parent_tag, self._registers(context), self.align_size, self.load_set, self.store_set,
        )  # fmt: skip

        def latencies(far: str) -> Latencies:
            return Latencies(
                self._latency(context, far, self.global_memory_latency, "global_memory_latency"),
                self._latency(
                    context, self.local_loc.name, self.local_memory_latency, "local_memory_latency"
                ),
                self._register_latency(context),
            )

        return with_entry(program, to_registers(program.entry, options, latencies, context))

    def _registers(self, context: PassContext) -> int:
        if self.register_size is not None:
            return self.register_size
        hardware = context.need_hardware("register_cache without register_size")
        if self.register_loc.name in hardware.mem_units:
            return hardware.memory(self.register_loc.name).size
        units = [hardware.exec_unit(self.unit)] if self.unit else list(hardware.exec_units.values())
        for unit in units:
            width = unit.register_bytes or unit.vector_bytes
            if unit.registers and width:
                return unit.registers * width
        raise ConfigError("the hardware model has no registers", hint="give register_size")

    def _latency(self, context: PassContext, name: str, given: float | None, option: str) -> float:
        if given is not None:
            return given
        hardware = context.need_hardware(f"register_cache without {option}")
        memory = hardware.memory(name) if name else None
        if memory is None:
            raise ConfigError(f"register_cache needs {option}: the far memory has no place yet")
        return memory.read_latency_cycles if self.dir == "in" else memory.write_latency_cycles

    def _register_latency(self, context: PassContext) -> float:
        if self.register_latency is not None:
            return self.register_latency
        memories = context.hardware.mem_units if context.hardware is not None else {}
        found = memories.get(self.register_loc.name)
        return found.read_latency_cycles if found is not None else 0.0
