"""What the `locate_*` passes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from stripe.ir import Block, ConfigError, Location, Refinement, closest, map_views, walk
from stripe.passes.base import LocationSpec, PassContext

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel


def check_unit(spec: LocationSpec, hardware: HardwareModel | None) -> None:
    """Raises ConfigError when `hardware` is given and has no unit of that name or number."""
    if hardware is None:
        return
    known = [*hardware.mem_units, *hardware.exec_units, *hardware.tx_units]
    if spec.name not in known:
        near = closest(spec.name, known)
        hint = f"did you mean '{near}'?" if near else f"its units are {', '.join(known)}"
        raise ConfigError(f"the hardware model has no unit '{spec.name}'", hint=hint)
    units = {**hardware.mem_units, **hardware.exec_units, **hardware.tx_units}
    count = units[spec.name].count
    if isinstance(spec.unit, int) and not 0 <= spec.unit < count:
        raise ConfigError(
            f"the hardware model has {count} {spec.name}, no number {spec.unit}", hint=f"0 to {count - 1}"
        )


def unknown_unit(nest: Block) -> str | None:
    """An index that a location in `nest` uses and that its block lacks: only its own indices are visible in a block."""
    for _, block in walk(nest):
        own = {index.name for index in block.indices}
        for location in (block.location, *(ref.location for ref in block.refinements)):
            lacking = location.names() - own
            if lacking:
                return min(lacking)
    return None


def located(before: Block, after: Block, remark: str, context: PassContext) -> Block:
    """`after`, with `remark` as what was applied; `before` where a unit uses an index that a block inside lacks."""
    lacking = unknown_unit(after)
    if lacking is None:
        context.applied(before, remark)
        return after
    context.missed(before, f"not located: the unit uses the index '{lacking}', which is not known inside")
    return before


def moved(old: Location, new: Location, *, append: bool) -> Location:
    """The location after setting or appending `new`; appending what is there already changes nothing."""
    if not append or not old:
        return new
    return old if old.devices[-len(new.devices) :] == new.devices else old.append(new)


def move_buffers(block: Block, locations: Mapping[str, Location]) -> Block:
    """Sets the locations of refinements of `block`, by their names, and of all views of them inside."""
    return map_views(block, {name: partial(_at, location=place) for name, place in locations.items()})


def _at(ref: Refinement, location: Location) -> Refinement:
    return ref if ref.location == location else replace(ref, location=location)


def placed_as(view: Refinement, buffer: Refinement) -> Refinement:
    """`view` with the strides and the location of the buffer that it looks into."""
    return replace(view.with_strides(buffer.strides), location=buffer.location)


def locate_buffers(
    block: Block,
    location: Location,
    context: PassContext,
    *,
    append: bool,
    wants: Callable[[Refinement], bool],
) -> Block:
    """Sets, or appends to, the location of those buffers of `block` that `wants` picks, and says so."""
    places = {ref.name: moved(ref.location, location, append=append) for ref in block.allocs if wants(ref)}
    places = {
        ref.name: places[ref.name]
        for ref in block.allocs
        if places.get(ref.name, ref.location) != ref.location
    }
    if not places:
        return block
    return located(block, move_buffers(block, places), f"{', '.join(places)} in {location}", context)
