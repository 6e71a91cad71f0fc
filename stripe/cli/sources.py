"""Inputs: which language a text is in, how it splits, and the program that it denotes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from stripe.cli.files import STDIN, printable, read_text
from stripe.cli.options import INPUT_FORMATS, InputOptions
from stripe.ir import (
    ConfigError,
    Diagnostic,
    ParsedProgram,
    Program,
    Span,
    StripeError,
    StripeWarning,
    check_magnitude,
    parse_with_spans,
    verify_structural,
)

if TYPE_CHECKING:
    from stripe.tile.shapes import Binding

SEPARATOR = "// -----"
_SEPARATOR_LINE = re.compile(r"^// -----[ \t]*$", re.MULTILINE)
_STRIPE_START = re.compile(r"\d+\s*(\[[\d,\s]*\])?\s*:")


@dataclass(frozen=True, slots=True)
class Source:
    """A text, or a part of one: empty lines stand for what comes before, so that line numbers are those of the file."""

    text: str
    name: str
    format: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program, how long it took to read, what is to be told about its text (Tile), and the places of its statements,
    where they are known (textual Stripe).
    """

    program: Program
    seconds: float
    warnings: tuple[StripeWarning, ...] = ()
    spans: Mapping[tuple[int, ...], Span] = field(default_factory=dict[tuple[int, ...], Span])


def read_source(options: InputOptions) -> Source:
    """Reads the input. Raises StripeError when it cannot be read, ConfigError when its language is unknown."""
    path = options.path
    if path is None:
        raise ConfigError("no INPUT is given", hint="name a .tile or .stripe file, or - for standard input")
    text = read_text(path)
    name = STDIN if path == "-" else printable(path)
    return Source(text, name, options.format or (_guess(text) if path == "-" else _by_suffix(path)))


def split_source(source: Source) -> tuple[Source, ...]:
    """The parts between lines `// -----`; parts that hold nothing are left out."""
    parts: list[Source] = []
    start = 0
    for end, after in [
        *((m.start(), m.end()) for m in _SEPARATOR_LINE.finditer(source.text)),
        (len(source.text),) * 2,
    ]:
        part = source.text[start:end]
        if part.strip():
            parts.append(Source("\n" * source.text.count("\n", 0, start) + part, source.name, source.format))
        start = after
    return tuple(parts)


def load_program(source: Source, options: InputOptions) -> Loaded:
    """The program that a text denotes, checked for structure. Raises StripeError with its place."""
    try:
        return _load(source, options)
    except StripeError as error:
        guessed = _guess(source.text)
        if guessed != source.format and error.line == _first_line(source.text)[0]:
            option = f"say --input-format {guessed}, or end its name in .{guessed}"
            error.hint = f"this looks like {guessed.capitalize()}: {option}"
        raise


def _load(source: Source, options: InputOptions) -> Loaded:
    if source.format == "stripe":
        if options.shapes:
            raise ConfigError("--shape is for Tile inputs; Stripe says its shapes", hint="leave --shape out")
        return _load_stripe(source)
    return _load_tile(source, options)


def read_shapes(texts: tuple[str, ...]) -> dict[str, Binding]:
    """The values of `--shape` by input."""
    from stripe.tile.shapes import parse_shape

    shapes: dict[str, Binding] = {}
    for text in texts:
        name, shape = parse_shape(text)
        if name in shapes:
            raise ConfigError(f"--shape gives '{name}' twice", hint="give each input once")
        shapes[name] = shape
    return shapes


def _load_tile(source: Source, options: InputOptions) -> Loaded:
    from stripe.tile import bind, find_warnings, lower, parse_tile, program_name

    started = time.perf_counter()
    function = bind(parse_tile(source.text, source.name), read_shapes(options.shapes))
    program = lower(function, program_name(source.name))
    return Loaded(program, time.perf_counter() - started, find_warnings(function))


def _load_stripe(source: Source) -> Loaded:
    started = time.perf_counter()
    parsed = parse_with_spans(source.text, source.name)
    found = verify_structural(parsed.program) or check_magnitude(parsed.program)
    if found:
        errors = [_placed(diagnostic, parsed, source) for diagnostic in found]
        raise _joined(sorted(errors, key=lambda error: (error.line or 0, error.col or 0)))
    return Loaded(parsed.program, time.perf_counter() - started, spans=parsed.spans)


def _placed(diagnostic: Diagnostic, parsed: ParsedProgram, source: Source) -> StripeError:
    """A finding of the verifier, where what it is about stands in the text."""
    span = parsed.spans.get(diagnostic.path)
    if diagnostic.part is not None:
        span = parsed.parts.get((diagnostic.path, diagnostic.part), span)
    where = f"block {diagnostic.name}" if diagnostic.name else None
    if span is None:
        return StripeError(diagnostic.message, path=source.name, where=where, hint=diagnostic.hint or None)
    return StripeError(
        diagnostic.message, path=source.name, line=span.line, col=span.column, where=where,
        hint=diagnostic.hint or None, source=source.text.split("\n")[span.line - 1],
        length=span.length,
    )  # fmt: skip


def _joined(errors: list[StripeError]) -> StripeError:
    """The first error, with the rest after it."""
    first, *others = errors
    return StripeError(
        first.reason, path=first.path, line=first.line, col=first.col, where=first.where, hint=first.hint,
        source=first.source, length=first.length, others=tuple(others),
    )  # fmt: skip


def _by_suffix(path: str) -> str:
    suffix = PurePath(path).suffix.removeprefix(".").lower()
    if suffix in INPUT_FORMATS:
        return suffix
    if suffix == "onnx":
        raise ConfigError("ONNX networks cannot be read yet", path=path, hint="known are .tile and .stripe")
    what = f"the suffix '.{suffix}' is unknown" if suffix else "the file has no suffix"
    raise ConfigError(
        f"{what}, so its language is", path=path, hint="say --input-format tile or --input-format stripe"
    )


def _guess(text: str) -> str:
    """Stripe begins with the number of its first statement; everything else is taken for Tile."""
    return "stripe" if _STRIPE_START.match(_first_line(text)[1]) else "tile"


def _first_line(text: str) -> tuple[int, str]:
    """The first line that is neither empty nor a comment, with its number; 0 when there is none."""
    lines = ((number, line.strip()) for number, line in enumerate(text.split("\n"), start=1))
    return next(((n, line) for n, line in lines if line and not line.startswith("//")), (0, ""))
