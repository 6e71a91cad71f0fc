"""Templates of configuration files: rendered by Jinja, then read as JSON5 with the places in the template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from jinja2 import TemplateNotFound, TemplateSyntaxError, UndefinedError, meta
from jinja2.exceptions import SecurityError, TemplateError

from stripe.config.document import Document, Piece, make_document, read_text
from stripe.config.model import Scalar
from stripe.config.sandbox import ConfigEnvironment, LimitError
from stripe.ir.errors import ConfigError, did_you_mean

# What an expression in a template may raise by itself, beside Jinja's own errors.
_TEMPLATE_FAULTS = (
    TemplateError, LimitError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RecursionError,
    SyntaxError, MemoryError, OSError,
)  # fmt: skip


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
    return make_document(str(path), "".join(pieces), tuple(placed), sources)


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
    known = f" (parameters: {', '.join(sorted(parameters))})" if parameters else ""
    return did_you_mean(name, parameters, f"give it with -D {name}=VALUE{known}")
