"""The pass `locate_recursive`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Program, rewrite_blocks, rewrite_matching, with_entry
from stripe.passes.base import LocationSpec, Pass, PassContext, Reqs
from stripe.passes.common.locations import check_unit, locate_buffers


class LocateRecursive(Pass):
    """Sets the memory of every buffer allocated in a matching block or in any block inside it, and of their views.

        #conv block [x:8] (                            #conv block [x:8] (
            none new@…<[0]> T[0] i8(4:1)          =>       none new@…<SRAM[0]> T[0] i8(4:1)
        ) {                                            ) {
          0: block [] ( in<[0]> T[0] …                   0: block [] ( in<SRAM[0]> T[0] …

    Views follow the buffer that they look into, at any depth.
    """

    pass_name: ClassVar[str] = "locate_recursive"

    reqs: Reqs
    loc: LocationSpec = Field(description="the memory")
    append_devs: bool = Field(
        default=False, description="append the memory to the location that is there, not replace it"
    )
    skip_tags: tuple[str, ...] = Field(
        default=(), description="leave buffers alone that have one of these tags"
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
                wants=lambda ref: not ref.tags.has_any(self.skip_tags),
            )

        def everywhere(block: Block) -> Block:
            return rewrite_blocks(block, locate)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, everywhere))
