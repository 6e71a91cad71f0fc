"""Standard output: full disks, closed descriptors and readers that went away are noticed, and said or kept quiet."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from stripe.cli.usage import UsageError


def write_stdout(text: str) -> None:
    """Writes and flushes, so that a full disk is noticed here. Raises UsageError; BrokenPipeError passes."""
    stdout: TextIO | None = sys.stdout  # None when the process was started with it closed
    if stdout is None:
        raise UsageError("standard output is closed", "write to a file with -o")
    try:
        # Characters that the terminal's encoding lacks are written as escapes.
        encoding = stdout.encoding or "utf-8"
        stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        raise UsageError(f"standard output cannot be written: {error.strerror}") from None


def silence_stdout() -> None:
    """Keeps the interpreter from complaining at exit about output that nobody takes."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - lives until the process ends
