"""Programs from files and texts, through the registry of front ends."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TypeAlias

from stripe.api.arguments import require
from stripe.frontends.files import checked_text, first_line, printable, read_file
from stripe.frontends.frontend import FrontEnd, ReadOptions, Source
from stripe.frontends.registry import by_beginning, by_suffix, find_front_end, front_ends, languages
from stripe.garbage import collected_seldom
from stripe.ir import ConfigError, Program, check_magnitude, verify_structural
from stripe.ir.errors import combine, did_you_mean
from stripe.pipeline.checks.claims import at_block, require_claims

Shapes: TypeAlias = Mapping[str, str | Sequence[int]]
"""Shapes of Tile inputs: sizes, as `(128, 20)`, or sizes with a dtype, as `"128x20:fp16"`."""


def read(
    path: str | os.PathLike[str], *, language: str | None = None, shapes: Shapes | None = None
) -> Program:
    """The program in a file, whose suffix tells the language (`.tile`, `.stripe`, `.json`, `.onnx`) unless it is given.

    `shapes` are for inputs of a Tile function that says none. Warnings about the source are Python's UserWarning.
    Raises StripeError with the place of each error, ConfigError for an unknown language.
    """
    name = os.fspath(require(path, (str, os.PathLike), "the path of a file", "stripe.parse takes a text"))
    if language is None:
        front_end = by_suffix(PurePath(name).suffix)
        if front_end is None:
            suffixes = ", ".join(suffix for known in front_ends() for suffix in known.suffixes)
            raise ConfigError(
                "the language is unknown", path=printable(name),
                hint=f"the suffixes are {suffixes}; or give language=, one of {', '.join(languages())}",
            )  # fmt: skip
    else:
        front_end = _front_end(language)
    return _load(front_end, read_file(name), printable(name), shapes)


def parse(
    text: str, *, language: str | None = None, shapes: Shapes | None = None, name: str = "<text>"
) -> Program:
    """The program of a text; its first line tells the language unless it is given. `name` stands in messages, and names
    the program of a Tile function. Raises as `read` does.
    """
    require(text, str, "the text of a program", "stripe.read takes a file")
    front_end = by_beginning(first_line(text)[1]) if language is None else _front_end(language)
    return _load(front_end, text.encode("utf-8", "surrogatepass"), name, shapes)


def check(program: Program) -> None:
    """Checks a program that did not come from a front end: its structure, then its meaning.

    Raises StripeError with all that is wrong: accesses out of bounds, several writers of an element, reads of elements
    that nothing wrote; missing dependences, buffers at one address. A property that cannot be decided within the limits
    of isl is a Python UserWarning.
    """
    from stripe.pipeline.checks.proof import require_sound

    require_claims(require_structure(program), None)
    require_sound(
        program, lambda text: warnings.warn(text.strip(), stacklevel=4), program.name or "the program"
    )


def require_structure(program: Program) -> Program:
    """The program itself. Raises TypeError for other values, StripeError with each violated rule of the structure."""
    require(program, Program, "a Program", "stripe.read and stripe.parse give one")
    if found := verify_structural(program) or check_magnitude(program):
        raise combine(map(at_block, found))
    return program


def _front_end(language: str) -> FrontEnd:
    try:
        return find_front_end(language)
    except KeyError:
        known = f"the languages are {', '.join(languages())}"
        hint = did_you_mean(language, languages(), known)
        raise ConfigError(f"unknown language '{language}'", hint=hint) from None


def _load(front_end: FrontEnd, data: bytes, name: str, shapes: Shapes | None) -> Program:
    source = Source(data if front_end.binary else checked_text(data, name), name, front_end.name)
    spelled = (
        f"{name}={shape if isinstance(shape, str) else 'x'.join(map(str, shape)) or ':'}"
        for name, shape in (shapes or {}).items()
    )
    with collected_seldom():
        loaded = front_end.load(source, ReadOptions(tuple(spelled)))
    for warning in loaded.warnings:
        warnings.warn(str(warning), stacklevel=3)
    return loaded.program
