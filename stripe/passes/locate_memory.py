"""The pass `locate_memory`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Program, rewrite_matching, with_entry
from stripe.passes.base import LocationSpec, Pass, PassContext, Reqs
from stripe.passes.common.locations import check_unit, locate_buffers


class LocateMemory(Pass):
    """Sets the memory of the buffers that each matching block allocates, and of all views of them inside.

    `{ "reqs": ["program"], "loc": { "name": "DRAM" } }`:

        none new@0x00000000<[0]> I[0] i8(8:1)      =>      none new@0x00000000<DRAM[0]> I[0] i8(8:1)
    """

    pass_name: ClassVar[str] = "locate_memory"

    reqs: Reqs
    loc: LocationSpec = Field(description="the memory")
    ref_reqs: tuple[str, ...] = Field(default=(), description="tags that a buffer must have")
    append_devs: bool = Field(
        default=False, description="append the memory to the location that is there, not replace it"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a memory that the hardware model lacks."""
        check_unit(self.loc, context.hardware)

        def locate(block: Block) -> Block:
            return locate_buffers(
                block,
                self.loc.location(),
                context,
                append=self.append_devs,
                wants=lambda ref: ref.tags.has_all(self.ref_reqs),
            )

        return with_entry(program, rewrite_matching(program.entry, self.reqs, locate))
