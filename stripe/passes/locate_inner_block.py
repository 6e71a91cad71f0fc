"""The pass `locate_inner_block`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Program, map_statements, rewrite_blocks, rewrite_matching, with_entry
from stripe.passes.base import LocationSpec, Pass, PassContext, Reqs
from stripe.passes.common.locations import check_unit, located, moved


class LocateInnerBlock(Pass):
    """Sets the unit that runs the blocks with `inner_reqs` inside each block with `reqs`, at any depth.

    `{ "reqs": ["conv"], "inner_reqs": ["conv_inner"], "loc": { "name": "CONV" } }`:

        #conv block [x:8] ( … ) {              #conv block [x:8] ( … ) {
          0: #conv_inner block [x:4] …   =>      0: #conv_inner block<CONV[0]> [x:4] …
    """

    pass_name: ClassVar[str] = "locate_inner_block"
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs
    inner_reqs: tuple[str, ...] = Field(default=("all",), description="tags of the inner blocks to locate")
    loc: LocationSpec = Field(description="the unit")
    append_devs: bool = Field(
        default=False, description="append the unit to the location that is there, not replace it"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a unit that the hardware model lacks."""
        check_unit(self.loc, context.hardware)

        def locate(block: Block) -> Block:
            if not block.tags.has_all(self.inner_reqs):
                return block
            location = moved(block.location, self.loc.location(), append=self.append_devs)
            if location == block.location:
                return block
            return located(block, replace(block, location=location), f"located on {location}", context)

        def inside(block: Block) -> Block:
            return map_statements(block, lambda s: rewrite_blocks(s, locate) if isinstance(s, Block) else s)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, inside))
