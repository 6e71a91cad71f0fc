"""Parsers of the grammars that ship with the package.

The construction of LALR tables takes longer than most compilations, so the tables lie beside each grammar as JSON
(`make grammar` writes them). Tables of another grammar text or of another lark are left alone, and built anew.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, cast

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from stripe.ir.data import data_path
from stripe.ir.text.lalr import Automaton

STARTS = {
    "stripe": ("start", "affine_only", "location_only"),
    "tile": ("file", "entry"),
}
"""The grammars with their start rules."""

RECURRING = {"stripe": {"affines": "]", "location": ">", "dims": ")"}}
"""Rules whose texts recur, with the character behind each."""


class _Stored(lark.Lark):
    """A parser from stored tables."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._load(tables)  # pyright: ignore[reportUnknownMemberType] - lark leaves types out


@cache
def parser(name: str) -> lark.Lark:
    """The parser for the grammar `name`."""
    return stored(name) or built(name)


@cache
def automaton(name: str) -> Automaton:
    """The tables of the grammar `name`, to be run with actions."""
    return Automaton(parser(name), RECURRING.get(name, {}))


def stored(name: str) -> lark.Lark | None:
    """The parser from the stored tables; None when they belong to another grammar text or another lark."""
    path = data_path("grammar", f"{name}.lark").with_suffix(".tables.json")
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    if found["grammar"] != _text(name) or found["lark"] != lark.__version__:
        return None
    return _Stored(_with_numbers(found["tables"]))


def built(name: str) -> lark.Lark:
    """The parser with fresh tables."""
    return lark.Lark(
        _text(name), parser="lalr", lexer="contextual", start=list(STARTS[name]),
        maybe_placeholders=True,
    )  # fmt: skip


def tables(name: str) -> str:
    """The text of the file with the tables."""
    fresh: Any = built(name)
    data, memo = fresh.memo_serialize([TerminalDef, Rule])
    found = {"grammar": _text(name), "lark": lark.__version__, "tables": {"data": data, "memo": memo}}
    return json.dumps(found, separators=(",", ":")) + "\n"


def _text(name: str) -> str:
    return data_path("grammar", f"{name}.lark").read_text(encoding="utf-8")


def _with_numbers(value: Any) -> Any:
    """Keys that are numbers in the tables, and texts in JSON."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {int(key) if key.isdigit() else key: _with_numbers(item) for key, item in members.items()}
    return [_with_numbers(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
