"""The run of LALR tables: the trees of lark, equal texts built once, and linear work."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lark import Tree

from stripe.ir import StripeError, parse_program, print_program
from stripe.ir.text import grammar
from stripe.ir.text.builder import IrBuilder
from stripe.ir.text.lalr import Action, Automaton, NotInGrammar
from stripe.tile import compile_tile

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.tile"))


class Trees(dict[str, Action]):
    """Actions that build the tree of lark, as nested lists."""

    def __missing__(self, name: str) -> Action:
        return lambda parts, _begin, _end: [name, *parts]


def plain(tree: Any, offsets: bool = True) -> Any:
    if isinstance(tree, Tree):
        return [str(tree.data), *(plain(child) for child in tree.children)]
    return tree if tree is None else (str(tree), tree.start_pos)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_trees_are_those_of_lark(example: Path) -> None:
    tile = example.read_text("utf-8")
    stripe = print_program(compile_tile(tile, example.name))
    for name, start, text in (("tile", "file", tile), ("stripe", "start", stripe)):
        automaton = Automaton(grammar.built(name), {})
        assert automaton.read(text, start, Trees()) == plain(grammar.parser(name).parse(text, start=start))


def blocks(count: int) -> str:
    block = "  {n}: block [i:8] (\n      in<M[0]> A[i, 2*i] i8(1:8, 1:1)\n  ) {{\n    0: $x = load(A)\n  }}\n"
    return "0: block [] (\n) {\n" + "".join(block.format(n=number) for number in range(count)) + "}\n"


def calls(text: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    actions = IrBuilder(lambda *_: pytest.fail("refused")).actions

    def counting(name: str) -> Action:
        def action(parts: list[Any], begin: int, end: int) -> Any:
            counted[name] += 1
            return actions[name](parts, begin, end)

        return action

    grammar.automaton("stripe").read(text, "start", {name: counting(name) for name in actions})
    return counted


def test_equal_texts_are_built_once() -> None:
    counted = calls(blocks(100))
    assert counted["refinement"] == 100
    assert counted["affines"] == counted["location"] + 1 == counted["dims"] + 1 == 2  # in M[0] too


def test_the_work_is_linear() -> None:
    few, many = calls(blocks(100)), calls(blocks(200))
    assert few.total() < many.total() <= 2 * few.total()


def test_a_text_that_does_not_fit() -> None:
    text = blocks(2)
    for wrong in (text[:-2], text + "x", text.replace("1: block", "1 block"), text.replace("2*i", "2*?")):
        with pytest.raises(NotInGrammar):
            calls(wrong)
        with pytest.raises(StripeError):
            parse_program(wrong)
    assert calls(text + "// the end\n") == calls(text)
