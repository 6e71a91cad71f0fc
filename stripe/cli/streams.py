"""Output: files written whole or not at all; full disks, closed descriptors and readers that went away are noticed,
and said or kept quiet."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from stripe.cli.usage import UsageError


def write_stdout(text: str) -> None:
    """Writes and flushes, so that a full disk is noticed here. Raises UsageError; BrokenPipeError passes."""
    stdout: TextIO | None = sys.stdout  # None when the process was started with it closed
    if stdout is None:
        raise UsageError("standard output is closed", "redirect it to another file")
    try:
        # Characters that the terminal's encoding lacks are written as escapes.
        encoding = stdout.encoding or "utf-8"
        stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        raise UsageError(
            f"standard output cannot be written: {error.strerror}", "redirect it to another file"
        ) from None


def write_text(path: str | None, text: str) -> None:
    """Writes the product to standard output, or to a file that is there whole or not at all."""
    if path is None or path == "-":
        write_stdout(text)
    else:
        from stripe.output import write_bytes  # loads the IR, which help does without

        write_bytes(path, text.encode("utf-8", "backslashreplace"))


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys, and characters that turn the direction of text."""
_PROGRESS = re.compile("^\r\x1b\\[K")
"""Our own beginning of a line of progress."""


class _SafeStream:
    """Standard error without control characters of inputs, which a terminal would obey. A full or closed stream takes
    nothing: there is no other place for messages.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        begin = found[0] if (found := _PROGRESS.match(text)) else ""
        shown = begin + _CONTROL.sub(lambda char: ascii(char[0])[1:-1], text[len(begin) :])
        with suppress(OSError, ValueError):
            encoding = self._stream.encoding or "utf-8"
            self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


@contextmanager
def safe_stderr() -> Generator[None]:
    """Messages of a command pass through a stream that escapes control characters, and never fails."""
    before: TextIO | None = sys.stderr  # None when the process was started with it closed
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123 - no path of a file
        sys.stderr = cast("TextIO", cast(object, _SafeStream(before or nowhere)))
        try:
            yield
        finally:
            sys.stderr.flush()
            sys.stderr = before or sys.__stderr__


def silence_stdout() -> None:
    """Keeps the interpreter from complaining at exit about output without a reader."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - lives until the process ends
