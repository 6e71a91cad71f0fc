"""The pass `locate_block`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Program, rewrite_matching, with_entry
from stripe.passes.base import LocationSpec, Pass, PassContext, Reqs
from stripe.passes.common.locations import check_unit, located, moved


class LocateBlock(Pass):
    """Sets the unit that runs each matching block.

    `{ "reqs": ["conv"], "loc": { "name": "CONV" } }`:

        #conv block [x:8] ( … )        =>      #conv block<CONV[0]> [x:8] ( … )

    Blocks inside a match are left to `locate_inner_block`. With a hardware model the unit must exist in it.
    """

    pass_name: ClassVar[str] = "locate_block"
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs
    loc: LocationSpec = Field(description="the unit")
    append_devs: bool = Field(
        default=False, description="append the unit to the location that is there, not replace it"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a unit that the hardware model lacks."""
        check_unit(self.loc, context.hardware)

        def locate(block: Block) -> Block:
            location = moved(block.location, self.loc.location(), append=self.append_devs)
            if location == block.location:
                return block
            return located(block, replace(block, location=location), f"located on {location}", context)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, locate))
