"""Files of programs as bytes and as text, with errors that name the place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from stripe.ir.errors import StripeError, closest
from stripe.ir.text.names import CONTROL

MAX_INPUT = (1 << 31) - 1
"""Bytes of a program: as many as a message of protobuf has, so that every network in one file can be read."""


def read_file(path: str) -> bytes:
    """The bytes of a file. Raises StripeError when it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            require_size(os.fstat(stream.fileno()).st_size, path)
            return read_stream(stream, path)
    except FileNotFoundError:
        raise StripeError("no such file", path=path, hint=_similar_file(Path(path))) from None
    except IsADirectoryError:
        raise StripeError("this is a directory", path=path, hint="name one file in it") from None
    except OSError as error:
        raise StripeError(f"cannot be read: {error.strerror}", path=path) from None
    except ValueError as error:
        raise StripeError(f"this is no file name: {error}", path=repr(path)) from None


def read_stream(stream: BinaryIO, name: str) -> bytes:
    """All of a stream. Raises StripeError for one without end, such as /dev/zero."""
    data = stream.read(MAX_INPUT + 1)
    require_size(len(data), name)
    return data


def require_size(size: int, name: str) -> None:
    """Raises StripeError for more bytes than an input may have."""
    if size > MAX_INPUT:
        hint = (
            "of a network, keep the weights in a file beside it (external data); no other program is so large"
        )
        raise StripeError(f"the input is longer than {MAX_INPUT} bytes", path=name, hint=hint)


def _similar_file(path: Path) -> str | None:
    """Names the file beside it with the most similar name, if there is one."""
    try:
        names = {entry.stem: entry.name for entry in sorted(path.parent.iterdir())}
    except OSError:
        return None if path.parent.exists() else f"there is no folder '{path.parent}' either"
    near = closest(path.stem, names)
    return f"did you mean '{path.parent / names[near]}'?" if near else None


def checked_text(data: bytes, name: str) -> bytes:
    """The bytes of a text with plain line ends. Raises StripeError with the place where they are no UTF-8."""
    if not data.strip():
        raise StripeError(
            "the file is empty", path=name, hint="a Tile function or a Stripe program belongs in it"
        )
    text = data.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in text:
        raise StripeError("this is a binary file", path=name, hint="a .tile or .stripe file is text")
    try:
        shown = text.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - text.rfind(b"\n", 0, error.start)
        raise StripeError(
            f"the file is not UTF-8: byte 0x{text[error.start]:02x}", path=name, line=line, col=column,
            hint="save it as UTF-8",
        ) from None  # fmt: skip
    if (found := CONTROL.search(shown)) is not None:
        line = shown.count("\n", 0, found.start()) + 1
        column = found.start() - shown.rfind("\n", 0, found.start())
        reason = f"the control character U+{ord(found[0]):04X} is no part of a program"
        raise StripeError(reason, path=name, line=line, col=column, hint="take it out")
    return text.replace(b"\r\n", b"\n")


def first_line(text: str) -> tuple[int, str]:
    """The first line that is neither empty nor a comment, with its number; 0 when there is none."""
    lines = ((number, line.strip()) for number, line in enumerate(text.split("\n"), start=1))
    return next(((n, line) for n, line in lines if line and not line.startswith("//")), (0, ""))


def printable(name: str) -> str:
    """A file's name as it can stand in a message and in a program: no line breaks, nothing that UTF-8 cannot hold."""
    shown = name.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(char if char.isprintable() else "?" for char in shown)
