"""The pass `rewrite_locations`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from stripe.ir import (
    Block,
    Location,
    Program,
    parse_location,
    rewrite_blocks,
    rewrite_matching,
    with_entry,
)
from stripe.passes.base import Pass, PassContext, Reqs
from stripe.passes.common.locations import move_buffers


class LocationRewrite(BaseModel):
    """One rule: locations whose outer devices fit `prefix` get `target` in their place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prefix: str = Field(description="pattern of the outer devices, such as 'DRAM', 'SRAM[*]' or '*/CONV'")
    target: str = Field(
        description="the devices that stand there afterwards, such as 'HOST[0]/DRAM[0]'; may be empty"
    )

    @field_validator("prefix")
    @classmethod
    def _check_prefix(cls, value: str) -> str:
        Location().matches(value)
        return value

    def apply(self, location: Location) -> Location | None:
        """The rewritten location, or None when it does not fit."""
        depth = self.prefix.count("/") + 1
        if not Location(location.devices[:depth]).matches(self.prefix):
            return None
        return Location(parse_location(self.target).devices + location.devices[depth:])


class RewriteLocations(Pass):
    """Replaces the outer devices of locations, of blocks and of buffers with their views. The first rule that
    fits counts.

    `{ "rewrites": [ { "prefix": "SRAM[*]", "target": "CHIP[0]/SRAM[1]" } ] }`:

        none new@…<SRAM[0]> T[0] …        =>        none new@…<CHIP[0]/SRAM[1]> T[0] …
    """

    pass_name: ClassVar[str] = "rewrite_locations"

    reqs: Reqs = ("program",)
    rewrites: tuple[LocationRewrite, ...] = Field(description="rules, in the order of their precedence")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises StripeError for a target that is no location."""

        def rewrite(location: Location) -> Location:
            found = (rule.apply(location) for rule in self.rewrites) if location else iter(())
            return next((new for new in found if new is not None), location)

        def visit(block: Block) -> Block:
            places = {ref.name: rewrite(ref.location) for ref in block.allocs}
            places = {ref.name: places[ref.name] for ref in block.allocs if places[ref.name] != ref.location}
            block = move_buffers(block, places)
            location = rewrite(block.location)
            if location != block.location:
                block = replace(block, location=location)
                context.applied(block, f"moved to {location or 'nowhere'}")
            if places:
                context.applied(block, f"moved {', '.join(places)}")
            return block

        def everywhere(block: Block) -> Block:
            return rewrite_blocks(block, visit)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, everywhere))
