"""Input files and standard input; output files, written whole or not at all."""

from __future__ import annotations

import sys

from stripe.cli.streams import write_stdout
from stripe.config.output import write_bytes
from stripe.frontends.files import read_file

STDIN = "<stdin>"


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of standard input for `-`. Raises StripeError when it cannot be read."""
    return sys.stdin.buffer.read() if path == "-" else read_file(path)


def write_text(path: str | None, text: str) -> None:
    """Writes the product to standard output, or to a file that is there whole or not at all."""
    if path is None or path == "-":
        write_stdout(text)
    else:
        write_bytes(path, text.encode("utf-8", "backslashreplace"))
