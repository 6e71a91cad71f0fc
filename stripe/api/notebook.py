"""Programs and simulations in notebooks: text and graph, timeline and tables.

Loading this module gives the classes of the IR their form there; `stripe` does so.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stripe.api.picture import block_picture, boxes
from stripe.emit.dot import block_graph
from stripe.ir import Block, Program
from stripe.ir.printable import html_of

if TYPE_CHECKING:
    from stripe.cost.report.schema import SimulationJson
    from stripe.cost.report.table import Table

MOST_BOXES = 40
"""Blocks of the largest program that is drawn."""


@html_of.register(Program)
def program_html(program: Program) -> str:
    """The text, and the graph: drawn, or for Graphviz where it is large."""
    graph = _svg(block_picture(program.entry)) if boxes(program.entry) <= MOST_BOXES else ""
    shown = graph or _folded("graph, for Graphviz", block_graph(program), opened=False)
    return _folded(repr(program), str(program), opened=True) + shown


@html_of.register(Block)
def block_html(block: Block) -> str:
    """The text, and the graph where it is small."""
    graph = _svg(block_picture(block)) if boxes(block) <= MOST_BOXES else ""
    return _folded(repr(block), str(block), opened=True) + graph


def simulation_html(report: SimulationJson) -> str:
    """The picture of `stripe-sim --plot`, and the tables of `stripe-sim`."""
    from stripe.cost.report.plot import picture
    from stripe.cost.report.tables import simulation_notes, simulation_tables

    tables = "".join(_table(table) for table in simulation_tables(report) if table.rows)
    notes = "".join(f"<p>{escape(note)}</p>" for note in simulation_notes(report))
    return _svg(picture(report)) + tables + notes


def _svg(document: str) -> str:
    """An SVG document as it stands inside HTML: without the declaration of XML."""
    return f"<div>{document[document.index('<svg') :]}</div>"


def _folded(title: str, text: str, *, opened: bool) -> str:
    """A text that a click on its title folds and unfolds."""
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def _table(table: Table) -> str:
    def row(cells: tuple[str, ...], tag: str) -> str:
        sides = ("left" if table.is_text(n) else "right" for n in range(len(cells)))
        texts = (
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(texts)}</tr>"

    head = row(table.headers, "th") if any(table.headers) else ""
    rows = "".join(row(cells, "td") for cells in table.rows)
    return f"<table><caption>{escape(table.title)}</caption>{head}{rows}</table>"
