"""What the `locate_*` passes share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stripe.ir import Block, ConfigError, Location, Refinement, closest, map_views
from stripe.passes.base import LocationSpec

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


def moved(old: Location, new: Location, *, append: bool) -> Location:
    """The location after setting or appending `new`; appending what is there already changes nothing."""
    if not append or not old:
        return new
    return old if old.devices[-len(new.devices) :] == new.devices else old.append(new)


def move_buffer(block: Block, name: str, location: Location) -> Block:
    """Sets the location of the refinement `name` of `block` and of all views of it inside."""

    def move(ref: Refinement) -> Refinement:
        return ref if ref.location == location else replace(ref, location=location)

    return map_views(block, name, move)
