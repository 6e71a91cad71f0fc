"""Parsers of the grammars that ship with the package.

lark takes longer to load and to construct LALR tables than most compilations take, so the tables lie beside each
grammar as JSON (`make grammar` writes them). Tables of another grammar text are built anew.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from stripe.ir.package_data import data_path
from stripe.ir.text.lalr import Automaton, Tables

if TYPE_CHECKING:
    import lark

STARTS = {
    "stripe": ("start", "affine_only", "location_only"),
    "tile": ("file",),
}
"""The grammars with their start rules."""

RECURRING = {"stripe": {"affines": "]", "location": ">", "dims": ")"}}
"""Rules whose texts recur, with the character behind each."""


@cache
def automaton(name: str) -> Automaton:
    """The tables of the grammar `name`, to be run with actions."""
    return Automaton(stored(name) or built(name), RECURRING.get(name, {}))


@cache
def parser(name: str) -> lark.Lark:
    """lark's parser for the grammar `name`, which makes the tables and explains a text that does not fit."""
    import lark

    return lark.Lark(
        _text(name), parser="lalr", lexer="contextual", start=list(STARTS[name]),
        maybe_placeholders=True,
    )  # fmt: skip


def stored(name: str) -> Tables | None:
    """The tables beside the grammar; None when they belong to another grammar text."""
    path = data_path("grammar", f"{name}.lark").with_suffix(".tables.json")
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    return found["tables"] if found["grammar"] == _text(name) else None


def built(name: str) -> Tables:
    """Fresh tables."""
    from stripe.ir.text.tables import tables_of

    return tables_of(parser(name))


def tables_text(name: str) -> str:
    """The text of the file with the tables."""
    return json.dumps({"grammar": _text(name), "tables": built(name)}, separators=(",", ":")) + "\n"


def _text(name: str) -> str:
    return data_path("grammar", f"{name}.lark").read_text(encoding="utf-8")
