"""The stored tables of the parsers: they belong to the grammars, and parse as fresh ones do."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.ir import print_program
from stripe.ir.text import grammar
from stripe.tile import compile_tile

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.tile"))


@pytest.mark.parametrize("name", sorted(grammar.STARTS))
def test_tables_belong_to_the_grammar(name: str) -> None:
    assert grammar.stored(name) is not None, "the grammar changed: run make grammar"


def test_stored_and_fresh_tables_parse_alike() -> None:
    stored, built = grammar.stored("tile"), grammar.built("tile")
    assert stored is not None
    for example in EXAMPLES:
        text = example.read_text("utf-8")
        assert stored.parse(text, start="file") == built.parse(text, start="file")
    stored, built = grammar.stored("stripe"), grammar.built("stripe")
    assert stored is not None
    for example in EXAMPLES[:4]:
        text = print_program(compile_tile(example.read_text("utf-8"), example.name))
        assert stored.parse(text, start="start") == built.parse(text, start="start")


def test_a_grammar_without_its_tables_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lark.__version__", "0")
    assert grammar.stored("stripe") is None
    monkeypatch.setattr(grammar, "_text", lambda name: "start: WORD\nWORD: /a+/" if name == "stripe" else "")
    monkeypatch.setitem(grammar.STARTS, "stripe", ("start",))
    assert grammar.stored("stripe") is None
    assert grammar.built("stripe").parse("aa").data == "start"
