"""Constants that were computed while compiling: equal when their bits are, and only then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stripe.exec.interp import interpret
from stripe.ir import Program
from stripe.passes.base import PassContext
from stripe.passes.registry import find_pass
from stripe.tile import compile_tile
from stripe.verify.computed import same_constant
from stripe.verify.exact import prove_equal
from stripe.verify.witness import Equal

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
