"""Data checked against pydantic models, with errors in the words of their author."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping
from typing import Annotated, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from stripe.config.document import Document
from stripe.config.json5 import JsonPath, value_at
from stripe.ir.errors import ConfigError, closest, combine, did_you_mean

_Model = TypeVar("_Model", bound=BaseModel)

SCHEMA = "$schema"
"""The key that names the JSON Schema of a file."""


def validate(model_class: type[_Model], document: Document, at: JsonPath = ()) -> _Model:
    """The part of `document` at the path `at` as a model. Types are those of the exported JSON Schema: no text stands
    for a number or for true, no number for a text.

    Raises ConfigError for the first thing that is wrong, with the rest in its `others`; each names its JSON path and
    line, the expected value and, for an unknown key, the nearest known one.
    """
    value = without_schema(document, document.at(at)) if not at else document.at(at)
    try:
        return _strictly(model_class, value)
    except ValidationError as error:
        # one error for each place: a union fails once for each of its members
        errors: dict[JsonPath, ErrorDetails] = {}
        for details in error.errors(include_url=False):
            missing = details["type"] == "missing"
            errors.setdefault(details["loc"] if missing else _data_path(details["loc"], value), details)
        found = [_located(details, model_class, document, at, value) for details in errors.values()]
        raise combine(sorted(found, key=lambda one: (one.line or 0, one.caret or 0))) from None


def without_schema(document: Document, data: JsonValue) -> JsonValue:
    """The data of a whole document without its key `$schema`, which is for editors. Raises ConfigError."""
    if not isinstance(data, dict) or SCHEMA not in data:
        return data
    if not isinstance(data[SCHEMA], str):
        reason = f"expected a text, found {_shown(data[SCHEMA])}"
        raise document.error(reason, (SCHEMA,), "it is the address of a JSON Schema")
    return {key: value for key, value in data.items() if key != SCHEMA}


def _strictly(model_class: type[_Model], value: JsonValue) -> _Model:
    """`value` as a model, read as JSON so that lists are tuples there, and nothing else is converted.

    A whole number may be written `1e6` or `4.0`: it is an integer for JSON Schema too, and only pydantic minds.
    """
    try:
        return model_class.model_validate_json(_json(value), strict=True)
    except ValidationError as error:
        places = [
            _data_path(details["loc"], value)
            for details in error.errors()
            if details["type"] == "int_type"
            and isinstance(given := details["input"], float)
            and given.is_integer()
        ]
        if not places:
            raise
    return model_class.model_validate_json(_json(_with_integers(value, frozenset(places))), strict=True)


def _json(value: JsonValue) -> bytes:
    """The text of `value`; half a surrogate pair, which JSON5 takes and no text of Unicode holds, is replaced."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _with_integers(value: JsonValue, places: frozenset[JsonPath], at: JsonPath = ()) -> JsonValue:
    """`value` with the floats at `places` as integers."""
    if isinstance(value, dict):
        return {key: _with_integers(item, places, (*at, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_integers(item, places, (*at, number)) for number, item in enumerate(value)]
    return int(value) if isinstance(value, float) and at in places else value


def _data_path(loc: JsonPath, value: JsonValue) -> JsonPath:
    """The part of pydantic's `loc` that is in the data: it also names members of unions and missing keys."""
    path: JsonPath = ()
    for step in loc:
        try:
            value = value_at(value, (step,))
        except KeyError:
            continue
        path = (*path, step)
    return path


def _located(
    details: ErrorDetails, model_class: type[BaseModel], document: Document, at: JsonPath, value: JsonValue
) -> ConfigError:
    loc = details["loc"]
    path = _data_path(loc, value)
    key = str(loc[-1]) if loc else ""
    if details["type"] == "extra_forbidden":
        known = _fields_at(model_class, path[:-1])
        hint = did_you_mean(key, known, f"known keys: {', '.join(known)}")
        return document.error(f"unknown key '{key}'", (*at, *path), hint, on_key=True)
    if details["type"] == "missing":
        present = value_at(value, path)
        near = closest(key, present) if isinstance(present, dict) else None
        misspelled = bool(near) and near not in _fields_at(model_class, path)
        hint = f"'{near}' may be meant" if misspelled else f"'{key}' has no default, give it a value"
        return document.error(f"the key '{key}' is missing", (*at, *path), hint)
    hint = _instead(details) or _meaning(model_class, path)
    return document.error(_reason(details), (*at, *path), hint, on_key="[key]" in loc)


_EXPECTED = {
    "int_type": "a whole number", "int_parsing": "a whole number", "int_from_float": "a whole number",
    "float_type": "a number", "float_parsing": "a number", "finite_number": "a finite number",
    "bool_type": "true or false", "bool_parsing": "true or false", "string_type": "a text",
    "list_type": "a list", "tuple_type": "a list", "dict_type": "an object", "model_type": "an object",
    "model_attributes_type": "an object", "none_required": "null",
}  # fmt: skip


def _reason(details: ErrorDetails) -> str:
    kind, found = details["type"], _shown(details.get("input"))
    context: Mapping[str, object] = details.get("ctx", {})
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {found}"
    for name, words in (("gt", "more than"), ("ge", "at least"), ("lt", "less than"), ("le", "at most")):
        if name in context:
            return f"must be {words} {_shown(context[name])}, not {found}"
    if kind in ("literal_error", "enum"):
        return f"expected {context.get('expected')}, found {found}"
    if kind == "too_short":
        return f"needs at least {context.get('min_length')} entries, has {context.get('actual_length')}"
    if kind == "string_pattern_mismatch" and str(context.get("pattern")).startswith("^[A-Za-z_]"):
        return f"{found} is no name: letters, digits and _, with no digit first"
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error", details["msg"]))
    message = details["msg"]
    return message[:1].lower() + message[1:]


_WORDS = {
    "true": True, "yes": True, "on": True, "1": True, "1.0": True,
    "false": False, "no": False, "off": False, "0": False, "0.0": False,
}  # fmt: skip


def _instead(details: ErrorDetails) -> str | None:
    """The spelling of a value in the type that the field takes."""
    wanted, found = _EXPECTED.get(details["type"]), details.get("input")
    if wanted == "true or false" and str(found).lower() in _WORDS:
        return f"write {_shown(_WORDS[str(found).lower()])}"
    if wanted in ("a whole number", "a number") and isinstance(found, str) and _NUMBER.fullmatch(found):
        return f"write {found}, without quotes"
    if wanted == "a text" and isinstance(found, (bool, int, float)):
        return f'write "{_shown(found)}"'
    if wanted == "a list" and isinstance(found, (str, bool, int, float)):
        return f"write {json.dumps([found], ensure_ascii=False)}"
    return None


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, (int, float)):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= 40 else f"'{value[:40]}…'"
    return "an object" if isinstance(value, dict) else "a list"


def _meaning(model_class: type[BaseModel], path: JsonPath) -> str | None:
    """The innermost key on the path with its description."""
    for depth in reversed(range(len(path))):
        described = _fields_at(model_class, path[:depth]).get(str(path[depth]))
        if described is not None and described.description:
            return f"'{path[depth]}': {described.description}"
    return None


def _fields_at(model_class: type[BaseModel], path: JsonPath) -> dict[str, FieldInfo]:
    """The fields by their keys of the models which may stand at `path`; of several the first."""
    candidates: list[object] = [model_class]
    for step in path:
        candidates = [inner for candidate in candidates for inner in _inner_types(candidate, step)]
    found: dict[str, FieldInfo] = {}
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            for name, field in candidate.model_fields.items():
                found.setdefault(field.alias or name, field)
    return found


def _inner_types(candidate: object, step: str | int) -> list[object]:
    """The types one step into a value of the type `candidate`, unions taken apart."""
    if isinstance(candidate, type) and issubclass(candidate, BaseModel):
        for name, info in candidate.model_fields.items():
            if step in (name, info.alias):
                return _members(info.annotation)
        return []
    arguments = get_args(candidate)
    if isinstance(step, int):
        return [member for argument in arguments if argument is not Ellipsis for member in _members(argument)]
    return _members(arguments[-1]) if arguments else []


def _members(annotation: object) -> list[object]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [member for argument in get_args(annotation) for member in _members(argument)]
    return [annotation]
