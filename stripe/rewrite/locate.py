"""Locations of blocks and of buffers with all their views."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from stripe.ir import Block, Location, Refinement, map_views, walk
from stripe.ir.frozen import replace
from stripe.rewrite.refusal import Refusal


def unknown_unit(nest: Block) -> str | None:
    """An index that a location in `nest` uses and that its block lacks: only its own indices are visible in a block."""
    for _, block in walk(nest):
        own = {index.name for index in block.indices}
        for location in (block.location, *(ref.location for ref in block.refinements)):
            if location and (lacking := location.names() - own):
                return min(lacking)
    return None


def located(after: Block) -> Block | Refusal:
    """`after`, unless a unit uses an index that a block inside lacks."""
    lacking = unknown_unit(after)
    if lacking is None:
        return after
    return Refusal(f"the unit uses the index '{lacking}', which is not known inside")


def move_buffers(block: Block, locations: Mapping[str, Location]) -> Block:
    """Sets the locations of refinements of `block`, by their names, and of all views of them inside."""
    return map_views(block, {name: partial(_at, location=place) for name, place in locations.items()})


def _at(ref: Refinement, location: Location) -> Refinement:
    return ref if ref.location == location else replace(ref, location=location)


def placed_as(view: Refinement, buffer: Refinement) -> Refinement:
    """`view` with the strides and the location of the buffer that it looks into."""
    return replace(view.with_strides(buffer.strides), location=buffer.location)
