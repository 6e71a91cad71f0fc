"""Classes by name: built in, or registered by other packages in an entry-point group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Generic, TypeVar

from stripe.ir.errors import ConfigError, did_you_mean

_Base = TypeVar("_Base")


@dataclass(frozen=True, slots=True)
class Registry(Generic[_Base]):
    """The subclasses of `base`, each a `noun`. A module is imported when its class is first asked for.

    `builtin` maps names to `module:Class` below `package`; the entry points of `group` name their modules in full.
    `short` maps other names to full ones; `listing` is the command that lists all.
    """

    noun: str
    group: str
    base: type[_Base]
    package: str
    builtin: Mapping[str, str]
    listing: str
    short: Mapping[str, str] = field(default_factory=dict[str, str])

    def names(self) -> tuple[str, ...]:
        """All full names, sorted."""
        return tuple(sorted({*self.builtin, *registered(self.group)}))

    def find(self, name: str) -> type[_Base]:
        """The class called `name` (short names included); ConfigError that names the nearest otherwise."""
        full = self.short.get(name, name)
        if full in self.builtin:
            found = _load(f"{self.package}.{self.builtin[full]}")
        elif full in registered(self.group):
            found = load_registered(self.noun, full, registered(self.group)[full], self.group)
        else:
            hint = did_you_mean(name, [*self.names(), *self.short], f"{self.listing} lists them")
            raise ConfigError(f"unknown {self.noun} '{name}'", hint=hint)
        if not (isinstance(found, type) and issubclass(found, self.base)):
            raise ConfigError(
                f"the entry point of {self.noun} '{full}' is no {self.base.__name__}",
                hint=f"it must be a subclass of {self.base.__module__}.{self.base.__name__}",
            )
        return found


def load_registered(noun: str, name: str, place: str, group: str) -> object:
    """The object at `module:attribute` that another package registers under `name` in an entry-point group.

    Raises ConfigError when that package is broken: no fault of ours.
    """
    try:
        return _load(place)
    except Exception as error:  # noqa: BLE001 - a foreign module may raise anything
        reason = f"the {noun} '{name}' cannot be loaded from '{place}': {type(error).__name__}: {error}"
        hint = f"repair or remove the package that registers it in the group {group}"
        raise ConfigError(reason, hint=hint) from None


@cache
def registered(group: str) -> dict[str, str]:
    """The entry points of a group: names, and `module:attribute` of each."""
    from importlib.metadata import entry_points  # reads the descriptions of all packages

    return {point.name: point.value for point in entry_points(group=group)}


def _load(place: str) -> object:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
