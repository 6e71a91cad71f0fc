"""Programs as JSON: written by a walk over the dataclasses of the IR, and read by the types of their fields, from which
their JSON Schema comes too.

An object has the fields of its class; statements also have a `kind`. `_FORMS` lists the types with a form of their own.
Reading checks types and words; `verify_structural` checks the rest, as for the textual form.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any, cast, get_args, get_origin, get_type_hints

from stripe.ir.affine import Affine, FloorDiv
from stripe.ir.block import Block, Constant, Constraint, Index, ScalarStatement, Statement
from stripe.ir.dtypes import DTYPES, DType
from stripe.ir.errors import StripeError
from stripe.ir.location import Device, Location
from stripe.ir.program import Program
from stripe.ir.refinement import Refinement
from stripe.ir.tags import Tags
from stripe.ir.text.brackets import MAX_NESTING
from stripe.ir.text.json_place import Json, JsonObject, JsonPlace

FORMAT_VERSION = 1
_KINDS: dict[str, type[Statement]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in get_args(Statement)
}
_KIND_OF: dict[Any, str] = {kind: word for word, kind in _KINDS.items()}
_NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
"""The values that JSON cannot hold, which are texts there."""


def program_json(program: Program) -> JsonObject:
    """The program as values that the `json` module writes."""
    return {"stripe_ir": FORMAT_VERSION, **cast("JsonObject", _written(program))}


def parse_json(text: str, filename: str = "<string>") -> Program:
    """The program that `text` denotes. Raises StripeError with the line for text that is no JSON, else with the JSON
    path.
    """
    try:
        data: Json = json.loads(text, parse_float=_number)
    except json.JSONDecodeError as error:
        hint = "stripe-opt --emit json writes such files"
        raise _error(text, filename, error.pos, f"this is no JSON: {error.msg}", hint) from None
    except OverflowError as error:
        hint = 'the largest is about 1.79e308; infinity is "inf"'
        raise _error(text, filename, text.index(str(error)), "the number is too large", hint) from None
    except ValueError:  # of int(), which refuses thousands of digits
        raise JsonPlace(filename).error("an integer is too large", "integers have 64 bits") from None
    except RecursionError:
        raise JsonPlace(filename).error("nested too deeply", f"values may nest {MAX_NESTING} deep") from None
    place = JsonPlace(filename)
    found = place.object(data)
    if found.pop("stripe_ir", None) != FORMAT_VERSION:
        raise place.error("this is no program as JSON", f'it begins with "stripe_ir": {FORMAT_VERSION}')
    return _read(found, Program, place)


def _error(text: str, filename: str, at: int, reason: str, hint: str) -> StripeError:
    """An error with the line of the offset `at`."""
    before = text[:at].split("\n")
    line, col = len(before), len(before[-1]) + 1
    return StripeError(
        reason, path=filename, line=line, col=col, source=text.split("\n")[line - 1], hint=hint
    )


def _number(word: str) -> float:
    """The float that `word` spells. Raises OverflowError with the word where no float is as large."""
    value = float(word)
    if not isfinite(value):
        raise OverflowError(word)
    return value


def json_schema() -> JsonObject:
    """The JSON Schema of programs."""
    definitions: JsonObject = {"AffineJson": _AFFINE, "TermJson": _TERM}
    _schema(Program, definitions)
    schema = cast("JsonObject", definitions.pop("ProgramJson"))
    version: JsonObject = {"stripe_ir": {"const": FORMAT_VERSION}}
    properties = version | cast("JsonObject", schema["properties"])
    whole: JsonObject = {
        "title": "program", "properties": properties, "required": [*properties], "$defs": definitions,
    }  # fmt: skip
    return schema | whole


@dataclasses.dataclass(frozen=True, slots=True)
class _Form:
    """How values of a type are written and read, and their schema."""

    write: Callable[[Any], Json]
    read: Callable[[Json, JsonPlace], object]
    schema: JsonObject


def _written(value: object) -> Json:
    if (form := _form(type(value))) is not None:
        return form.write(value)
    if isinstance(value, tuple):
        return [_written(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, Location | Constraint):
        return _written(getattr(value, _INNER[type(value)]))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        assert value is None or isinstance(value, bool | int | float | str)
        return _finite(value)
    fields = {name: getattr(value, name) for name in _fields(type(value))}
    if isinstance(value, Block | Refinement | Index):
        fields["tags"] = value.words
    if isinstance(value, Refinement):
        fields["offset"] = value.offset or 0
        if value.layout is None:
            del fields["layout"]
    kind: JsonObject = {"kind": _KIND_OF[type(value)]} if type(value) in _KIND_OF else {}
    return kind | {name: _written(field) for name, field in fields.items()}


def _read(value: Json, hint: Any, place: JsonPlace) -> Any:
    """The value of the type `hint`."""
    if (form := _form(hint)) is not None:
        return form.read(value, place)
    if hint in _INNER:
        return hint(_read(value, _fields(hint)[_INNER[hint]], place))
    if hint == Statement or hint in _KIND_OF:
        found = place.object(value)
        kind = place.at("kind").word(found.pop("kind", None), _KINDS, "kind")
        if hint not in (Statement, kind):
            raise place.error(f"a {_KIND_OF[hint]} stands here, not a {_KIND_OF[kind]}")
        return _read_fields(found, kind, place)
    if get_origin(hint) is tuple:
        return tuple([_read(item, get_args(hint)[0], at) for item, at in place.items(value)])
    if get_origin(hint) is types.UnionType:
        return None if value is None else _read(value, get_args(hint)[0], place)
    return _read_fields(value, hint, place)


def _read_fields(value: Json, kind: Any, place: JsonPlace) -> Any:
    """The dataclass `kind` of the fields in `value`."""
    hints = _fields(kind)
    if kind is Refinement:
        value = {"layout": None, **place.object(value)}
    read = {
        name: _read(item, hints[name], at)
        for name, (item, at) in zip(hints, place.fields(value, list(hints)), strict=True)
    }
    if kind is Constant:
        read["value"] = _fitting(read["value"], read["dtype"], place.at("value"))
    for name, noun in _NAMES.get(kind, {}).items():
        place.at(name).check_name(read[name], noun)
    try:
        built = kind(**read)
    except ValueError as error:
        raise place.error(str(error)) from None
    if isinstance(built, Refinement) and built.layout is not None and built.layout.pad is not None:
        pad = _fitting(built.layout.pad, built.dtype, place.at("layout").at("pad"))
        built = dataclasses.replace(built, layout=dataclasses.replace(built.layout, pad=pad))
    if not isinstance(built, Block | Refinement | Index):
        return built
    try:
        return built.with_words(built.tags)
    except ValueError as error:
        raise place.at("tags").error(str(error)) from None


def _schema(hint: Any, definitions: JsonObject) -> JsonObject:
    """The schema of values of the type `hint`; those of dataclasses are added to `definitions`."""
    if (form := _form(hint)) is not None:
        return form.schema
    if hint in _INNER:
        return _schema(_fields(hint)[_INNER[hint]], definitions)
    if hint == Statement:
        return {"anyOf": [_schema(kind, definitions) for kind in _KINDS.values()]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0], definitions)}
    if get_origin(hint) is types.UnionType:
        return {"anyOf": [_schema(get_args(hint)[0], definitions), {"type": "null"}]}
    name = f"{hint.__name__}Json"
    if name not in definitions:
        definitions[name] = {}  # blocks hold blocks
        kind: JsonObject = {"kind": {"const": _KIND_OF[hint]}} if hint in _KIND_OF else {}
        inner = {field: _schema(inner, definitions) for field, inner in _fields(hint).items()}
        optional = ("layout",) if hint is Refinement else ()
        definitions[name] = _object(inspect.getdoc(hint) or "", {**kind, **inner}, optional)
    return {"$ref": f"#/$defs/{name}"}


@cache
def _fields(kind: type[Any]) -> dict[str, Any]:
    """The types of the fields of a dataclass, in order. What the text spells as tags is among the tags here too, and an
    address is a number.
    """
    hints = get_type_hints(kind)
    if kind is Refinement:
        hints["offset"] = int
    spelled = {"role", "copies", "pitch", "is_main", "stage", "pipeline_depth", "is_spatial", "stencil"}
    return {f.name: hints[f.name] for f in dataclasses.fields(kind) if f.name not in spelled}


def _finite(value: bool | int | float | str | None) -> Json:
    return repr(value) if isinstance(value, float) and not isfinite(value) else value


def _fitting(value: Json, dtype: DType, place: JsonPlace) -> Json:
    """The value of a constant of `dtype`. A float may come without a point, as some programs write it."""
    if dtype.is_float:
        if isinstance(value, str):
            return place.word(value, _NUMBERS, "number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise place.expected("a number", value)
        return float(value)
    return _plain(value, place, "bool" if dtype.kind == "bool" else "int")


def _plain(value: Json, place: JsonPlace, kind: str) -> Json:
    """A value whose Python type is `kind`: bools are no numbers."""
    if type(value).__name__ != kind:
        raise place.expected(_PLAIN[kind], value)
    return value


def _write_affine(affine: Affine) -> Json:
    terms: list[Json] = []
    for atom, coefficient in affine.terms:
        term: JsonObject = {"coefficient": coefficient}
        if isinstance(atom, str):
            term["index"] = atom
        elif isinstance(atom, FloorDiv):
            term |= {"floor": _write_affine(atom.arg), "divisor": atom.divisor}
        else:
            term |= {"mod": _write_affine(atom.arg), "divisor": atom.modulus}
        terms.append(term)
    return {"offset": affine.offset, "terms": terms}


def _read_affine(value: Json, place: JsonPlace) -> Affine:
    (offset, at), (terms, terms_at) = place.fields(value, ("offset", "terms"))
    total = Affine(_read(offset, int, at))
    for term, at in terms_at.items(terms):
        total = total + _read_term(term, at)
    return total


def _read_term(value: Json, place: JsonPlace) -> Affine:
    found = place.object(value)
    kind = next((kind for kind in ("floor", "mod") if kind in found), "index")
    if kind == "index":
        (coefficient, at), (name, name_at) = place.fields(value, ("coefficient", "index"))
        return Affine.var(name_at.check_name(name, "an index")) * _read(coefficient, int, at)
    (coefficient, at), (inner, inner_at), (divisor, divisor_at) = place.fields(
        value, ("coefficient", kind, "divisor")
    )
    affine, count = _read_affine(inner, inner_at), _read(divisor, int, divisor_at)
    if count < 1:
        raise divisor_at.error(f"a divisor is at least 1, not {count}")
    return (affine.floordiv(count) if kind == "floor" else affine.mod(count)) * _read(coefficient, int, at)


def _read_tags(value: Json, place: JsonPlace) -> Tags:
    found = dict(place.object(value))
    for word, item in found.items():
        if isinstance(item, dict) and [*item] == ["float"]:
            found[word] = place.at(word).at("float").word(item["float"], _NUMBERS, "number")
        elif isinstance(item, list | dict):
            raise place.at(word).expected("a text, a number, true, false or null", item)
    return Tags.from_pairs(cast("dict[str, None]", found).items())


def _tag_value(value: bool | int | float | str | None) -> Json:
    """The value of a tag. JSON has no infinities and no NaN, and their names are texts that tags may have."""
    found = _finite(value)
    return {"float": found} if isinstance(value, float) and isinstance(found, str) else found


def _read_bytes(value: Json, place: JsonPlace) -> bytes:
    try:
        return bytes.fromhex(cast("str", _plain(value, place, "str")))
    except ValueError:
        raise place.error("the contents of a constant are hexadecimal digits", "two digits a byte") from None


def _object(description: str, properties: Mapping[str, Json], optional: Sequence[str] = ()) -> JsonObject:
    required: list[Json] = [name for name in properties if name not in optional]
    return {
        "description": description, "type": "object", "properties": dict(properties), "required": required,
        "additionalProperties": False,
    }  # fmt: skip


def _words(known: Mapping[str, object], noun: str) -> _Form:
    """The form of things that have names."""
    names = {thing: name for name, thing in known.items()}
    return _Form(
        lambda value: names[value], lambda value, place: place.word(value, known, noun), {"enum": [*known]}
    )


@cache
def _form(hint: Any) -> _Form | None:
    """The form of a type that is neither written as its fields nor as its items. An enumeration has words."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _words({str(member.value): member for member in hint}, hint.__name__.lower())
    return _FORMS.get(hint)


_INTEGER: JsonObject = {"type": "integer"}
_TEXT: JsonObject = {"type": "string"}
_SCALAR: JsonObject = {"type": ["boolean", "number", "string"]}
_TAG: JsonObject = {
    "anyOf": [
        {"type": ["boolean", "number", "string", "null"]},
        {"type": "object", "properties": {"float": {"enum": [*_NUMBERS]}}, "required": ["float"]},
    ]
}
_PLAIN = {"int": "a whole number", "str": "a text", "bool": "true or false"}
_TERM = _object(
    "`coefficient` times an `index`, or times `floor`(affine / `divisor`), or times `mod`(affine, `divisor`).",
    {"coefficient": _INTEGER, "index": _TEXT, "floor": {"$ref": "#/$defs/AffineJson"},
     "mod": {"$ref": "#/$defs/AffineJson"}, "divisor": _INTEGER},
    optional=("index", "floor", "mod", "divisor"),
)  # fmt: skip
_AFFINE = _object(
    "`offset` plus the sum of `terms`.",
    {"offset": _INTEGER, "terms": {"type": "array", "items": {"$ref": "#/$defs/TermJson"}}},
)

_INNER: dict[Any, str] = {Location: "devices", Constraint: "affine"}
"""Types that are written as their only field."""

_NAMES: dict[Any, dict[str, str]] = {Device: {"name": "a device"}} | {
    kind: {"into": "a scalar"} for kind in get_args(ScalarStatement)
}
"""Fields that are names and that the verifier does not check."""

_FORMS: dict[Any, _Form] = {
    int: _Form(_finite, lambda value, place: _plain(value, place, "int"), _INTEGER),
    str: _Form(_finite, lambda value, place: _plain(value, place, "str"), _TEXT),
    bool | int | float: _Form(_finite, lambda value, _: value, _SCALAR),
    bool | int | float | None: _Form(_finite, lambda value, _: value, {"anyOf": [_SCALAR, {"type": "null"}]}),
    bytes: _Form(bytes.hex, _read_bytes, _TEXT),
    DType: _words(DTYPES, "dtype"),
    Affine: _Form(_write_affine, _read_affine, {"$ref": "#/$defs/AffineJson"}),
    Tags: _Form(
        lambda tags: {word: _tag_value(value) for word, value in tags.entries},
        _read_tags,
        {"type": "object", "additionalProperties": _TAG},
    ),
}
"""The types with a form of their own."""
