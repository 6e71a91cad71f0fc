"""Edited lists of statements: dependences follow the statements."""

from __future__ import annotations

import pytest

from stripe.ir import Around, Block, Edit, Statement, keep_statements, moved_down, splice, surround


def block(name: str, *deps: int) -> Block:
    return Block(name, deps=deps)


def line(*statements: Block) -> Block:
    return Block("line", statements=statements)


def text(edited: Block) -> str:
    """The statements with their dependences: `a b[0]`."""
    return " ".join(s.name + (f"{list(s.deps)}" if s.deps else "") for s in edited.blocks)


CHAIN = line(block("a"), block("b", 0), block("c", 1), block("d", 0, 2))


def test_nothing_changed_is_the_same_object() -> None:
    assert keep_statements(CHAIN, range(4)) is CHAIN
    assert splice(CHAIN, {1: (CHAIN.statements[1],)}) is CHAIN
    assert surround(CHAIN, {}) is CHAIN


@pytest.mark.parametrize(
    ("kept", "expected"),
    [((0, 2, 3), "a c[0] d[0, 1]"), ((0, 3), "a d[0]"), ((1, 2), "b c[0]"), ((), "")],
)
def test_a_dependence_on_a_dropped_statement_passes_on(kept: tuple[int, ...], expected: str) -> None:
    assert text(keep_statements(CHAIN, kept)) == expected


def test_statements_change_their_order() -> None:
    free = line(block("a"), block("b"), block("c", 0), block("d", 1))
    assert text(keep_statements(free, (1, 3, 0, 2))) == "b d[0] a c[2]"


def test_all_parts_of_a_statement_take_its_place() -> None:
    parts: dict[int, tuple[Statement, ...]] = {1: (block("x"), block("y")), 2: ()}
    assert text(splice(CHAIN, parts)) == "a x[0] y[0] d[0, 1, 2]"


def test_what_surrounds_a_statement_is_waited_for() -> None:
    around = {1: Around((block("in"),), (block("out"),))}
    assert text(surround(CHAIN, around)) == "a in[0] b[0, 1] out[2] c[2, 3] d[0, 4]"
    assert text(surround(line(block("a"), block("b")), around)) == "a in b out"


def test_one_statement_replaces_two() -> None:
    edit = Edit(CHAIN)
    edit.keep(0)
    edit.put(block("bc"), replaces=(1, 2))
    assert edit.keep(3) == 2
    assert text(edit.result()) == "a bc[0] d[0, 1]"


def test_a_list_moves_down() -> None:
    assert moved_down(block("b", 0, 2), 5).deps == (5, 7)
    assert moved_down(block("b", 0, 2), 5, first=1).deps == (0, 7)
    assert moved_down(CHAIN.statements[0], 5) is CHAIN.statements[0]
