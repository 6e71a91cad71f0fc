"""Pass lists as JSON, and passes spelled on a command line, as entries that the manager runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from stripe.config.document import Document
from stripe.config.json5 import JsonPath
from stripe.config.spelling import print_spelled, read_spelled
from stripe.config.validate import validate, without_schema
from stripe.ir import ConfigError
from stripe.ir.errors import combine, did_you_mean
from stripe.passes.base import Pass
from stripe.passes.registry import find_pass
from stripe.pipeline.entry import PassEntry

_KEYS = ("passes", "hardware", "optional")
_ENTRY_KEYS = ("name", "tune", "optional")


@dataclass(frozen=True, slots=True)
class PassList:
    """The entries of one file, the hardware model that it is for (by name), and its rendered data."""

    entries: tuple[PassEntry, ...]
    hardware: str | None
    data: JsonValue


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
    optional = _is_optional(document, data, (), False)
    found: list[PassEntry] = []
    errors: list[ConfigError] = []
    for number, item in enumerate(listed):
        try:
            found.append(_entry(document, item, ("passes", number), optional))
        except ConfigError as error:
            errors += [error, *(other for other in error.others if isinstance(other, ConfigError))]
            error.others = ()
    if errors:
        raise combine(errors)
    return PassList(tuple(found), hardware, data)


def _is_optional(document: Document, item: dict[str, JsonValue], at: JsonPath, otherwise: bool) -> bool:
    found = item.get("optional", otherwise)
    if not isinstance(found, bool):
        raise document.error("'optional' is true or false", (*at, "optional"), 'write "optional": true')
    return found


def _entry(document: Document, item: JsonValue, at: JsonPath, optional: bool) -> PassEntry:
    form = 'write { "name": "…", "PASS": { … } }'
    if not isinstance(item, dict):
        raise document.error("an entry of a pass list is an object", at, form)
    name = item.get("name")
    if name is None:
        raise document.error("the key 'name' is missing", at, form)
    if not isinstance(name, str) or not name.strip():
        raise document.error("'name' is a text of your choosing", (*at, "name"), form)
    keys = [key for key in item if key not in _ENTRY_KEYS]
    if not keys:
        raise document.error(f"entry '{name}' has no pass", at, form)
    pass_class = _one_pass(document, name, keys, at)
    made = validate(pass_class, document, (*at, keys[0]))
    tune = tuple(_choices(document, made, item.get("tune", {}), (*at, "tune")))
    return PassEntry(name, made, tune, _is_optional(document, item, at, optional))


def _choices(
    document: Document, made: Pass, tune: JsonValue, at: JsonPath
) -> Iterator[tuple[str, tuple[JsonValue, ...]]]:
    """The options that the key `tune` names, with the values to try."""
    if not isinstance(tune, dict):
        raise document.error("'tune' is an object", at, 'write "tune": { OPTION: [VALUE, …] }')
    for option, values in tune.items():
        if option not in type(made).model_fields:
            hint = did_you_mean(option, type(made).model_fields, "")
            raise document.error(f"the pass has no option '{option}'", (*at, option), hint, on_key=True)
        if not isinstance(values, list):
            raise document.error("the values to try are a list", (*at, option), "write [VALUE, …]")
        for value in values:
            validate_option(made, option, value, document, (*at, option))
        yield option, tuple(values)


def validate_option(made: Pass, option: str, value: JsonValue, document: Document, at: JsonPath) -> None:
    """Raises ConfigError for a value that an option of a pass does not have."""
    try:
        with_option(made, option, value)
    except ValueError as error:
        reason = f"{json.dumps(value)} is no value of '{option}'"
        raise document.error(reason, at, str(error).splitlines()[-1].strip()) from None


def with_option(made: Pass, option: str, value: JsonValue) -> Pass:
    """A pass with an option set. Raises ValueError."""
    return type(made).model_validate(made.model_dump(mode="json", by_alias=True) | {option: value})


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
        reason = f"unknown key '{stray}' beside the pass '{known[0]}'"
        hint = f'options stand inside "{known[0]}": {{ … }}'
        raise document.error(reason, (*at, stray), hint, on_key=True)
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
