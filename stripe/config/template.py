"""Templates of configuration files: rendered by Jinja, then read as JSON5 with the places in the template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from jinja2 import TemplateNotFound, TemplateSyntaxError, UndefinedError, meta
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError, TemplateError

from stripe.config.arithmetic import LimitError
from stripe.config.document import Document, Piece, make_document, read_text
from stripe.config.model import Scalar
from stripe.config.sandbox import FILTER_NAMES, TEST_NAMES, ConfigEnvironment
from stripe.ir.errors import ConfigError, did_you_mean

# Errors of expressions in a template, beside Jinja's own.
_TEMPLATE_FAULTS = (
    TemplateError, LimitError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RecursionError,
    SyntaxError, MemoryError, OSError,
)  # fmt: skip


Parameter: TypeAlias = "Scalar | list[Parameter] | Mapping[Any, Parameter] | None"
"""A value that a template sees."""


def render_json(path: Path, parameters: Mapping[str, Scalar]) -> Document:
    """The template at `path` rendered and read as JSON5. Raises ConfigError with the template's line."""
    pieces, sources = TemplateFile(path).pieces(parameters)
    placed: list[tuple[int, Piece]] = []
    offset = 0
    for piece in pieces:
        placed.append((offset, piece))
        offset += len(piece)
    return make_document(str(path), "".join(pieces), tuple(placed), sources)


def free_names(path: Path) -> frozenset[str]:
    """The template's undeclared variables: its parameters, without those of files that it includes."""
    return _free_names(path, read_text(path))


@lru_cache(maxsize=64)
def _free_names(path: Path, source: str) -> frozenset[str]:
    environment = ConfigEnvironment(path.parent, path.name, source)
    try:
        names = meta.find_undeclared_variables(environment.parse(source))
    except _TEMPLATE_FAULTS as error:
        _raise_config_error(error, path, {path.name: source}, {})
    return frozenset(names) - environment.globals.keys()


def template_files(path: Path) -> tuple[Path, ...]:
    """The template and the files that it may include, those that they include as well: all of the folder where a name
    is computed.
    """
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found[file] = None
        for name in _included(file, read_text(file)):
            waiting += sorted(path.parent.iterdir()) if name is None else [path.parent / name]
    return path, *sorted(found.keys() - {path})


def includes_files(path: Path) -> bool:
    """Whether a template reads other files, whose parameters are not known before rendering."""
    return bool(_included(path, read_text(path)))


@lru_cache(maxsize=64)
def _included(path: Path, source: str) -> tuple[str | None, ...]:
    """The files that a template includes, imports or extends, however that is spelled; None for a name that is
    computed."""
    try:
        tree = ConfigEnvironment(path.parent, path.name, source).parse(source)
    except _TEMPLATE_FAULTS:
        return ()  # rendering says why
    return tuple(meta.find_referenced_templates(tree))


@lru_cache(maxsize=1024)
def names_in(expression: str) -> frozenset[str]:
    """The names that a Jinja expression uses. Raises ConfigError, without a place, when it is none."""
    environment = ConfigEnvironment(Path(), "expression", "")
    try:
        tree = environment.parse("{{" + expression + "}}")
    except _TEMPLATE_FAULTS as error:
        raise ConfigError(f"'{expression}' is no expression: {_reason(error, {})[0]}") from None
    return frozenset(meta.find_undeclared_variables(tree)) - environment.globals.keys()


def evaluate(expression: str, parameters: Mapping[str, Parameter]) -> Scalar:
    """The value of a Jinja expression, as templates compute it. Raises ConfigError, without a place."""
    try:
        environment, compiled = _compiled(expression)
        environment.begin()
        value = compiled(**parameters)
        environment.sized(value)
    except _TEMPLATE_FAULTS as error:
        raise ConfigError(f"'{expression}' cannot be computed: {_reason(error, parameters)[0]}") from None
    if not isinstance(value, (bool, int, float, str)):
        raise ConfigError(f"'{expression}' gives no number or text")
    return int(value) if isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> tuple[ConfigEnvironment, TemplateExpression]:
    environment = ConfigEnvironment(Path(), "expression", "")
    return environment, environment.compile_expression(expression, undefined_to_none=False)


class TemplateFile:
    """A template that is compiled once for many renderings; each has the whole budget of work."""

    def __init__(self, path: Path) -> None:
        source = read_text(path)
        self.path = path
        self._environment = ConfigEnvironment(path.parent, path.name, source)

    def render(self, parameters: Mapping[str, Parameter]) -> str:
        """The text with `parameters` in scope. Raises ConfigError with the template's line."""
        return "".join(self.pieces(parameters)[0])

    def pieces(self, parameters: Mapping[str, Parameter]) -> tuple[list[Piece], Mapping[str, str]]:
        """The parts of the text, and the sources of the files that they come from."""
        path, environment = self.path, self._environment
        environment.begin()
        pieces: list[Piece] = []
        try:
            template = environment.get_template(path.name)
            for chunk in template.root_render_func(template.new_context(dict(parameters))):
                # a call of a macro loses its places; its output counts to the line before
                line = pieces[-1].line if pieces else 1
                pieces.append(chunk if isinstance(chunk, Piece) else Piece.of(chunk, path.name, line, False))
        except _TEMPLATE_FAULTS as error:
            _raise_config_error(error, path, environment.sources, parameters)
        return pieces, environment.sources


def _raise_config_error(
    error: BaseException, path: Path, sources: Mapping[str, str], parameters: Mapping[str, Parameter]
) -> NoReturn:
    reason, hint = _reason(error, parameters)
    if isinstance(error, TemplateSyntaxError):
        known = error.name in sources  # while names are collected, Jinja calls the template `<introspection>`
        name, line = error.name if known and error.name else path.name, error.lineno
    else:
        # the innermost place in a template: compiled templates know which line each of theirs comes from
        traceback = error.__traceback__
        place: tuple[str, int] | None = None
        while traceback is not None:
            template = traceback.tb_frame.f_globals.get("__jinja_template__")
            if template is not None and template.name is not None:
                place = template.name, template.get_corresponding_lineno(traceback.tb_lineno)
            traceback = traceback.tb_next
        name, line = place or (path.name, None)
    lines = sources.get(name, "").splitlines()
    source = lines[line - 1] if line is not None and 0 < line <= len(lines) else None
    raise ConfigError(reason, path=str(path.with_name(name)), line=line, hint=hint, source=source) from None


_UNDEFINED = re.compile(r"'(\w+)' is undefined")
_UNSAFE = re.compile(r"access to attribute '(.*)' of '(.*)' object is unsafe")
_NO_FILTER = re.compile(r"No (filter|test) named '(.*)'")


def _reason(error: BaseException, parameters: Mapping[str, Parameter]) -> tuple[str, str | None]:
    """The reason and the hint for a fault in a template."""
    text = str(error)
    if isinstance(error, UndefinedError) and (match := _UNDEFINED.match(text)):
        known = f" (parameters: {', '.join(sorted(parameters))})" if parameters else ""
        hint = did_you_mean(match[1], parameters, f"give it with -D {match[1]}=VALUE{known}")
        return f"'{match[1]}' is not defined", hint
    if isinstance(error, SecurityError):
        match = _UNSAFE.match(text)
        reason = f"'.{match[1]}' reaches for Python" if match else text
        return f"{reason}: a template may compute numbers and texts, nothing else", "give the value with -D"
    if isinstance(error, TemplateNotFound):
        return f"there is no '{error.message}' in the template's folder", "name a file that lies beside it"
    if isinstance(error, TemplateSyntaxError) and (match := _NO_FILTER.match(text)):
        known = FILTER_NAMES if match[1] == "filter" else TEST_NAMES
        hint = did_you_mean(match[2], known, f"there are {', '.join(sorted(known))}")
        return f"templates have no {match[1]} '{match[2]}'", hint
    if isinstance(error, TemplateSyntaxError):
        return _lowered(error.message or text), "see Jinja's manual for its syntax"
    for kind, reason, hint in _KINDS:
        if isinstance(error, kind):
            return reason or text, hint
    return _lowered(text) or type(error).__name__, "templates compute with numbers, texts, and lists of these"


_KINDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (ZeroDivisionError, "division by zero", "test the divisor with {% if %} first"),
    (
        RecursionError,
        "nested too deeply: does a file include itself, or a macro call itself, without end?",
        "nest no more than some 50 levels",
    ),
    ((SyntaxError, MemoryError), "the template is nested too deeply", "nest no more than 20 loops"),
    (OverflowError, "a number is too large", "stay below 1e308"),
    (LimitError, "", "make the template smaller"),
)
"""Reasons and hints for faults in templates; without a reason it is that of the error."""


def _lowered(text: str) -> str:
    """The first line of a message of Jinja's, as messages here begin."""
    first = text.split("\n", 1)[0]
    return first[:1].lower() + first[1:]
