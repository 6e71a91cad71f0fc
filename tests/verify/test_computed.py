"""Constants that were computed while compiling: equal when their bits are, and only then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from stripe.exec.interp import interpret
from stripe.ir import DTYPES, ConstantBuffer, Program, Role, parse_program
from stripe.passes.base import PassContext
from stripe.passes.registry import find_pass
from stripe.tile import compile_tile
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.computed import same_constant
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal
from tests.support.programs import load, source
from tests.support.running import run_both

EXAMPLE = Path(__file__).parents[2] / "examples" / "argmax.tile"


def folded() -> tuple[Program, Program]:
    """An example before and after its index tensor was computed while compiling."""
    before = compile_tile(EXAMPLE.read_text(encoding="utf-8"), str(EXAMPLE), {})
    after = find_pass("constant_fold").model_validate({}).run(before, PassContext(evaluate=interpret))
    assert after.constants
    return before, after


def test_a_folded_constant_is_proved() -> None:
    before, after = folded()
    assert isinstance(prove_equal(before, after), Equal)


def test_a_wrong_bit_in_a_folded_constant_is_seen() -> None:
    before, after = folded()
    (buffer,) = after.constants
    wrong = replace(buffer, data=bytes([buffer.data[0] ^ 1, *buffer.data[1:]]))
    mutant = replace(after, constants=(wrong,))
    assert not same_constant(before, mutant, buffer.name)
    assert not isinstance(prove_equal(before, mutant), Equal)


def test_constants_that_one_statement_computes() -> None:
    before = load("verify/computed/two_by_one_statement")
    after = find_pass("constant_fold").model_validate({}).run(before, PassContext(evaluate=interpret))
    assert [buffer.name for buffer in after.constants] == ["T", "P"]
    assert same_constant(before, after, "T") and same_constant(before, after, "P")
    assert isinstance(prove_equal(before, after), Equal)


FILLED = source("verify/computed/filled")


def with_constant(text: str, value: float) -> Program:
    """The program with the buffer T a constant."""
    program = parse_program(text)
    refs = tuple(replace(r, role=Role.CONSTANT) if r.name == "T" else r for r in program.entry.refinements)
    constant = ConstantBuffer("T", DTYPES["fp32"], (1,), np.float32(value).tobytes())
    return Program(replace(program.entry, refinements=refs), (constant,))


def test_a_constant_made_of_scalars_of_main() -> None:
    before = parse_program(FILLED)
    start, end = FILLED.index("    0: $c"), FILLED.index("    3: #kernel")
    text = FILLED[:start] + FILLED[end:].replace("3: #kernel", "0: #kernel")
    text = text.replace("inout T[0]:assign", "in T[0]")
    assert same_constant(before, with_constant(text, -2), "T")
    assert prove_equal(before, with_constant(text, -2)) == Equal()
    assert not isinstance(prove_equal(before, with_constant(text, 2)), Equal)


def test_a_constant_of_the_same_bytes_in_other_sizes() -> None:
    before, after = load("verify/computed/sizes"), load("verify/computed/sizes_constant")
    assert not same_constant(before, after, "T")
    assert not isinstance(prove_equal(before, after), Equal)
    assert run_both(before, after) != ""


def test_integers_that_are_computed_in_floats_rely_on_the_bits_of_the_interpreter() -> None:
    text = """function (X[N=20]: i32) -> (O) {
        K = as_int(cosh(as_float(index(X, 0), 64) / 300.0) * 1000000000000000.0, 64);
        O = X + K;
    }"""
    before = compile_tile(text, "integers")
    after = find_pass("constant_fold").model_validate({}).run(before, PassContext(evaluate=interpret))
    verdict = prove_equal(before, after)
    assert isinstance(verdict, Equal) and verdict.assumptions == (Assumption.FOLDED,)


def test_a_constant_made_of_a_buffer_that_is_read_while_it_is_made() -> None:
    before = load("verify/computed/read_while_made")
    after = find_pass("constant_fold").model_validate({}).run(before, PassContext(evaluate=interpret))
    assert {buffer.name for buffer in after.constants} == {"X", "V"}
    assert prove_equal(before, after) == Equal((Assumption.FOLDED,))
    held = next(buffer for buffer in after.constants if buffer.name == "V")
    wrong = replace(held, data=bytes([held.data[0] ^ 1, *held.data[1:]]))
    mutant = replace(after, constants=tuple(wrong if b is held else b for b in after.constants))
    assert not isinstance(prove_equal(before, mutant), Equal)
