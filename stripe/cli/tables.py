"""Tables for people: drawn by rich on a terminal, plain aligned text everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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


def write_tables(tables: Sequence[Table], lines: Sequence[str] = ()) -> None:
    """Writes tables to standard output, then lines."""
    if sys.stdout.isatty():
        _draw(tables, lines)
        return
    parts = [plain(table) for table in tables if table.rows]
    text = "\n".join(parts)
    if lines:
        text += "\n" + "\n".join(lines) + "\n"
    sys.stdout.write(text)


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


def _draw(tables: Sequence[Table], lines: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(highlight=False)
    for table in tables:
        if not table.rows:
            continue
        drawn = RichTable(title=Text(table.title), title_justify="left", show_header=any(table.headers))
        for number, header in enumerate(table.headers):
            drawn.add_column(Text(header), justify="left" if table.is_text(number) else "right")
        for row in table.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        console.print(drawn)
    for line in lines:
        console.print(Text(line))
