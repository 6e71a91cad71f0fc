"""Tables for people as aligned text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headers; all columns but the first `left` hold numbers and are aligned to the right, unless they are
    in `texts`."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    texts: tuple[int, ...] = ()

    def is_text(self, column: int) -> bool:
        return column < self.left or column in self.texts


def summed(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The sum of the numbers of each name, in the order in which names come first."""
    found: dict[str, float] = defaultdict(float)
    for name, number in pairs:
        found[name] += number
    return found


def plain(table: Table) -> str:
    """A table as text, ending with a newline."""
    widths = [max(len(row[n]) for row in (table.headers, *table.rows)) for n in range(len(table.headers))]
    lines = [table.title] if table.title else []
    for row in (*([table.headers] if any(table.headers) else []), *table.rows):
        cells = (
            cell.ljust(width) if table.is_text(n) else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        )  # fmt: skip
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines) + "\n"


def tables_text(tables: Sequence[Table], lines: Sequence[str] = ()) -> str:
    """The tables that have rows, then lines."""
    text = "\n".join(plain(table) for table in tables if table.rows)
    return text + ("\n" + "\n".join(lines) + "\n" if lines else "")
