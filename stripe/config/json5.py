"""Reads JSON5 and remembers where each key and value stands, so that later checks can point at them.

The packages for JSON5 give values without positions; `tests/hw/test_jsontext.py` compares this reader with one of them.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from pydantic import JsonValue

JsonPath = tuple[str | int, ...]

MAX_DEPTH = 100
"""Deepest nesting of lists and objects that is read."""


class JsonSyntaxError(Exception):
    """A fault in a text and its offset."""

    def __init__(self, reason: str, offset: int, hint: str | None = None, length: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset
        self.hint = hint
        self.length = length


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets of the parts of a value in its text, by path from the root."""

    keys: dict[JsonPath, int] = field(default_factory=dict[JsonPath, int])
    values: dict[JsonPath, int] = field(default_factory=dict[JsonPath, int])


@dataclass(frozen=True)
class JsonText:
    """A value and the text that it was read from, if it was read whole; or `noted`, the offsets in another text."""

    data: JsonValue
    text: str | None = None
    noted: Offsets | None = None

    @cached_property
    def offsets(self) -> Offsets:
        """The offsets of all parts, for messages: most values are read without any."""
        return self.noted or (Offsets() if self.text is None else _JsonParser(self.text).document()[1])


def parse_json5(text: str) -> JsonText:
    """Reads a whole JSON5 text (comments, trailing commas, single quotes, plain keys, hexadecimal, …).

    Beyond JSON5, a comma may be left out between two texts in a list, as in templates that write lists by loops.
    A key that occurs twice in one object is refused. Raises JsonSyntaxError.
    """
    try:
        return JsonText(_parse_plain(text), text)
    except (ValueError, RecursionError):
        return JsonText(_JsonParser(text).document()[0], text)


def value_at(value: JsonValue, path: JsonPath) -> JsonValue:
    """The value at `path` in `value`. Raises KeyError when there is nothing."""
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            raise KeyError(step)
    return value


_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(
    r"[+-]?(?:0[xX](?P<hex>[0-9a-fA-F]+)|Infinity|NaN"
    r"|(?P<int>0|[1-9]\d*)(?![\d.eE])|(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)",
    re.ASCII,
)
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_PLAIN_CHARACTERS = {'"': re.compile(r'[^"\\\n\r]*'), "'": re.compile(r"[^'\\\n\r]*")}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_ENDS_STRING = re.compile(r"[ \t]*(?:[:,\]}\n\r]|$)")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_STRAIGHT = dict.fromkeys("“”„‟″«»", '"') | dict.fromkeys("‘’‚‛′", "'")


_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
_LAST_COMMA = re.compile(r",([ \t\r\n]*[\]}])")
_LONE_COMMA = re.compile(r"[\[{][ \t\r\n]*,")
_LEVELS = {"[": 1, "{": 1, "]": -1, "}": -1}


def _parse_plain(text: str) -> JsonValue:
    """The value of a text that is JSON but for commas before closing brackets, by the standard library's reader, which
    is ten times faster. Raises ValueError for all texts on which the two readers may differ.
    """
    if "//" in text or "/*" in text or "\\u" in text:
        raise ValueError
    parts = _STRING.split(text)
    structure = "\0".join(parts[::2])
    depth = max(accumulate(_LEVELS[char] for char in structure if char in _LEVELS), default=0)
    if structure.count("\0") != len(parts) // 2 or depth >= MAX_DEPTH or _LONE_COMMA.search(structure):
        raise ValueError
    parts[::2] = _LAST_COMMA.sub(r"\1", structure).split("\0")
    return json.loads(
        "".join(parts),
        object_pairs_hook=_without_repetition,
        parse_float=_finite,
        parse_int=_short,
        parse_constant=_finite,
    )


def _without_repetition(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError
    return number


def _short(text: str) -> int:
    if len(text) > 100:
        raise ValueError
    return int(text)


_SYNTAX = 'objects are {"key": value, ...}, lists [value, ...]'


class _JsonParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._string: tuple[int, int] | None = None  # the last string read, for better errors
        self._keys: dict[JsonPath, int] = {}
        self._values: dict[JsonPath, int] = {}

    def document(self) -> tuple[JsonValue, Offsets]:
        data = self._value(())
        if self._peek():
            raise self._unexpected("the end of the file")
        return data, Offsets(self._keys, self._values)

    def _peek(self) -> str:
        match = _SPACE.match(self._text, self._pos)
        self._pos = match.end() if match else self._pos
        if self._text.startswith("/*", self._pos):
            raise JsonSyntaxError("this comment has no end", self._pos, "write */ where it ends", 2)
        return self._text[self._pos : self._pos + 1]

    def _value(self, path: JsonPath) -> JsonValue:
        char = self._peek()
        if len(path) >= MAX_DEPTH:
            hint = "no configuration needs that"
            raise JsonSyntaxError(f"nested deeper than {MAX_DEPTH} levels", self._pos, hint)
        self._values[path] = self._pos
        if char == "{":
            return self._object(path)
        if char == "[":
            items: list[JsonValue] = []
            self._pos += 1
            while self._peek() != "]":
                items.append(self._value((*path, len(items))))
                # The slides' loops over units write no commas: in a list, one text may follow another without.
                if not (isinstance(items[-1], str) and self._peek() in ('"', "'")):
                    self._separator("]")
            self._pos += 1
            return items
        if char in ('"', "'"):
            return self._quoted(char)
        if number := _NUMBER.match(self._text, self._pos):
            return self._number(number)
        if (word := _NAME.match(self._text, self._pos)) and word.group() in _WORDS:
            self._pos = word.end()
            return _WORDS[word.group()]
        raise self._unexpected("a value")

    def _number(self, match: re.Match[str]) -> int | float:
        if len(match.group()) > 400:
            hint = "numbers have at most 400 characters"
            raise JsonSyntaxError("this number is too long", match.start(), hint, len(match.group()))
        if _NAME.match(self._text, match.end()) or self._text[match.end() : match.end() + 1].isdigit():
            reason = f"'{match.group()}' goes on with a character that numbers do not have"
            raise JsonSyntaxError(reason, match.end(), "put quotes around a text")
        self._pos = match.end()
        negative = match.group().startswith("-")
        digits = match.group("hex") or match.group("int")
        if digits is None:
            number = float(match.group())
            if math.isinf(number) and "Infinity" not in match.group():
                hint = "the largest number is about 1.8e308"
                raise JsonSyntaxError("this number is too large", match.start(), hint, len(match.group()))
            return number
        value = int(digits, 16 if match.group("hex") else 10)
        return -value if negative else value

    def _object(self, path: JsonPath) -> JsonValue:
        items: dict[str, JsonValue] = {}
        self._pos += 1
        while (char := self._peek()) != "}":
            start = self._pos
            if char in ('"', "'"):
                key = self._quoted(char)
            elif plain := _NAME.match(self._text, start):
                key, self._pos = plain.group(), plain.end()
            else:
                raise self._unexpected("a key")
            if key in items:
                reason = f"the key '{key}' stands here twice"
                raise JsonSyntaxError(reason, start, "take one of them out", self._pos - start)
            inner = (*path, key)
            self._keys[inner] = start
            if self._peek() != ":":
                raise self._unexpected(f"':' after the key '{key}'")
            self._pos += 1
            items[key] = self._value(inner)
            self._separator("}")
        self._pos += 1
        return items

    def _separator(self, closing: str) -> None:
        char = self._peek()
        if char == ",":
            self._pos += 1
        elif char != closing:
            raise self._unexpected(f"',' or '{closing}'")

    def _quoted(self, quote: str) -> str:
        start = self._pos
        self._string = (start, start)
        self._pos += 1
        parts: list[str] = []
        while True:
            plain = _PLAIN_CHARACTERS[quote].match(self._text, self._pos)
            if plain:
                parts.append(plain.group())
                self._pos = plain.end()
            self._string = (start, self._pos)
            char = self._text[self._pos : self._pos + 1]
            if char == quote:
                self._pos += 1
                try:  # escapes may give a character beyond 16 bits in two halves
                    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
                except UnicodeDecodeError:
                    reason = "an escape '\\u' in this string gives half a character"
                    raise JsonSyntaxError(reason, start) from None
            if char != "\\":
                hint = f"write {quote} where it ends; it cannot go on in the next line"
                raise self._typographic() or JsonSyntaxError("this string has no end", start, hint)
            parts.append(self._escape())

    def _escape(self) -> str:
        start = self._pos
        char = self._text[start + 1 : start + 2]
        if char in ("x", "u"):
            length = 2 if char == "x" else 4
            digits = self._text[start + 2 : start + 2 + length]
            if not re.fullmatch(f"[0-9a-fA-F]{{{length}}}", digits):
                raise JsonSyntaxError(f"'\\{char}' wants {length} hexadecimal digits", start, length=2)
            self._pos += 2 + length
            return chr(int(digits, 16))
        self._pos += 3 if self._text.startswith("\r\n", start + 1) else 2
        if char in ("\n", "\r", "\u2028", "\u2029"):
            return ""
        return _ESCAPES.get(char, char)

    def _typographic(self) -> JsonSyntaxError | None:
        """An error about a typographic quote in the last string, which then did not end where its writer thought."""
        start, end = self._string or (0, 0)
        for offset in range(start, end):
            is_quote = _STRAIGHT.get(self._text[offset]) == self._text[start]
            if is_quote and _ENDS_STRING.match(self._text, offset + 1):
                return _typographic_error(self._text[offset], offset)
        return None

    def _unexpected(self, wanted: str) -> JsonSyntaxError:
        char = self._text[self._pos : self._pos + 1]
        if char in _STRAIGHT:
            return _typographic_error(char, self._pos)
        if hidden := self._typographic():
            return hidden
        if char == "…":
            hint = "it stands for something left out; fill that in"
            return JsonSyntaxError("an ellipsis '…' (U+2026) is no part of JSON", self._pos, hint)
        if not char:
            hint = "is a bracket or a quote left open?"
            return JsonSyntaxError(f"the text ends where {wanted} should be", self._pos, hint)
        word = _NAME.match(self._text, self._pos)
        found = word.group() if word else char
        hint = f'strings take quotes: "{found}"' if word and wanted == "a value" else _SYNTAX
        shown = f"'{found}'" if found.isprintable() else f"the character U+{ord(found):04X}"
        return JsonSyntaxError(f"expected {wanted}, found {shown}", self._pos, hint, len(found))


def _typographic_error(char: str, offset: int) -> JsonSyntaxError:
    straight = _STRAIGHT[char]
    reason = f"a typographic quote {char} (U+{ord(char):04X}) stands where a straight {straight} belongs"
    return JsonSyntaxError(reason, offset, f"write {straight}")
