"""Places in a source text. (A place in the machine is a `Location`.)"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A position in a file; `line` and `column` count from 1. `length` is the number of characters to underline."""

    filename: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}"
