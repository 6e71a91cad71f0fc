"""Tables for people: drawn by rich on a terminal, plain aligned text everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from stripe.cli.streams import write_stdout
from stripe.cost.report.table import Table, tables_text


def write_tables(tables: Sequence[Table], lines: Sequence[str] = ()) -> None:
    """Writes tables to standard output, then lines."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
    write_stdout(_drawn(tables, lines) if is_terminal else tables_text(tables, lines))


def _drawn(tables: Sequence[Table], lines: Sequence[str]) -> str:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(highlight=False)
    with console.capture() as capture:
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
    return capture.get()
