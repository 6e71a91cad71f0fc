"""Programs and simulations in notebooks: text and graph, timeline and tables.

Loading this module gives the classes of the IR their form there; `stripe` does so.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stripe.api.picture import block_picture, boxes
from stripe.emit.graphviz import block_graph
from stripe.ir import Block, Program
from stripe.ir.printable import html_of

if TYPE_CHECKING:
    from stripe.cost.report.schema import SimulationJson
    from stripe.cost.report.table import Table

MOST_BOXES = 40
"""Blocks of the largest program that is drawn."""

MOST_LINES = 60
"""Lines of the longest text that shows unfolded."""

# Notebooks give `pre` the letters of prose and wrap its lines.
_TEXT = "font-family: monospace; line-height: 1.25; white-space: pre; overflow: auto; max-height: 60em"


@html_of.register(Program)
def program_html(program: Program) -> str:
    """The text, and the graph: drawn, or for Graphviz where it is large."""
    if boxes(program.entry) <= MOST_BOXES:
        return _folded(repr(program), str(program)) + svg_html(block_picture(program.entry))
    return _folded(repr(program), str(program)) + _folded("graph, for Graphviz", block_graph(program), most=0)


@html_of.register(Block)
def block_html(block: Block) -> str:
    """The text, and the graph where it is small."""
    graph = svg_html(block_picture(block)) if boxes(block) <= MOST_BOXES else ""
    return _folded(repr(block), str(block)) + graph


def simulation_html(report: SimulationJson) -> str:
    """The picture of `stripe-sim --plot`, and the tables of `stripe-sim`."""
    from stripe.cost.report.plot import picture
    from stripe.cost.report.tables import simulation_notes, simulation_tables

    tables = "".join(table_html(table) for table in simulation_tables(report) if table.rows)
    notes = "".join(f"<p>{escape(note)}</p>" for note in simulation_notes(report))
    return svg_html(picture(report)) + tables + notes


def svg_html(document: str) -> str:
    """An SVG document as it stands inside HTML: without the declaration of XML, in its own size."""
    drawing = document[document.index("<svg") :].replace("<svg", '<svg style="max-width: none"', 1)
    return f'<div style="overflow: auto">{drawing}</div>'


def _folded(title: str, text: str, *, most: int = MOST_LINES) -> str:
    """A text that a click on its title folds and unfolds; folded at first where it has more than `most` lines."""
    lines = text.count("\n") + 1
    state, more = (" open", "") if lines <= most else ("", f" ({lines} lines)")
    summary = f'<summary style="cursor: pointer">{escape(title)}{more}</summary>'
    return f'<details{state}>{summary}<pre style="{_TEXT}">{escape(text)}</pre></details>'


def table_html(table: Table) -> str:
    """A table of a report as HTML: numbers to the right, texts to the left."""

    def row(cells: tuple[str, ...], tag: str) -> str:
        sides = ("left" if table.is_text(n) else "right" for n in range(len(cells)))
        texts = (
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(texts)}</tr>"

    head = row(table.headers, "th") if any(table.headers) else ""
    rows = "".join(row(cells, "td") for cells in table.rows)
    caption = f'<caption style="text-align: left; font-weight: bold">{escape(table.title)}</caption>'
    return f"<table>{caption}{head}{rows}</table>"
