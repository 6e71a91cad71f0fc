"""Input files and standard input; output files, written whole or not at all."""

from __future__ import annotations

import sys
from typing import TextIO

from stripe.cli.streams import write_stdout
from stripe.cli.usage import UsageError
from stripe.config.output import write_bytes
from stripe.frontends.files import read_file, read_stream

STDIN = "<stdin>"


def read_bytes(path: str) -> bytes:
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


def write_text(path: str | None, text: str) -> None:
    """Writes the product to standard output, or to a file that is there whole or not at all."""
    if path is None or path == "-":
        write_stdout(text)
    else:
        write_bytes(path, text.encode("utf-8", "backslashreplace"))
