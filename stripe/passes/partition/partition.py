"""The pass `partition`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Block,
    ConfigError,
    Program,
    content_key,
    rewrite_blocks,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.passes.base import (
    UNIT_NAME,
    BlockPass,
    NewTag,
    PassContext,
    PassExample,
    PassGroup,
    Refusal,
    Reqs,
    TagReqs,
    TagSet,
)
from stripe.passes.partition.memory import is_split, split_over_banks
from stripe.rewrite.parts import in_parts, padded_points, part_tiles


class Partition(BlockPass):
    """Splits work over the units of a machine, or buffers over the banks of a memory.

    Work, `{ "reqs": ["conv"], "num_parts": 4, "set_tags": ["parts"], "idx_tag": "part" }`:

        #conv block [x:64, c:6] (              #parts block [#part x:4, c:1] (
            in I[x, c]                             in I[16*x, 0] (16:6, 6:1)
            out O[x, c]                =>          out O[16*x, 0] (16:6, 6:1) ) {
        ) { … }                                  0: #conv block [x:16, c:6] ( in I[x, c] …

    Only indices are split that move every output, so that no two parts meet in an element. The number of parts comes as
    close to `num_parts` from below as it can (any number above is worse than one part); among equals the split with the
    fewest empty points is taken, then that of the fewest indices. The inner block keeps the tags.

    Memory, `{ "memory": "SRAM", "num_parts": 4, "set_tags": ["banked"], "idx_tag": "bank" }`:

        none new@…<SRAM[0]> T[0, 0] fp32(64:8, 8:1)             none new@…<SRAM[0]> T[0, 0, 0] fp32({4:128}, 16:8, 8:1)
        block [x:64, c:8] ( out<SRAM[0]> T[x, c] … )     =>     #banked block [#bank x:4, c:1] (
                                                                    out<SRAM[0]> T[x, 0, 0] … ) {
                                                                  0: block [x:16, c:8] ( out T[0, x, c] … ) }

    Each allocation in `memory`, in the blocks with all `reqs`, gets a dimension that runs over the banks. It splits the
    dimension with the most banks, then with the most blocks that walk it by one index, which then selects the bank;
    where windows reach over the edge of a bank, floor and remainder find it. The program's inputs, outputs and
    constants keep their layout.
    """

    pass_name: ClassVar[str] = "partition"
    refused: ClassVar[str] = "not partitioned"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[kernel],num_parts=4,set_tags=[parts]")

    reqs: Reqs
    exclude: TagReqs = Field(default=(), description="tags that a block may not have")
    num_parts: int = Field(
        default=0,
        ge=0,
        le=1 << 14,
        description="parts at most; 0: as many as the hardware model has of `unit` or `memory`",
    )
    unit: str = Field(
        default="",
        pattern=UNIT_NAME,
        description="execution unit that is counted; the block's location where empty",
    )
    memory: str = Field(
        default="",
        description="memory whose allocations are split over banks, instead of the work over units",
    )
    set_tags: TagSet = Field(default=(), description="tags of the outer block, the one over parts")
    idx_tag: NewTag = Field(default="", description="tag of the indices that number the parts")
    locate: bool = Field(
        default=False, description="each part runs on the unit of its number: sets the inner block's location"
    )

    operands: str = Field(
        default="",
        description="memory that the units have their operands from: the number of parts and the split are the "
        "quickest by the rules of the simulator, since units that share a bus may read more than one unit does",
    )

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError without a number of parts, or for a unit that the hardware model lacks."""
        if self.memory:
            return self._over_banks(program, context)
        if self.unit and (not self.num_parts or context.hardware is not None):
            context.need_hardware("partition without num_parts").exec_unit(self.unit)
        if self.locate and not self.unit:
            raise ConfigError(
                "partition with 'locate' needs 'unit'", hint="name the execution unit of the parts"
            )
        return super().run(program, context)

    def _over_banks(self, program: Program, context: PassContext) -> Program:
        banks = self.num_parts
        if not banks:
            banks = context.need_hardware("partition without num_parts").memory(self.memory).count

        def split(block: Block) -> Block:
            for ref in block.allocs if block.words.has_all(self.reqs) else ():
                if not is_split(ref, self.memory):
                    continue
                answer = split_over_banks(block, ref, banks, self.set_tags, self.idx_tag)
                if isinstance(answer, Refusal):
                    context.missed(block, f"{ref.name} is not split over {banks} banks: {answer.reason}")
                else:
                    context.applied(block, f"{ref.name}: {answer.numbers}")
                    block = answer.block
            return block

        return with_entry(program, rewrite_blocks(program.entry, split))

    def rewrite(self, block: Block, context: PassContext) -> Block | Refusal:
        done = self.set_tags and block.words.has_all(self.set_tags)
        if done or block.words.has_any(self.exclude):
            return block
        name = self.unit or block.location.name
        if not self.num_parts and not name:
            raise ConfigError(
                f"partition knows no number of parts for '{block.name}'",
                hint="give num_parts or unit, or locate the block first",
            )
        parts = self.num_parts or context.need_hardware("partition without num_parts").exec_unit(name).count
        tiles = self._tiles(block, parts, context)
        counts = {i.name: -(-i.range // tiles.get(i.name, i.range)) for i in block.iterated}
        if prod(counts.values()) == 1:
            ranges = ", ".join(f"{index.name}:{index.range}" for index in block.iterated) or "none"
            reason = (
                "one unit is as quick as"
                if context.separating(block) and parts > 1
                else "no index to split into"
            )
            return Refusal(f"{reason} {parts} (indices {ranges})")
        used = block.points / padded_points(block, tiles) * 100
        split = ", ".join(f"{name}:{count}" for name, count in counts.items() if count > 1)
        numbers = f"{prod(counts.values())} of {parts} parts: {split}"
        context.applied(block, f"{numbers}; {used:.1f} % of their points used")
        outer = in_parts(block, tiles, self.unit if self.locate else "", self.idx_tag)
        return replace(outer, tags=outer.tags.add(*self.set_tags))

    def _tiles(self, block: Block, parts: int, context: PassContext) -> Mapping[str, int]:
        """The tiles of the parts: by their times where options and machine tell them."""
        hardware, free = context.hardware, context.separating(block)
        if hardware is None or not self.operands:
            return part_tiles(block, free, parts)
        from stripe.cost.time.machine import Machine
        from stripe.cost.time.parts import PartTimes  # numpy takes long to load

        unit = self.unit or block.location.name

        def found() -> Mapping[str, int]:
            return part_tiles(block, free, parts, PartTimes(block, hardware, unit, self.operands).of_parts)

        return Machine.of(hardware).once(
            ("parts", content_key(block), free, parts, unit, self.operands), found
        )
