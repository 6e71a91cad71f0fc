"""Configuration as JSON5 with the place of each part: in a file, or in the template that it was rendered from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from stripe.config.json5 import JsonPath, JsonSyntaxError, JsonText, parse_json5, value_at
from stripe.ir.errors import ConfigError, closest
from stripe.ir.text.json_place import json_path

MAX_SOURCE = 1_000_000
"""Characters of a configuration file."""


class Piece(str):
    """A piece of output that knows its origin: the template and line where it starts.

    `exact` tells that its line breaks stand in the template; else all of it comes from one expression.
    """

    __slots__ = ("exact", "line", "name")
    name: str
    line: int
    exact: bool

    @staticmethod
    def of(text: str, name: str, line: int, exact: bool) -> Piece:
        """`text`, from line `line` of the file `name`; `exact` where it stands there letter by letter."""
        piece = Piece(text)
        piece.name, piece.line, piece.exact = name, line, exact
        return piece

    def __str__(self) -> str:
        return self  # Jinja applies str(), which would lose the origin


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration text, its data, and where everything comes from.

    `pieces` are the parts of `text` with their offsets, in order; empty when the text is the file itself.
    """

    path: str
    text: str
    json: JsonText
    pieces: tuple[tuple[int, Piece], ...]
    sources: Mapping[str, str]

    @property
    def data(self) -> JsonValue:
        return self.json.data

    def at(self, path: JsonPath) -> JsonValue:
        """The value at `path`. Raises KeyError when there is none."""
        return value_at(self.data, path)

    def error(
        self, reason: str, where: JsonPath, hint: str | None = None, *, on_key: bool = False
    ) -> ConfigError:
        """An error about the value (or the key) at `where`, or about the nearest part that exists."""
        offset = self.json.offsets.keys.get(where) if on_key else None
        nearest = where
        while offset is None and (offset := self.json.offsets.values.get(nearest)) is None and nearest:
            nearest = nearest[:-1]
        return self._error_at(reason, offset, hint, where=json_path(where))

    def syntax_error(self, error: JsonSyntaxError) -> ConfigError:
        """An error in the text, before there are data."""
        return self._error_at(error.reason, error.offset, error.hint, length=error.length)

    def _error_at(
        self, reason: str, offset: int | None, hint: str | None, where: str | None = None, length: int = 1
    ) -> ConfigError:
        if offset is None:
            return ConfigError(reason, path=self.path, where=where, hint=hint)
        start = self.text.rfind("\n", 0, offset) + 1
        shown = self.text[start:].split("\n", 1)[0].rstrip("\r")
        column = offset - start + 1
        path, line, col = self.path, self.text.count("\n", 0, offset) + 1, column
        if self.pieces:
            number = bisect_right(self.pieces, offset, key=lambda entry: entry[0]) - 1
            begin, piece = self.pieces[max(0, number)]
            name, line = piece.name, piece.line
            line += piece.count("\n", 0, offset - begin) if piece.exact else 0
            path = str(Path(self.path).with_name(name))
            lines = self.sources.get(name, "").splitlines()
            # a line without tags is the same before and after rendering, and so is its column
            col = column if line <= len(lines) and lines[line - 1] == shown else None
        return ConfigError(
            reason,
            path=path,
            line=line,
            col=col,
            where=where,
            hint=hint,
            source=shown,
            caret=column,
            length=length,
        )


def read_text(path: Path) -> str:
    """The text of a configuration file. Raises ConfigError where it cannot be read, is not UTF-8 or too long."""
    try:
        with path.open("rb") as stream:
            text = stream.read(4 * MAX_SOURCE + 4).decode("utf-8-sig")
    except FileNotFoundError:
        hint = _similar_file(path)
        raise ConfigError("there is no such file", path=str(path), hint=hint) from None
    except IsADirectoryError:
        reason = "this is a directory, not a file"
        raise ConfigError(reason, path=str(path), hint="name one file in it") from None
    except UnicodeDecodeError as error:
        reason = f"this is not UTF-8 text (byte {error.start} is 0x{error.object[error.start]:02x})"
        raise ConfigError(reason, path=str(path), hint="save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ConfigError(reason, path=str(path), hint="name a file that you may read") from None
    if "\0" in text:
        raise ConfigError(
            "this is a binary file",
            path=str(path),
            line=text.count("\n", 0, text.index("\0")) + 1,
            hint="configuration is JSON, a text",
        )
    if len(text) > MAX_SOURCE:
        reason = f"the file has more than {MAX_SOURCE} characters"
        raise ConfigError(reason, path=str(path), hint="make it smaller")
    return text.replace("\r\n", "\n")


def _similar_file(path: Path) -> str | None:
    """The file beside `path` that is called most like it; suffixes do not count."""
    if not path.parent.is_dir():
        return f"there is no folder '{path.parent}' either"
    names = {other.name.split(".")[0]: other.name for other in sorted(path.parent.iterdir())}
    near = closest(path.name.split(".")[0], names)
    return f"did you mean '{path.with_name(names[near])}'?" if near else None


def read_json(path: Path) -> Document:
    """The JSON5 file at `path`, which is no template. Raises ConfigError."""
    return parse_document(read_text(path), str(path))


def parse_document(text: str, path: str) -> Document:
    """A JSON5 text that is no template; `path` is its name in errors. Raises ConfigError."""
    return make_document(path, text, (), {})


def make_document(
    path: str, text: str, pieces: tuple[tuple[int, Piece], ...], sources: Mapping[str, str]
) -> Document:
    """The document of a text that is rendered from `pieces`. Raises ConfigError."""
    if not text.strip():
        reason = "there is nothing in the file but blanks and comments"
        raise ConfigError(reason, path=path, hint="JSON begins with {")
    try:
        return Document(path, text, parse_json5(text), pieces, sources)
    except JsonSyntaxError as error:
        raise Document(path, text, JsonText(None), pieces, sources).syntax_error(error) from None
