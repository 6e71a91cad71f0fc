"""Names with options on a command line, read and printed: `fusion{a_reqs=[conv],fused_set=[conv]},dce`.

    entries := entry {"," entry}
    entry   := [LABEL ":"] NAME ["{" [option {"," option}] "}"]
    option  := KEY "=" value
    value   := "[" [value {"," value}] "]" | "{" [KEY ":" value {"," KEY ":" value}] "}" | STRING | WORD

A WORD is what JSON reads as a number, true, false or null, and any other run of letters, digits and `_ . * / + - $`
is a string; STRING is one of JSON. `=` and `:` are both taken after a KEY, since either looks right: printed are those
above. NAME is that of a pass, a target or an engine. LABEL is the name of an entry of a pass list; it defaults to NAME.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar, get_args, get_origin

from pydantic import BaseModel, JsonValue

from stripe.config.document import Document
from stripe.config.json5 import JsonPath, JsonText, Offsets
from stripe.config.validate import validate
from stripe.ir.errors import ConfigError

_WORD = re.compile(r"[\w.*/+$-]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BLANK = re.compile(r"\s*")
_MAX_DEPTH = 50


_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Spelled:
    """One entry as spelled, its name not yet looked up. `column` counts from 1 in `text`, which is the value of the
    option `source`, such as `--passes`; `offsets` are those of the options in `text`, by their path.
    """

    label: str
    name: str
    options: dict[str, JsonValue]
    column: int
    text: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    offsets: Offsets = field(default_factory=Offsets, compare=False)

    def build(self, find: Callable[[str], type[_Model]]) -> _Model:
        """An instance of the class that `find` knows under the name. Raises ConfigError with the column."""
        shown = self.text.replace("\n", " ")
        try:
            model = find(self.name)
        except ConfigError as error:
            raise ConfigError(
                error.reason, path=self.source, line=1, col=self.column, where=error.where, hint=error.hint,
                source=shown, length=len(self.name),
            ) from None  # fmt: skip
        options = {key: _as_field(model, key, value) for key, value in self.options.items()}
        json = JsonText({self.name: options}, noted=self.offsets)
        return validate(model, Document(self.source, shown, json, (), {}), (self.name,))


def _as_field(model: type[BaseModel], key: str, value: JsonValue) -> JsonValue:
    """A value by the type of its option: a single one stands for a list of one (`a_reqs=conv` is `a_reqs=[conv]`), and
    a word that looks like a number is a text where the option takes nothing but texts.
    """
    for name, info in model.model_fields.items():
        if key not in (name, info.alias):
            continue
        if get_origin(info.annotation) is tuple:
            inner: object = get_args(info.annotation)[0]
            return [_as_text(item, inner) for item in (value if isinstance(value, list) else [value])]
        return _as_text(value, info.annotation)
    return value


def _as_text(value: JsonValue, annotation: object) -> JsonValue:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    takes_text = annotation is str and isinstance(value, (bool, int, float))
    return json.dumps(value) if takes_text else value


def read_spelled(text: str, source: str, noun: str = "pass") -> tuple[Spelled, ...]:
    """The entries of `text`, each the name of a `noun` with options; `source` is the place in errors, such as
    `--passes`. Raises ConfigError.
    """
    return _SpellingParser(text, source, noun).entries()


def read_one(text: str, source: str, noun: str) -> Spelled:
    """The only entry of `text`. Raises ConfigError."""
    first, *others = read_spelled(text, source, noun)
    if others:
        reason = f"one {noun} is due, found {1 + len(others)}"
        raise ConfigError(reason, path=source, line=1, col=others[0].column, source=text)
    return first


def print_spelled(label: str, name: str, options: Mapping[str, JsonValue]) -> str:
    """One entry in the spelling that `read_spelled` reads back."""
    prefix = "" if label == name else f"{_print_value(label)}:"
    body = ",".join(f"{key}={_print_value(value)}" for key, value in options.items())
    return f"{prefix}{name}{{{body}}}" if body else f"{prefix}{name}"


def _print_value(value: JsonValue) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_print_value, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_print_value(key)}:{_print_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, str) and _WORD.fullmatch(value) and isinstance(_read_word(value), str):
        return value
    return json.dumps(value)


def _read_word(word: str) -> JsonValue:
    try:
        return json.loads(word)
    except ValueError:
        return word


class _SpellingParser:
    def __init__(self, text: str, source: str, noun: str) -> None:
        self._text = text
        self._source = source
        self._noun = noun
        self._pos = 0
        self._offsets = Offsets()

    def entries(self) -> tuple[Spelled, ...]:
        self._blank()
        if self._pos == len(self._text):
            hint = "write passes as 'fusion{a_reqs=[conv]},dce'" if self._noun == "pass" else None
            raise self._error(f"no {self._noun} is named", hint)
        found = [self._entry()]
        while self._accept(","):
            found.append(self._entry())
        if self._pos < len(self._text):
            form = f"options stand in braces, {found[-1].name}{{option=value}}"
            hint = f"{form}, and ',' stands between passes" if self._noun == "pass" else form
            raise self._error(f"unexpected '{self._text[self._pos]}'", hint)
        return tuple(found)

    def _entry(self) -> Spelled:
        self._blank()
        column = self._pos + 1
        label = name = self._key(f"the name of a {self._noun}")
        if self._accept(":"):
            column = self._pos + 1
            name = self._key(f"the name of a {self._noun}")
        options: dict[str, JsonValue] = {}
        self._offsets = Offsets()
        self._offsets.values[name,] = column - 1
        if self._accept("{"):
            self._members(options, "=", "}", (name,))
        return Spelled(label, name, options, column, self._text, self._source, self._offsets)

    def _members(self, into: dict[str, JsonValue], sign: str, closing: str, path: JsonPath) -> None:
        def member() -> None:
            self._blank()
            start = self._pos
            key = self._key("the name of an option")
            if key in into:
                raise self._error(f"'{key}' stands here twice", "take one of them out")
            if not (self._accept("=") or self._accept(":")):
                hint = f"options are written {{{key}{sign}value}}"
                raise self._error(f"expected '{sign}' after '{key}'", hint)
            self._offsets.keys[*path, key] = start
            into[key] = self._value((*path, key))

        self._separated(member, closing)

    def _separated(self, item: Callable[[], None], closing: str) -> None:
        if self._accept(closing):
            return
        item()
        while self._accept(","):
            if self._accept(closing):
                return
            item()
        if not self._accept(closing):
            hint = f"write '{closing}' where the options or the list end"
            raise self._error(f"expected ',' or '{closing}'", hint)

    def _value(self, path: JsonPath) -> JsonValue:
        """The value at `path`, whose first part is the name of the entry."""
        self._offsets.values[path] = self._pos
        if len(path) > _MAX_DEPTH + 1:
            raise self._error("nested too deeply", f"values may nest {_MAX_DEPTH} deep")
        if self._accept("["):
            items: list[JsonValue] = []
            self._separated(lambda: items.append(self._value((*path, len(items)))), "]")
            return items
        if self._accept("{"):
            members: dict[str, JsonValue] = {}
            self._members(members, ":", "}", path)
            return members
        if string := self._match(_STRING):
            try:
                return json.loads(string)
            except ValueError:
                raise self._error(f"{string} is no JSON string", None) from None
        if word := self._match(_WORD):
            value = _read_word(word)
            if isinstance(value, float) and math.isinf(value) and not word.endswith("Infinity"):
                self._pos -= len(word)
                raise self._error("this number is too large", "the largest number is about 1.8e308")
            return value
        if self._text.startswith("#", self._pos):
            raise self._error("expected a value, found '#'", "tags are written without '#'")
        raise self._error("expected a value", 'a word, a number, a "text", a list [a,b] or an object {k:v}')

    def _key(self, noun: str) -> str:
        self._blank()
        if string := self._match(_STRING):
            return str(_read_word(string))
        if word := self._match(_WORD):
            return word
        raise self._error(f"expected {noun}", "passes are written as 'fusion{a_reqs=[conv]},dce'")

    def _blank(self) -> None:
        match = _BLANK.match(self._text, self._pos)
        self._pos = match.end() if match else self._pos

    def _accept(self, sign: str) -> bool:
        self._blank()
        if not self._text.startswith(sign, self._pos):
            return False
        self._pos += 1
        self._blank()
        return True

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self._text, self._pos)
        if match is None:
            return None
        self._pos = match.end()
        return match.group()

    def _error(self, reason: str, hint: str | None) -> ConfigError:
        """An error at the current position. (A line break becomes a blank, so that the caret stays right.)"""
        shown = self._text.replace("\n", " ")
        return ConfigError(reason, path=self._source, line=1, col=self._pos + 1, hint=hint, source=shown)
