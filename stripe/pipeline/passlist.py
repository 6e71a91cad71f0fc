"""Pass lists: JSON files rendered by Jinja, and passes spelled on a command line, as entries that the manager runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from stripe.config.document import Document, parse_document, read_text
from stripe.config.files import is_path, load_parameters, resolve_parameters
from stripe.config.json5 import JsonPath
from stripe.config.model import Scalar
from stripe.config.spelling import print_spelled, read_spelled
from stripe.config.template import free_names, render_json
from stripe.config.validate import combine, validate, without_schema
from stripe.ir import ConfigError
from stripe.ir.errors import did_you_mean
from stripe.passes.base import Pass
from stripe.passes.registry import find_pass
from stripe.pipeline.instrument import PassEntry

_INCLUDES = re.compile(r"\{%-?\s*(include|import|from|extends)\b")
_TEMPLATED = re.compile(r"\{[{%#]|^\s*##", re.MULTILINE)
_KEYS = ("passes", "hardware")
_HARDWARE = re.compile(
    r"""^[\s{,]*(?:"hardware"|'hardware'|hardware)\s*:\s*("[^"\n]*"|'[^'\n]*')""", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class PassList:
    """The entries of one file, the hardware model that it is for (by name), and its rendered data."""

    entries: tuple[PassEntry, ...]
    hardware: str | None
    data: JsonValue


def hardware_of(path: Path) -> str | None:
    """The hardware model that the list names in its key `hardware`, read before rendering, since rendering needs it."""
    text = read_text(path)
    match = _HARDWARE.search(text)
    if match or _TEMPLATED.search(text):
        return match[1][1:-1] if match else None
    data = parse_document(text, str(path)).data
    named = data.get("hardware") if isinstance(data, dict) else None
    return named if isinstance(named, str) else None


def located_hardware(named: str, path: Path) -> str:
    """What the key `hardware` of the list at `path` stands for: a path is one from the list's own folder."""
    return str(path.parent / named) if is_path(named) else named


def parameters_of(path: Path, defines: Mapping[str, Scalar], elsewhere: Collection[str]) -> dict[str, Scalar]:
    """The values of the list's own parameters: `defines` over the defaults of its `NAME.params.json`, if it has one.

    Names of `elsewhere` may stand in `defines` without being the list's. Raises ConfigError.
    """
    return resolve_parameters(
        path, defines, defines.keys() if _INCLUDES.search(read_text(path)) else elsewhere
    )


def names_of(path: Path) -> frozenset[str]:
    """The names that `-D` may give to the list at `path`."""
    described = load_parameters(path)
    return free_names(path).union(described[1].parameters if described else ())


def load_pass_list(path: Path, parameters: Mapping[str, Scalar]) -> PassList:
    """Renders and checks the pass list at `path`. Raises ConfigError with all that is wrong, by line and JSON path."""
    found = read_pass_list(render_json(path, parameters))
    if found.hardware != hardware_of(path):
        hint = 'write it as "hardware": "NAME" on a line of its own, without a template expression'
        raise ConfigError(
            "the key 'hardware' must be readable before the list is rendered", path=str(path), hint=hint
        )
    return found


def read_pass_list(document: Document) -> PassList:
    """Checks a rendered pass list. Raises ConfigError with all that is wrong, by line and JSON path."""
    data = without_schema(document, document.data)
    if not isinstance(data, dict):
        raise document.error("a pass list is an object", (), 'write { "passes": [ … ] }')
    if "passes" not in data and "clock_mhz" in data:
        raise document.error("this is a hardware model, not a pass list", (), "give it with --hw")
    for key in data:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS, f"known keys: {', '.join(_KEYS)}")
            raise document.error(f"unknown key '{key}'", (key,), hint, on_key=True)
    listed = data.get("passes")
    if listed is None:
        raise document.error("the key 'passes' is missing", (), 'write "passes": [ … ]')
    if not isinstance(listed, list):
        raise document.error("'passes' is a list", ("passes",), 'write "passes": [ … ]')
    hardware = data.get("hardware")
    if hardware is not None and not isinstance(hardware, str):
        raise document.error("'hardware' is the name of a hardware model", ("hardware",), "write a text")
    return PassList(tuple(_entries(document, listed)), hardware, data)


def _entries(document: Document, listed: list[JsonValue]) -> list[PassEntry]:
    found: list[PassEntry] = []
    errors: list[ConfigError] = []
    for number, item in enumerate(listed):
        try:
            found.append(_entry(document, item, ("passes", number)))
        except ConfigError as error:
            errors += [error, *(other for other in error.others if isinstance(other, ConfigError))]
            error.others = ()
    if errors:
        raise combine(errors)
    return found


def _entry(document: Document, item: JsonValue, at: JsonPath) -> PassEntry:
    form = 'write { "name": "…", "PASS": { … } }'
    if not isinstance(item, dict):
        raise document.error("an entry of a pass list is an object", at, form)
    name = item.get("name")
    if name is None:
        raise document.error("the key 'name' is missing", at, form)
    if not isinstance(name, str) or not name.strip():
        raise document.error("'name' is a text of your choosing", (*at, "name"), form)
    keys = [key for key in item if key != "name"]
    if not keys:
        raise document.error(f"entry '{name}' has no pass", at, form)
    pass_class = _one_pass(document, name, keys, at)
    return PassEntry(name, validate(pass_class, document, (*at, keys[0])))


def _one_pass(document: Document, name: str, keys: list[str], at: JsonPath) -> type[Pass]:
    """The class of the only key in `keys`."""
    errors: list[ConfigError] = []
    known: list[str] = []
    for key in keys:
        try:
            find_pass(key)
            known.append(key)
        except ConfigError as error:
            errors.append(document.error(error.reason, (*at, key), error.hint, on_key=True))
    if len(keys) == 1 and errors:
        raise errors[0]
    if len(known) > 1:
        reason = f"entry '{name}' has several passes: {' and '.join(known)}"
        raise document.error(reason, (*at, known[1]), "give each an entry of its own", on_key=True)
    if known and errors:
        stray = next(key for key in keys if key not in known)
        hint = f'options stand inside "{known[0]}": {{ … }}'
        raise document.error(
            f"unknown key '{stray}' beside the pass '{known[0]}'", (*at, stray), hint, on_key=True
        )
    if errors:
        raise combine(errors)
    return find_pass(known[0])


def parse_passes(text: str, source: str = "--passes") -> tuple[PassEntry, ...]:
    """The entries that a command line spells. Raises ConfigError with the column."""
    return tuple(PassEntry(spelled.label, spelled.build(find_pass)) for spelled in read_spelled(text, source))


def pass_options(pass_: Pass) -> dict[str, JsonValue]:
    """The options that differ from their defaults, as JSON."""
    return pass_.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def entry_json(entry: PassEntry) -> dict[str, JsonValue]:
    """The entry as it stands in a pass list."""
    return {"name": entry.name, entry.pass_.pass_name: pass_options(entry.pass_)}


def spell(entries: tuple[PassEntry, ...]) -> str:
    """The entries in the spelling that `parse_passes` reads back."""
    return ",".join(
        print_spelled(entry.name, entry.pass_.pass_name, pass_options(entry.pass_)) for entry in entries
    )
