"""Equal layers are proved once; a layer that is not equal to the others is compared by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import stripe
from stripe.ir import Block, Buffer, Intrinsic, Program, Statement, map_statements
from stripe.verify.proof import answers, prove
from stripe.verify.proof.pairs import Sides
from stripe.verify.proof.witness import Different, Equal
from tests.fuzz.variations import with_main
from tests.support.programs import checked, load, source
from tests.support.running import run_both
from tests.support.tiers import some

LAYERS = 3
TEXT = (
    "function (A0[N=6, M=6]) -> (A"
    + str(LAYERS)
    + ") {\n"
    + "".join(
        f"  B{n}[i, j : N, M] = +(A{n}[i, k] * A{n}[k, j]);\n  A{n + 1} = B{n} + A{n};\n"
        for n in range(LAYERS)
    )
    + "}\n"
)
FUSED = "fuse{a_reqs=[contraction],b_reqs=[eltwise]}"
PASSES = "autotile{reqs=[contraction],outer_set=[tiled],inner_set=[inner],max_total_size=60}"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The buffers that are compared, by their names in the programs or, where layers repeat, in excerpts of them."""
    compared: list[str] = []
    differ = answers.differ

    def noted(sides: Sides, buffers: tuple[Buffer, Buffer], depth: int) -> object:
        compared.append(buffers[0].name)
        return differ(sides, buffers, depth)

    monkeypatch.setattr(answers, "differ", noted)
    yield compared


def test_equal_layers_are_compared_once(counted: list[str]) -> None:
    before = stripe.parse(TEXT, name="layers.tile")
    after = stripe.run_passes(before, PASSES)
    assert sum("tiled" in block.words for block in after.main.blocks) == LAYERS
    verdict = prove.prove_equal(before, after)
    assert isinstance(verdict, Equal) and verdict.assumptions
    assert counted == ["result0"]


def test_buffers_of_repeated_fused_statements_are_compared_together(counted: list[str]) -> None:
    """One excerpt answers for the product and for what is added to it, which a fused statement writes; the other
    layers ask for nothing."""
    before = stripe.parse(TEXT, name="layers.tile")
    after = stripe.run_passes(before, FUSED)
    assert len(list(after.main.blocks)) == LAYERS
    assert isinstance(prove.prove_equal(before, after), Equal)
    assert counted == ["result0", "result1"]


def test_a_layer_like_no_other_is_compared_in_its_place(counted: list[str]) -> None:
    text = "function (A[N=6, M=6]) -> (C) {\n  B[i, j : N, M] = +(A[i, k] * A[k, j]);\n  C = B + A;\n}\n"
    before = stripe.parse(text, name="layer.tile")
    after = stripe.run_passes(before, FUSED)
    assert len(list(after.main.blocks)) == 1
    assert isinstance(prove.prove_equal(before, after), Equal)
    assert counted == ["B", "C"]


@pytest.mark.parametrize("number", some(range(LAYERS), every=LAYERS))
def test_one_wrong_layer_is_found(number: int) -> None:
    before = stripe.parse(TEXT, name="layers.tile")
    after = _broken(stripe.run_passes(before, PASSES), number)
    verdict = prove.prove_equal(before, after)
    assert isinstance(verdict, Different)


def _broken(program: Program, number: int) -> Program:
    """The program whose tiled block `number` subtracts one of its products."""
    seen = -1

    def visit(statement: Statement) -> Statement:
        match statement:
            case Block():
                return map_statements(statement, visit)
            case Intrinsic(op="mul"):
                return replace(statement, op="add")
            case _:
                return statement

    statements: list[Statement] = []
    for statement in program.main.statements:
        if isinstance(statement, Block) and "tiled" in statement.words:
            seen += 1
            statement = visit(statement) if seen == number else statement
        statements.append(statement)
    return with_main(program, replace(program.main, statements=tuple(statements)))


def test_layers_that_read_other_places_are_compared(counted: list[str]) -> None:
    """Two kernels with the same code, of which one reads the same array twice and the other two arrays."""
    text = (
        "function (A[N=6, M=6], B[N, M]) -> (C, D) {\n"
        "  C[i, j : N, M] = +(A[i, k] * A[k, j]);\n  D[i, j : N, M] = +(A[i, k] * B[k, j]);\n}\n"
    )
    before = stripe.parse(text, name="two.tile")
    verdict = prove.prove_equal(before, stripe.run_passes(before, PASSES))
    assert isinstance(verdict, Equal)
    assert counted == ["result0", "result0"]


def test_numbers_that_fill_constants_count() -> None:
    """0 times A is 0 times B; the second kernel, alike but for its constant, was equal by the proof of the first."""
    text = source("verify/repeated/constants")
    before, after = checked(text), checked(text.replace("X = A[i]", "X = B[i]"))
    found = prove.prove_equal(before, after)
    assert isinstance(found, Different)
    assert found.witness.buffer == "O2"
    zeros = text.replace("01000000020000000300000004000000", 32 * "0")
    assert isinstance(
        prove.prove_equal(checked(zeros), checked(zeros.replace("X = A[i]", "X = B[i]"))), Equal
    )


def test_layers_that_read_what_is_made_with_them() -> None:
    """A statement writes a part of the result and of an array that another statement has begun with zeros. The second
    layer begins it with other numbers, and was equal by the proof of the first.
    """
    before, after = (load(f"verify/repeated/{name}") for name in ("made_twice", "made_twice_swapped"))
    found = prove.prove_equal(before, after)
    assert isinstance(found, Different)
    assert found.witness.buffer == "R2"
    assert run_both(before, after) != ""
