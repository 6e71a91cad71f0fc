"""The front ends by name. Built-in ones stand in the table; others come through the entry-point group
`stripe.frontends`, whose entries name a `FrontEnd`. Nothing heavy is imported here: command lines are checked with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from stripe.frontends.frontend import FrontEnd

ENTRY_POINT_GROUP = "stripe.frontends"

BUILTIN = {
    front_end.name: front_end
    for front_end in (
        FrontEnd(
            "tile", (".tile",), "stripe.frontends.tile:load", {"numpy": "stripe.frontends.tile:evaluate"},
            takes=("shapes",),
        ),
        FrontEnd(
            "stripe", (".stripe",), "stripe.frontends.stripe:load",
            starts=r"\d+\s*(\[[\d,\s]*\])?\s*:", out_of_bounds=True,
        ),
        FrontEnd(
            "onnx", (".onnx",), "stripe.frontends.onnx:load", {"onnx": "stripe.frontends.onnx:evaluate"},
            as_tile="stripe.frontends.onnx:as_tile", files="stripe.frontends.onnx:files_beside",
            binary=True, rounds_alike=False, takes=("dims", "operators", "random_weights", "layers"),
        ),
        FrontEnd("json", (".json",), "stripe.frontends.json_ir:load", starts=r"\{", out_of_bounds=True),
    )
}  # fmt: skip
BUILTIN_SUFFIXES = ", ".join(suffix for front_end in BUILTIN.values() for suffix in front_end.suffixes)
"""The suffixes of the built-in languages, for descriptions of options."""
TEXT_DEFAULT = "tile"
"""The language of a text that begins like none of the others."""


@cache
def third_party() -> dict[str, FrontEnd]:
    """The front ends that other packages register. Raises ConfigError when such a package is broken."""
    from stripe.config.registry import load_registered, registered
    from stripe.ir.errors import ConfigError

    found: dict[str, FrontEnd] = {}
    for name, place in registered(ENTRY_POINT_GROUP).items():
        front_end = load_registered("front end", name, place, ENTRY_POINT_GROUP)
        if not isinstance(front_end, FrontEnd):
            reason = f"the entry point of front end '{name}' is no FrontEnd"
            raise ConfigError(reason, hint="it must be a stripe.frontends.frontend.FrontEnd")
        found[name] = front_end
    return found


def front_ends() -> Iterator[FrontEnd]:
    """All front ends, the built-in ones first."""
    yield from BUILTIN.values()
    yield from (other for name, other in third_party().items() if name not in BUILTIN)


def find_front_end(name: str) -> FrontEnd:
    """The front end called `name`. Raises KeyError when there is none."""
    return BUILTIN.get(name) or third_party()[name]


def by_suffix(suffix: str) -> FrontEnd | None:
    """The front end of files that end in `suffix`, such as `.tile`."""
    return next((found for found in front_ends() if suffix.lower() in found.suffixes), None)


def by_beginning(line: str) -> FrontEnd:
    """The front end of a text by its first line of code."""
    return next((found for found in front_ends() if found.begins(line)), BUILTIN[TEXT_DEFAULT])


def languages() -> Iterator[str]:
    """The names of all front ends."""
    return (found.name for found in front_ends())


def references() -> Iterator[str]:
    """The names of all references, each once."""
    return iter(dict.fromkeys(name for found in front_ends() for name in found.references))
