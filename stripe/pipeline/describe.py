"""The contents of pass lists: as JSON Schema for editors, and as text for `--list-passes`."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo
from pydantic.json_schema import models_json_schema

from stripe.config.validate import SCHEMA
from stripe.hw.schema import HardwareModel
from stripe.ir import Stage
from stripe.ir.text.json_ir import json_schema
from stripe.passes.registry import SHORT_NAMES, find_pass, pass_names

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCHEMA_KEY: dict[str, JsonValue] = {
    SCHEMA: {"type": "string", "description": "the address of this schema, for editors"}
}


def config_schema() -> dict[str, JsonValue]:
    """The JSON Schema of pass lists, with the options of all registered passes."""
    classes = {name: find_pass(name) for name in pass_names()}
    places, definitions = models_json_schema(
        [(pass_class, "validation") for pass_class in classes.values()], ref_template="#/$defs/{model}"
    )
    keys: dict[str, JsonValue] = {
        "name": {"type": "string", "minLength": 1, "description": "a name of your choosing"}
    }
    for name, pass_class in classes.items():
        for key in (name, *short_names(name)):
            keys[key] = {**places[pass_class, "validation"], "description": inspect.getdoc(pass_class) or ""}
    keys["tune"] = {
        "type": "object", "additionalProperties": {"type": "array"},
        "description": "options with the values that `--tune` tries beside that of the pass",
    }  # fmt: skip
    optional: JsonValue = {
        "type": "boolean", "description": "whether programs are expected in which no block has the tags: no warning"
    }  # fmt: skip
    keys["optional"] = optional
    entry: dict[str, JsonValue] = {
        "type": "object", "required": ["name"], "additionalProperties": False,
        "oneOf": [{"required": [key]} for key in keys if key not in ("name", "tune", "optional")],
        "description": "a name and exactly one pass with its options", "properties": keys,
    }  # fmt: skip
    properties: dict[str, JsonValue] = {
        **_SCHEMA_KEY,
        "hardware": {
            "type": "string",
            "description": "the hardware model that the list is for: its name, or its path from the list's folder",
        },
        "optional": {**optional, "description": "`optional` of all entries that do not say it themselves"},
        "passes": {
            "type": "array",
            "items": entry,
            "description": "the passes, in the order in which they run",
        },
    }
    return {
        "$schema": _DRAFT, "title": "pass list", "type": "object", "required": ["passes"],
        "additionalProperties": False, "properties": properties, "$defs": definitions.get("$defs", {}),
    }  # fmt: skip


def hardware_schema() -> dict[str, JsonValue]:
    """The JSON Schema of rendered hardware models."""
    return file_schema(HardwareModel)


def file_schema(model: type[BaseModel]) -> dict[str, JsonValue]:
    """The JSON Schema of a file that people write, which may name its schema."""
    found = model.model_json_schema()
    return {"$schema": _DRAFT, **found, "properties": {**_SCHEMA_KEY, **found["properties"]}}


def short_names(name: str) -> tuple[str, ...]:
    """The other names under which a pass is known."""
    return tuple(sorted(short for short, full in SHORT_NAMES.items() if full == name))


def list_passes() -> str:
    """All passes with documentation, stages and options, as text."""
    return "\n".join(map(describe_pass, pass_names()))


def describe_pass(name: str) -> str:
    """One pass, by any of its names. Raises ConfigError for an unknown one."""
    name, pass_class = SHORT_NAMES.get(name, name), find_pass(name)
    also = short_names(name)
    requires = pass_class.requires if pass_class.requires is not Stage.TILED else None
    declared = (("requires", requires), ("ensures", pass_class.ensures))
    stages = [f"{word} the stage {stage.name.lower()}" for word, stage in declared if stage is not None]
    title = f"{name} (also {', '.join(also)})" if also else name
    return "\n".join(describe_options(title, pass_class, stages))


def describe_options(title: str, model: type[BaseModel], remarks: Sequence[str] = ()) -> Iterator[str]:
    """A class of passes, targets or engines as lines: `title`, documentation, `remarks`, options."""
    yield title
    for line in (*(inspect.getdoc(model) or "").splitlines(), *remarks):
        yield f"    {line}".rstrip()
    if model.model_fields:
        yield "    options:"
    for option in options_of(model):
        default = "required" if option.default is None else f"default {option.default}"
        yield f"      {option.name}: {option.type}; {default}"
        if option.description:
            yield f"          {option.description}"
    yield ""


@dataclass(frozen=True, slots=True)
class OptionRow:
    """An option as people read it: its type in words, its default as JSON, None where it has to be given."""

    name: str
    type: str
    default: str | None
    description: str


def options_of(model: type[BaseModel]) -> tuple[OptionRow, ...]:
    """The options of a pass, or the parts of a value that has some."""
    found: list[OptionRow] = []
    for name, field in model.model_fields.items():
        default = None if field.is_required() else _json(field.get_default(call_default_factory=True))
        words = bounded_words(type_words(field.annotation), field.metadata)
        found.append(OptionRow(field.alias or name, words, default, field.description or ""))
    return tuple(found)


def parts_of(model: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    """The models that options of `model` are made of, nested ones included, each once."""
    found: dict[type[BaseModel], None] = {}
    for field in model.model_fields.values():
        for part in _models_in(field.annotation):
            found |= dict.fromkeys((part, *parts_of(part)))
    return tuple(found)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _json(value: object) -> str:
    if isinstance(value, BaseModel):
        return value.model_dump_json(by_alias=True)
    if isinstance(value, tuple):
        return f"[{', '.join(_json(item) for item in cast('tuple[object, ...]', value))}]"
    return json.dumps(value.value if isinstance(value, Enum) else value)


_WORDS: dict[object, str] = {
    bool: "true or false", int: "whole number", float: "number", str: "text", types.NoneType: "null",
}  # fmt: skip


def type_words(annotation: object) -> str:
    """A type as people say it: `list of text`, `whole number or null`, `object {name, unit}`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inside = [
            item
            for part in arguments[1:]
            for item in (part.metadata if isinstance(part, FieldInfo) else [part])
        ]
        return bounded_words(type_words(arguments[0]), inside)
    if origin is Literal:
        return " or ".join(_json(word) for word in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(map(type_words, arguments))
    if origin in (tuple, list):
        inner = [argument for argument in arguments if argument is not Ellipsis]
        return f"list of {' or '.join(dict.fromkeys(map(type_words, inner)))}"
    if origin is dict:
        return f"object {{NAME: {type_words(arguments[1])}}}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        names = (field.alias or name for name, field in annotation.model_fields.items())
        return f"object {{{', '.join(names)}}}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(_json(member) for member in annotation)
    return _WORDS.get(cast("object", annotation), str(cast("object", annotation)))


def bounded_words(words: str, metadata: Sequence[object]) -> str:
    """A type in words, with the bounds of its numbers: `whole number from 1 to 8`, `number above 0 or null`."""
    bounds = {
        name: value
        for part in metadata
        for name in ("ge", "gt", "le")
        if (value := getattr(part, name, None)) is not None
    }
    least, above, most = (bounds.get(name) for name in ("ge", "gt", "le"))
    range_words = (
        f" from {least:,g}" if least is not None else f" above {above:,g}" if above is not None else ""
    )
    if most is not None:
        range_words += f" to {most:,}"
    elif least is not None:
        range_words += " on"
    stem = words.removesuffix(" or null")
    return stem + range_words + words.removeprefix(stem)


def ir_schema() -> dict[str, JsonValue]:
    """The JSON Schema of programs as `--emit json` writes them."""
    return {"$schema": _DRAFT, **json_schema()}
