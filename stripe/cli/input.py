"""Inputs: the language of a file, the parts of a text, and the program that a source denotes."""

from __future__ import annotations

import re
import sys
from pathlib import PurePath
from typing import TextIO

from stripe.cli.usage import UsageError
from stripe.frontends.files import checked_text, first_line, printable, read_file, read_stream
from stripe.frontends.frontend import FrontEnd, Loaded, ReadOptions, Source
from stripe.frontends.registry import by_beginning, by_suffix, find_front_end, front_ends, languages
from stripe.ir import ConfigError, StripeError

STDIN = "<stdin>"
_SEPARATOR_LINE = re.compile(r"^// -----[ \t]*$", re.MULTILINE)


def read_source(path: str | None, language: str | None = None, recorded: bytes | None = None) -> Source:
    """Reads an input; `recorded` are its bytes where they are known.

    Raises StripeError when it cannot be read, ConfigError when its language is unknown.
    """
    if path is None:
        raise UsageError("no INPUT is given", f"name a {suffixes()} file, or - for standard input")
    data = input_bytes(path) if recorded is None else recorded
    name = STDIN if path == "-" else printable(path)
    if language is not None:
        front_end = find_front_end(language)
    elif path == "-":
        front_end = by_beginning(first_line(data.decode("utf-8", "replace"))[1])
    else:
        front_end = _by_suffix(path)
    return Source(data if front_end.binary else checked_text(data, name), name, front_end.name)


def input_bytes(path: str) -> bytes:
    """The bytes of a file, or of standard input for `-`. Raises StripeError when it cannot be read."""
    if path != "-":
        return read_file(path)
    stdin: TextIO | None = sys.stdin  # None when the process was started with it closed
    if stdin is None:
        raise UsageError("standard input is closed", "name a file")
    try:
        return read_stream(stdin.buffer, STDIN)
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}", "name a file") from None


def split_source(source: Source) -> tuple[Source, ...]:
    """The parts between lines `// -----`; parts that hold nothing are left out."""
    text = source.text
    parts: list[Source] = []
    start = 0
    ends = [*((match.start(), match.end()) for match in _SEPARATOR_LINE.finditer(text)), (len(text),) * 2]
    for end, after in ends:
        if part := text[start:end].strip() and text[start:end]:
            padded = "\n" * text.count("\n", 0, start) + part
            parts.append(Source(padded.encode(), source.name, source.language))
        start = after
    return tuple(parts)


def load_source(source: Source, options: ReadOptions) -> Loaded:
    """The program that a source denotes, checked for structure. Raises StripeError with its place."""
    front_end = find_front_end(source.language)
    try:
        return front_end.load(source, options)
    except StripeError as error:
        if not front_end.binary:
            # a hint at another language, for an error in the first line of code
            number, line = first_line(source.text)
            guessed = by_beginning(line)
            if guessed.name != source.language and error.line == number:
                option = f"say --input-format {guessed.name}, or end its name in {guessed.suffixes[0]}"
                error.hint = f"this looks like {guessed.name.capitalize()}: {option}"
        raise


def _by_suffix(path: str) -> FrontEnd:
    suffix = PurePath(path).suffix
    if found := by_suffix(suffix):
        return found
    reason = f"the suffix '{suffix}' is unknown" if suffix else "the file has no suffix"
    known = " or ".join(f"--input-format {name}" for name in languages())
    raise ConfigError(f"{reason}, so its language is", path=path, hint=f"say {known}")


def suffixes() -> str:
    """The suffixes of all languages, for messages."""
    *others, last = (suffix for front_end in front_ends() for suffix in front_end.suffixes)
    return f"{', '.join(others)} or {last}"
