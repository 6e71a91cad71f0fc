"""The spelling of passes on a command line, read and printed: `fusion{a_reqs=[conv],fused_set=[conv]},dce`.

    passes  := entry {"," entry}
    entry   := [NAME ":"] PASS ["{" [option {"," option}] "}"]
    option  := KEY "=" value
    value   := "[" [value {"," value}] "]" | "{" [KEY ":" value {"," KEY ":" value}] "}" | STRING | WORD

A WORD is what JSON reads as a number, true, false or null, and any other run of letters, digits and `_ . * / + - $`
is a string; STRING is one of JSON. `=` and `:` are both taken after a KEY, since either looks right: printed are those
above. NAME is the entry's name, as in a pass list; it defaults to the name of the pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from stripe.ir import ConfigError

_WORD = re.compile(r"[\w.*/+$-]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BLANK = re.compile(r"\s*")
_MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class SpelledPass:
    """One entry as spelled: nothing is known about the pass yet. `column` counts from 1."""

    name: str
    pass_name: str
    options: dict[str, JsonValue]
    column: int


def read_passes(text: str, source: str) -> tuple[SpelledPass, ...]:
    """The entries of `text`; `source` says in errors where it stands, such as `--passes`. Raises ConfigError."""
    return _Reader(text, source).entries()


def print_pass(name: str, pass_name: str, options: dict[str, JsonValue]) -> str:
    """One entry in the spelling that `read_passes` reads back."""
    prefix = "" if name == pass_name else f"{_print_value(name)}:"
    body = ",".join(f"{key}={_print_value(value)}" for key, value in options.items())
    return f"{prefix}{pass_name}{{{body}}}" if body else f"{prefix}{pass_name}"


def _print_value(value: JsonValue) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_print_value, value))}]"
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{_print_value(key)}:{_print_value(item)}" for key, item in value.items()) + "}"
        )
    if isinstance(value, str) and _WORD.fullmatch(value) and isinstance(_read_word(value), str):
        return value
    return json.dumps(value)


def _read_word(word: str) -> JsonValue:
    try:
        return json.loads(word)
    except ValueError:
        return word


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._pos = 0

    def entries(self) -> tuple[SpelledPass, ...]:
        self._blank()
        if self._pos == len(self._text):
            raise self._error("no pass is named", "write passes as 'fusion{a_reqs=[conv]},dce'")
        found = [self._entry()]
        while self._accept(","):
            found.append(self._entry())
        if self._pos < len(self._text):
            form = f"options stand in braces, {found[-1].pass_name}{{option=value}}, and ',' stands between passes"
            raise self._error(f"unexpected '{self._text[self._pos]}'", form)
        return tuple(found)

    def _entry(self) -> SpelledPass:
        self._blank()
        column = self._pos + 1
        name = self._key("the name of a pass")
        pass_name = name
        if self._accept(":"):
            column = self._pos + 1
            pass_name = self._key("the name of a pass")
        options: dict[str, JsonValue] = {}
        if self._accept("{"):
            self._members(options, "=", "}", 0)
        return SpelledPass(name, pass_name, options, column)

    def _members(self, into: dict[str, JsonValue], sign: str, closing: str, depth: int) -> None:
        def member() -> None:
            key = self._key("the name of an option")
            if key in into:
                raise self._error(f"'{key}' stands here twice", None)
            if not (self._accept("=") or self._accept(":")):
                raise self._error(
                    f"expected '{sign}' after '{key}'", f"options are written {{{key}{sign}value}}"
                )
            into[key] = self._value(depth + 1)

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
            raise self._error(f"expected ',' or '{closing}'", None)

    def _value(self, depth: int) -> JsonValue:
        if depth > _MAX_DEPTH:
            raise self._error("nested too deeply", f"values may nest {_MAX_DEPTH} deep")
        if self._accept("["):
            items: list[JsonValue] = []
            self._separated(lambda: items.append(self._value(depth + 1)), "]")
            return items
        if self._accept("{"):
            members: dict[str, JsonValue] = {}
            self._members(members, ":", "}", depth)
            return members
        if string := self._match(_STRING):
            try:
                return json.loads(string)
            except ValueError:
                raise self._error(f"{string} is no JSON string", None) from None
        if word := self._match(_WORD):
            return _read_word(word)
        if self._text.startswith("#", self._pos):
            raise self._error("expected a value, found '#'", "tags are written without '#'")
        raise self._error("expected a value", 'a word, a number, a "text", a list [a,b] or an object {k:v}')

    def _key(self, what: str) -> str:
        self._blank()
        if string := self._match(_STRING):
            return str(_read_word(string))
        if word := self._match(_WORD):
            return word
        raise self._error(f"expected {what}", None)

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
