"""Configuration files: hardware models, pass lists and what belongs to them. Rendered by Jinja, then read as JSON5.

`render_json` gives a `Document`: the data, and for every part of it the place in the template that it came from.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from jinja2 import TemplateNotFound, TemplateSyntaxError, UndefinedError, meta
from jinja2.exceptions import SecurityError, TemplateError
from pydantic import JsonValue

from stripe.config.json5 import JsonPath, JsonSyntaxError, JsonText, format_path, parse_json5, value_at
from stripe.config.sandbox import MAX_SOURCE, ConfigEnvironment, LimitError, Piece
from stripe.ir.errors import ConfigError, closest

Scalar = bool | int | float | str
"""A value of a parameter."""

# What an expression in a template may raise by itself, beside Jinja's own errors.
_TEMPLATE_FAULTS = (
    TemplateError, LimitError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RecursionError,
    SyntaxError, MemoryError, OSError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration text, its data, and where everything comes from.

    `pieces` are the parts of `text` with their offsets, in order; empty when the text is the file itself.
    """

    path: str
    text: str
    json: JsonText
    pieces: tuple[tuple[int, Piece], ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict[str, str])

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
        offset = self.json.keys.get(where) if on_key else None
        nearest = where
        while offset is None and (offset := self.json.values.get(nearest)) is None and nearest:
            nearest = nearest[:-1]
        return self._error_at(reason, offset, hint, where=format_path(where))

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
            name, line = self._origin(offset)
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

    def _origin(self, offset: int) -> tuple[str, int]:
        start, piece = self.pieces[max(0, bisect_right(self.pieces, offset, key=lambda entry: entry[0]) - 1)]
        return piece.name, piece.line + (piece.count("\n", 0, offset - start) if piece.exact else 0)


def read_text(path: Path) -> str:
    """The text of a configuration file. Raises ConfigError where it cannot be read, is not UTF-8 or too long."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        hint = _similar_file(path)
        raise ConfigError("there is no such file", path=str(path), hint=hint) from None
    except IsADirectoryError:
        raise ConfigError("this is a directory, not a file", path=str(path)) from None
    except UnicodeDecodeError as error:
        reason = f"this is not UTF-8 text (byte {error.start} is 0x{error.object[error.start]:02x})"
        raise ConfigError(reason, path=str(path)) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot be read: {getattr(error, 'strerror', None) or error}", path=str(path)
        ) from None
    if "\0" in text:
        raise ConfigError(
            "this is a binary file", path=str(path), line=text.count("\n", 0, text.index("\0")) + 1
        )
    if len(text) > MAX_SOURCE:
        raise ConfigError(f"the file has {len(text)} characters, more than {MAX_SOURCE}", path=str(path))
    return text.replace("\r\n", "\n")


def _similar_file(path: Path) -> str | None:
    """The file beside `path` that is called most like it; what stands after the first point does not count."""
    if not path.parent.is_dir():
        return f"there is no folder '{path.parent}' either"
    names = {other.name.split(".")[0]: other.name for other in sorted(path.parent.iterdir())}
    near = closest(path.name.split(".")[0], names)
    return f"did you mean '{path.with_name(names[near])}'?" if near else None


def render(path: Path, parameters: Mapping[str, Scalar]) -> str:
    """The text of the template at `path` with `parameters` in scope. Raises ConfigError with the template's line."""
    return "".join(_render_pieces(path, read_text(path), parameters)[0])


def render_json(path: Path, parameters: Mapping[str, Scalar]) -> Document:
    """The template at `path` rendered and read as JSON5. Raises ConfigError with the template's line."""
    pieces, sources = _render_pieces(path, read_text(path), parameters)
    placed: list[tuple[int, Piece]] = []
    offset = 0
    for piece in pieces:
        placed.append((offset, piece))
        offset += len(piece)
    return _document(str(path), "".join(pieces), tuple(placed), sources)


def read_json(path: Path) -> Document:
    """The JSON5 file at `path`, which is no template. Raises ConfigError."""
    return parse_document(read_text(path), str(path))


def parse_document(text: str, path: str) -> Document:
    """A JSON5 text that is no template; `path` is its name in errors. Raises ConfigError."""
    return _document(path, text, (), {})


def _document(
    path: str, text: str, pieces: tuple[tuple[int, Piece], ...], sources: Mapping[str, str]
) -> Document:
    if not text.strip():
        raise ConfigError("there is nothing in the file but blanks and comments", path=path)
    try:
        return Document(path, text, parse_json5(text), pieces, sources)
    except JsonSyntaxError as error:
        raise Document(path, text, JsonText(None), pieces, sources).syntax_error(error) from None


def free_names(path: Path) -> frozenset[str]:
    """The names that a template takes from outside: its parameters. (Not those of files that it includes.)"""
    source = read_text(path)
    environment = ConfigEnvironment(path.parent, path.name, source)
    try:
        return (
            frozenset(meta.find_undeclared_variables(environment.parse(source))) - environment.globals.keys()
        )
    except _TEMPLATE_FAULTS as error:
        _raise_config_error(error, path, {path.name: source}, {})


def names_in(expression: str) -> frozenset[str]:
    """The names that a Jinja expression uses. Raises ConfigError, without a place, when it is none."""
    environment = ConfigEnvironment(Path(), "expression", "")
    try:
        tree = environment.parse("{{" + expression + "}}")
    except _TEMPLATE_FAULTS as error:
        raise ConfigError(f"'{expression}' is no expression: {error}") from None
    return frozenset(meta.find_undeclared_variables(tree)) - environment.globals.keys()


def evaluate(expression: str, parameters: Mapping[str, Scalar]) -> Scalar:
    """The value of a Jinja expression, as templates compute it. Raises ConfigError, without a place."""
    environment = ConfigEnvironment(Path(), "expression", "")
    try:
        value = environment.compile_expression(expression, undefined_to_none=False)(**parameters)
        environment.sized(value)
    except _TEMPLATE_FAULTS as error:
        raise ConfigError(f"'{expression}' cannot be computed: {_reason(error, parameters)[0]}") from None
    if not isinstance(value, (bool, int, float, str)):
        raise ConfigError(f"'{expression}' gives no number or text")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _render_pieces(
    path: Path, source: str, parameters: Mapping[str, Scalar]
) -> tuple[list[Piece], Mapping[str, str]]:
    environment = ConfigEnvironment(path.parent, path.name, source)
    pieces: list[Piece] = []
    try:
        template = environment.get_template(path.name)
        for chunk in template.root_render_func(template.new_context(dict(parameters))):
            # a call of a macro loses its places; what it wrote counts to the line before
            line = pieces[-1].line if pieces else 1
            pieces.append(chunk if isinstance(chunk, Piece) else Piece.of(chunk, path.name, line, False))
    except _TEMPLATE_FAULTS as error:
        _raise_config_error(error, path, environment.sources, parameters)
    return pieces, environment.sources


def _raise_config_error(
    error: BaseException, path: Path, sources: Mapping[str, str], parameters: Mapping[str, Scalar]
) -> NoReturn:
    reason, hint = _reason(error, parameters)
    if isinstance(error, TemplateSyntaxError):
        known = error.name in sources  # while names are collected, Jinja calls the template `<introspection>`
        name, line = error.name if known and error.name else path.name, error.lineno
    else:
        name, line = _template_line(error.__traceback__) or (path.name, None)
    lines = sources.get(name, "").splitlines()
    source = lines[line - 1] if line is not None and 0 < line <= len(lines) else None
    raise ConfigError(reason, path=str(path.with_name(name)), line=line, hint=hint, source=source) from None


def _template_line(traceback: TracebackType | None) -> tuple[str, int] | None:
    """The innermost place in a template: compiled templates know which line each of theirs comes from."""
    place: tuple[str, int] | None = None
    while traceback is not None:
        template = traceback.tb_frame.f_globals.get("__jinja_template__")
        if template is not None and template.name is not None:
            place = template.name, template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


_UNDEFINED = re.compile(r"'(\w+)' is undefined")
_UNSAFE = re.compile(r"access to attribute '(.*)' of '(.*)' object is unsafe")
_NO_FILTER = re.compile(r"No (filter|test) named '(.*)'")


def _reason(error: BaseException, parameters: Mapping[str, Scalar]) -> tuple[str, str | None]:
    """What a fault in a template means to the one who wrote it, and what to do."""
    text = str(error)
    if isinstance(error, UndefinedError) and (match := _UNDEFINED.match(text)):
        return f"'{match[1]}' is not defined", _undefined_hint(match[1], parameters)
    if isinstance(error, SecurityError):
        match = _UNSAFE.match(text)
        reason = f"'.{match[1]}' reaches for Python" if match else text
        return f"{reason}: a template may compute numbers and texts, nothing else", None
    if isinstance(error, TemplateNotFound):
        return f"there is no '{error.message}' in the template's folder", None
    if isinstance(error, TemplateSyntaxError) and (match := _NO_FILTER.match(text)):
        return f"templates have no {match[1]} '{match[2]}'", None
    if isinstance(error, ZeroDivisionError):
        return "division by zero", None
    if isinstance(error, RecursionError):
        return "nested too deeply: does a file include itself, or a macro call itself, without end?", None
    if isinstance(error, (SyntaxError, MemoryError)):
        return f"the template is nested too deeply ({error})", None
    return (text[:1].lower() + text[1:]) or type(error).__name__, None


def _undefined_hint(name: str, parameters: Mapping[str, Scalar]) -> str:
    near = closest(name, parameters)
    if near:
        return f"did you mean '{near}'?"
    known = f" (parameters: {', '.join(sorted(parameters))})" if parameters else ""
    return f"give it with -D {name}=VALUE{known}"
