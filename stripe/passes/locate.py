"""The passes that set locations: `locate_block`, `locate_inner_block`, `locate_memory`, `locate_recursive` and
`rewrite_locations`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from stripe.ir import (
    Block,
    Location,
    Program,
    Refinement,
    Tags,
    map_statements,
    parse_location,
    rewrite_blocks,
    walk,
    with_statements,
)
from stripe.ir.frozen import replace
from stripe.passes.base import (
    LOCATED,
    TILES,
    BlockPass,
    LocationSpec,
    PassContext,
    PassExample,
    PassGroup,
    Refusal,
    Reqs,
    Selects,
)
from stripe.rewrite.locate import located, move_buffers
from stripe.rewrite.parts import in_parts, part_tiles


class _Locate(BlockPass):
    """The unit of a location pass, checked against the hardware model, and the two things that it may locate."""

    group: ClassVar[PassGroup] = PassGroup.PLACEMENT
    refused: ClassVar[str] = "not located"

    reqs: Reqs
    loc: LocationSpec = Field(description="the unit")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError for a unit that the hardware model lacks."""
        context.check_unit(self.loc)
        return super().run(program, context)

    def on_unit(self, block: Block, context: PassContext) -> Block | Refusal:
        """`block` run by the unit, or in parts by all units of the name."""
        if self.loc.is_all:
            return self._on_all(block, context)
        location = self.loc.location()
        if location == block.location:
            return block
        return _said(block, located(replace(block, location=location)), f"located on {location}", context)

    def _on_all(self, block: Block, context: PassContext) -> Block | Refusal:
        name = self.loc.name
        placed = (ref.name for _, inner in walk(block) for ref in inner.allocs if ref.offset is not None)
        if (buffer := next(placed, None)) is not None:
            return Refusal(f"'{buffer}' has an address, and each unit needs an instance of its own")
        if any(inner.location.name == name for child in block.blocks for _, inner in walk(child)):
            return block  # parts of it are on units already
        count = context.need_hardware(f"a location on all units of {name}").exec_unit(name).count
        tiles = part_tiles(block, context.separating(block), count)
        parts = prod(-(-index.range // tiles.get(index.name, index.range)) for index in block.iterated)
        if parts == 1:
            location = Location.of(name, 0)
            remark = f"located on {location}: no index splits it"
            return _said(block, located(replace(block, location=location)), remark, context)
        spread = in_parts(replace(block, location=Location.of(name)), tiles, name)
        (inner,) = spread.blocks
        inner = replace(inner, tags=Tags(), comments=())
        spread = with_statements(replace(spread, tags=block.tags, comments=block.comments), [inner])
        return _said(block, located(spread), f"located on {parts} of {count} {name}", context)

    def in_memory(
        self, block: Block, wants: Callable[[Refinement], bool], context: PassContext
    ) -> Block | Refusal:
        """`block` with the buffers that `wants` picks, and their views, in the memory."""
        location = self.loc.location()
        places = {ref.name: location for ref in block.allocs if wants(ref) and ref.location != location}
        if not places:
            return block
        return _said(
            block, located(move_buffers(block, places)), f"{', '.join(places)} in {location}", context
        )


def _said(before: Block, answer: Block | Refusal, remark: str, context: PassContext) -> Block | Refusal:
    if isinstance(answer, Block):
        context.applied(before, remark)
    return answer


class LocateBlock(_Locate):
    """Sets the unit that runs each matching block.

    `{ "reqs": ["conv"], "loc": { "name": "CONV" } }`:

        #conv block [x:8] ( … )        =>      #conv block<CONV[0]> [x:8] ( … )

    Blocks inside a match are left to `locate_inner_block`. With a hardware model the unit must exist in it. On
    `"unit": "any"` whichever is free runs the block; on `"unit": "all"` the block becomes a nest over parts that write
    different elements, and each part runs on a unit of its own, as `partition` with `locate` makes it.
    """

    pass_name: ClassVar[str] = "locate_block"
    example: ClassVar[PassExample] = PassExample("reqs=[kernel],loc={name:DSP}")
    keeps_addresses: ClassVar[bool] = True

    def rewrite(self, block: Block, context: PassContext) -> Block | Refusal:
        return self.on_unit(block, context)


class LocateInnerBlock(_Locate):
    """Sets the unit that runs the blocks with `inner_reqs` inside each block with `reqs`, at any depth.

    `{ "reqs": ["conv"], "inner_reqs": ["conv_inner"], "loc": { "name": "CONV" } }`:

        #conv block [x:8] (                      #conv block [x:8] (
            in I[4*x] (4:1)                          in I[4*x] (4:1)
        ) {                                      ) {
          0: #conv_inner block [x:4] (     =>      0: #conv_inner block<CONV[0]> [x:4] (
              in I[x]                                  in I[x]
          ) { … }                                  ) { … }
        }                                        }
    """

    pass_name: ClassVar[str] = "locate_inner_block"
    example: ClassVar[PassExample] = PassExample("reqs=[tile],loc={name:CONV}", after=(TILES,))
    keeps_addresses: ClassVar[bool] = True

    inner_reqs: Selects = Field(default=("all",), description="tags of the inner blocks to locate")

    def rewrite(self, block: Block, context: PassContext) -> Block:
        def locate(inner: Block) -> Block:
            if not inner.words.has_all(self.inner_reqs):
                return inner
            return self.settled(inner, self.on_unit(inner, context), context)

        return map_statements(block, lambda s: rewrite_blocks(s, locate) if isinstance(s, Block) else s)


class LocateMemory(_Locate):
    """Sets the memory of the buffers that each matching block allocates, and of all views of them inside.

    `{ "reqs": ["program"], "loc": { "name": "DRAM" } }`:

        #user none new@0x00000000 I[0] i8(8:1)      =>      #user none new@0x00000000<DRAM[0]> I[0] i8(8:1)
    """

    pass_name: ClassVar[str] = "locate_memory"
    example: ClassVar[PassExample] = PassExample("reqs=[program],loc={name:DRAM}")

    loc: LocationSpec = Field(description="the memory")
    ref_reqs: tuple[str, ...] = Field(default=(), description="tags that a buffer must have")

    def rewrite(self, block: Block, context: PassContext) -> Block | Refusal:
        return self.in_memory(block, lambda ref: ref.words.has_all(self.ref_reqs), context)


class LocateRecursive(_Locate):
    """Sets the memory of every buffer allocated in a matching block or in any block inside it, and of their views.

    `{ "reqs": ["conv"], "loc": { "name": "SRAM" } }`:

        #conv block [x:8] (                      #conv block [x:8] (
            none new T[0] (4:1)                      none new<SRAM[0]> T[0] (4:1)
        ) {                                      ) {
          0: block [y:4] (                 =>      0: block [y:4] (
              out T[y]                                 out<SRAM[0]> T[y]
          ) { … }                                  ) { … }
        }                                        }

    Views follow the buffer that they look into, at any depth.
    """

    pass_name: ClassVar[str] = "locate_recursive"
    example: ClassVar[PassExample] = PassExample("reqs=[program],loc={name:DRAM}")

    loc: LocationSpec = Field(description="the memory")

    def rewrite(self, block: Block, context: PassContext) -> Block:
        def locate(inner: Block) -> Block:
            return self.settled(inner, self.in_memory(inner, lambda _: True, context), context)

        return rewrite_blocks(block, locate)


class LocationRewrite(BaseModel):
    """A rule: locations whose outer devices fit `prefix` get `target` in their place."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

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


class RewriteLocations(BlockPass):
    """Replaces the outer devices of locations, of blocks and of buffers with their views. The first rule that
    fits counts.

    `{ "rewrites": [ { "prefix": "SRAM[*]", "target": "CHIP[0]/SRAM[1]" } ] }`:

        #tmp none new<SRAM[0]> T[0] (8:1)     =>     #tmp none new<CHIP[0]/SRAM[1]> T[0] (8:1)
    """

    pass_name: ClassVar[str] = "rewrite_locations"
    group: ClassVar[PassGroup] = PassGroup.PLACEMENT
    example: ClassVar[PassExample] = PassExample('rewrites=[{prefix:"DSP[*]",target:CONV}]', after=(LOCATED,))

    reqs: Reqs = ("program",)
    rewrites: tuple[LocationRewrite, ...] = Field(description="rules, in the order of their precedence")

    def rewrite(self, block: Block, context: PassContext) -> Block:
        """Raises StripeError for a target that is no location."""

        def target(location: Location) -> Location:
            found = (rule.apply(location) for rule in self.rewrites) if location else iter(())
            return next((new for new in found if new is not None), location)

        def visit(inner: Block) -> Block:
            places = {ref.name: target(ref.location) for ref in inner.allocs}
            places = {ref.name: places[ref.name] for ref in inner.allocs if places[ref.name] != ref.location}
            inner = move_buffers(inner, places)
            location = target(inner.location)
            if location != inner.location:
                inner = replace(inner, location=location)
                context.applied(inner, f"moved to {location or 'nowhere'}")
            if places:
                context.applied(inner, f"moved {', '.join(places)}")
            return inner

        return rewrite_blocks(block, visit)
