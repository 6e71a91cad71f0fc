"""Locations: where in the machine a buffer lies or a block runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stripe.ir.affine import Affine
from stripe.ir.frozen import frozen

_NO_NAMES = frozenset[str]()


@frozen
class Device:
    """One level of a location: a unit's name and its number, an affine per axis. No units means any of them."""

    name: str
    units: tuple[Affine, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.units))}]" if self.units else self.name


@frozen
class Location:
    """A path of devices from the outermost to the innermost; the empty path is nowhere yet."""

    devices: tuple[Device, ...] = ()

    @staticmethod
    def of(name: str, *units: int | Affine) -> Location:
        """The location with one device."""
        return Location((Device(name, tuple(u if isinstance(u, Affine) else Affine(u) for u in units)),))

    def __str__(self) -> str:
        return "/".join(map(str, self.devices))

    def __bool__(self) -> bool:
        return bool(self.devices)

    @property
    def name(self) -> str:
        """The name of the innermost device, `""` when nowhere."""
        return self.devices[-1].name if self.devices else ""

    def names(self) -> frozenset[str]:
        """The indices that occur in units."""
        found = _NO_NAMES
        for device in self.devices:
            for unit in device.units:
                if unit.terms:
                    found |= unit.names()
        return found

    def subs(self, mapping: Mapping[str, Affine]) -> Location:
        """Replaces indices in the units."""
        if not self.devices or not self.names() & mapping.keys():
            return self
        return Location(tuple(Device(d.name, tuple(u.subs(mapping) for u in d.units)) for d in self.devices))

    def append(self, other: Location) -> Location:
        return Location(self.devices + other.devices)

    def matches(self, pattern: str) -> bool:
        """Whether the location fits a pattern such as `*/DRAM[0]`.

        `/` separates levels; `*` stands for any one name; `[…]` lists units, each an integer or `*`; without
        brackets any units fit, `[]` fits none. Raises ValueError for a malformed pattern.
        """
        levels = [_parse_level(level) for level in pattern.split("/")]
        return len(levels) == len(self.devices) and all(
            _level_matches(device, name, units)
            for device, (name, units) in zip(self.devices, levels, strict=True)
        )


_LEVEL = re.compile(r"\s*(\*|[A-Za-z_][A-Za-z0-9_]*)\s*(?:\[\s*([^\]]*?)\s*\])?\s*")


def _parse_level(text: str) -> tuple[str, list[str] | None]:
    match = _LEVEL.fullmatch(text)
    if match is None:
        raise ValueError(f"malformed location pattern {text!r}: a name or *, then units in [ ] or nothing")
    if match[2] is None:
        return match[1], None
    units = [unit.strip() for unit in match[2].split(",")] if match[2] else []
    for unit in units:
        if unit != "*" and not re.fullmatch(r"\d+", unit):
            raise ValueError(f"malformed unit {unit!r} in location pattern {text!r}: an integer or *")
    return match[1], units


def _level_matches(device: Device, name: str, units: list[str] | None) -> bool:
    if name not in ("*", device.name):
        return False
    if units is None:
        return True
    return len(units) == len(device.units) and all(
        want == "*" or have == Affine(int(want)) for have, want in zip(device.units, units, strict=True)
    )
