"""Places in JSON that is read: each error names its JSON path, the reason and a suggestion."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

from stripe.ir.errors import StripeError, did_you_mean
from stripe.ir.frozen import frozen
from stripe.ir.text.brackets import MAX_NESTING
from stripe.ir.text.names import NAME_PATTERN

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"

_Word = TypeVar("_Word")

_FORMAT = "'stripe-opt --schema ir' prints the format"


@frozen
class JsonPlace:
    """A value in the JSON of a file."""

    filename: str
    path: tuple[str | int, ...] = ()

    def at(self, step: str | int) -> JsonPlace:
        """The place of a field or an item. Raises StripeError past `MAX_NESTING` levels."""
        if len(self.path) >= MAX_NESTING:
            raise self.error("nested too deeply", f"values may nest {MAX_NESTING} deep")
        return JsonPlace(self.filename, (*self.path, step))

    def error(self, reason: str, hint: str | None = None) -> StripeError:
        return StripeError(reason, path=self.filename, where=json_path(self.path), hint=hint)

    def expected(self, wanted: str, found: Json) -> StripeError:
        """The error that another kind of value stands here."""
        kinds: dict[object, str] = {dict: "an object", list: "a list"}
        shown = kinds.get(type(found)) or json.dumps(found)
        return self.error(f"expected {wanted}, found {shown[:60]}", _FORMAT)

    def object(self, value: Json) -> JsonObject:
        """The value as an object. Raises StripeError for another kind."""
        if not isinstance(value, dict):
            raise self.expected("an object", value)
        return dict(value)

    def items(self, value: Json) -> list[tuple[Json, JsonPlace]]:
        """The items of a list, each with its place."""
        if not isinstance(value, list):
            raise self.expected("a list", value)
        return [(item, self.at(number)) for number, item in enumerate(value)]

    def word(self, value: Json, known: Mapping[str, _Word], noun: str) -> _Word:
        """The entry of `known` under a name."""
        if not isinstance(value, str):
            raise self.expected("a text", value)
        if value not in known:
            hint = did_you_mean(value, known, f"known are {', '.join(known)}")
            raise self.error(f"unknown {noun} '{value}'", hint)
        return known[value]

    def check_name(self, value: Json, noun: str) -> str:
        """The value as the name of `noun`. Raises StripeError for a name that Stripe's text cannot hold."""
        if not isinstance(value, str):
            raise self.expected("a text", value)
        if not re.fullmatch(NAME_PATTERN, value):
            raise self.error(f"'{value}' cannot name {noun}", "names are letters, digits, _, . and '")
        return value

    def fields(self, value: Json, names: Sequence[str]) -> list[tuple[Json, JsonPlace]]:
        """The fields of an object that has exactly these, each with its place."""
        found = self.object(value)
        for key in found:
            if key not in names:
                hint = did_you_mean(key, names, f"known are {', '.join(names)}")
                raise self.error(f"unknown field '{key}'", hint)
        for name in names:
            if name not in found:
                raise self.error(f"the field '{name}' is missing", f"the fields here are {', '.join(names)}")
        return [(found[name], self.at(name)) for name in names]


def json_path(path: Sequence[str | int]) -> str:
    """A path as people write it: `$.buses[2].sinks[0]`."""
    return "$" + "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if _PLAIN.fullmatch(step) else f"[{step!r}]"
        for step in path
    )


_PLAIN = re.compile(r"[A-Za-z_]\w*")
"""A key that needs no quotes."""
