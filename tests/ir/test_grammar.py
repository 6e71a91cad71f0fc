"""The stored tables of the parsers are those that lark makes of the grammars."""

from __future__ import annotations

import json

import pytest

from stripe.ir.text import grammar
from stripe.ir.text.lalr import Automaton


@pytest.mark.parametrize("name", sorted(grammar.STARTS))
def test_tables_belong_to_the_grammar(name: str) -> None:
    built = json.loads(grammar.tables_text(name))
    assert built["tables"] == grammar.stored(name), "the grammar changed: run make grammar"


def test_a_grammar_without_its_tables_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_text", lambda name: "start: WORD\nWORD: /a+/" if name == "stripe" else "")
    monkeypatch.setitem(grammar.STARTS, "stripe", ("start",))
    grammar.parser.cache_clear()
    assert grammar.stored("stripe") is None
    words = Automaton(grammar.built("stripe"), {}).read("aa", "start", {"start": lambda parts, *_: parts})
    assert words == [("aa", 0)]
    grammar.parser.cache_clear()
