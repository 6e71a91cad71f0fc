"""The pass `reorder_blocks`: producers directly before their consumers, under all dependences."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Block, Program
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import run_pass

SHAPES = {"A": (8,), "T": (8,), "O": (8,), "B": (4,), "P": (4,), "Q": (4,)}
KERNELS = {
    "t": kernel("T[x] = assign neg(A[x])", {"x": 8}, SHAPES, name="t"),
    "fill": kernel("P[y] = assign abs(B[3])", {"y": 4}, SHAPES, name="fill", tags=("init",)),
    "p": kernel("P[y] = add ident(B[y])", {"y": 4}, SHAPES, name="p"),
    "o": kernel("O[x] = assign add(T[x], A[x])", {"x": 8}, SHAPES, name="o"),
    "q": kernel("Q[y] = assign ident(T[y])", {"y": 4}, SHAPES, name="q"),
    "again": kernel("T[x] = assign ident(A[7-x])", {"x": 8}, SHAPES, name="again"),
    "twice": kernel("O[x] = assign mul(T[x], T[x])", {"x": 8}, SHAPES, name="twice"),
}


def program(*names: str) -> Program:
    return program_of([KERNELS[name] for name in names], SHAPES, ["O", "P", "Q"])


def names_of(result: Program) -> str:
    return " ".join(block.name for block in result.main.blocks)


def test_producers_go_before_consumers_and_fills_first() -> None:
    result, remarks = run_pass(program("t", "fill", "p", "q", "o"), "reorder_blocks")
    assert names_of(result) == "fill p t o q"
    assert str(remarks[0]) == (
        "applied: main: 5 of 5 statements moved: 2 consumers follow their producer, 1 did"
    )


def test_a_contribution_waits_for_its_fill_and_order_is_kept_where_it_matters() -> None:
    result, _ = run_pass(program("fill", "p", "t", "q", "again", "o"), "reorder_blocks")
    assert names_of(result) == "fill p t q again o"


def test_fills_go_first() -> None:
    result, _ = run_pass(program("t", "q", "fill", "p"), "reorder_blocks")
    assert names_of(result) == "fill p t q"


def test_reqs_choose_the_block() -> None:
    before = program("t", "fill", "p", "q", "o")
    assert run_pass(before, "reorder_blocks", reqs=["elsewhere"])[0] is before


def test_dependences_are_renumbered_and_obeyed() -> None:
    before = program("t", "fill", "p", "q", "o")
    deps = [(), (), (1,), (0,), (0, 3)]
    statements = tuple(replace(s, deps=d) for s, d in zip(before.main.statements, deps, strict=True))
    main = replace(before.main, statements=statements)
    result, _ = run_pass(replace(before, entry=replace(before.entry, statements=(main,))), "reorder_blocks")
    assert names_of(result) == "fill p t q o"
    assert [s.deps for s in result.main.statements] == [(), (0,), (), (2,), (2, 3)]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["fill", "p", "o", "q", "again", "twice"]), max_size=7))
def test_any_order_keeps_its_meaning(names: list[str]) -> None:
    before = program("t", *names, "fill", "p", "o", "q")
    result, _ = run_pass(before, "reorder_blocks")
    assert sorted(names_of(result).split()) == sorted(names_of(before).split())
    assert all(isinstance(s, Block) for s in result.main.statements)
