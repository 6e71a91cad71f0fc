"""Places in a source text. (A place in the machine is a `Location`.)"""

from __future__ import annotations

from bisect import bisect_right

from stripe.ir.frozen import frozen


@frozen
class Span:
    """A position in a file; `line` and `column` count from 1. `length` is the number of characters to underline."""

    filename: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}"


class LineTable:
    """The lines of a text, to turn an offset into a line and a column."""

    def __init__(self, text: str) -> None:
        self.starts = [0]
        end = text.find("\n")
        while end >= 0:
            self.starts.append(end + 1)
            end = text.find("\n", end + 1)

    def span(self, filename: str, offset: int, length: int = 1) -> Span:
        """The place of `length` characters from `offset`; lines and columns count from 1."""
        line = bisect_right(self.starts, offset)
        return Span(filename, line, offset - self.starts[line - 1] + 1, length)
