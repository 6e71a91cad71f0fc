"""Excerpts: some statements of a program as a program, with the buffers that others share as tensors of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.ir import Role, parse_program, verify_structural
from stripe.rewrite.excerpt import excerpt

GOLDEN = Path(__file__).parents[1] / "golden" / "fuzz"


@pytest.mark.parametrize("number", [0, 2])
def test_a_buffer_with_two_names_is_shared(number: int) -> None:
    """Block 0 writes T by one name of main, block 2 reads it by another."""
    program = parse_program((GOLDEN / "dce_two_names.stripe").read_text())
    part = excerpt(program, [number])
    assert part.entry.ref("T").role is Role.USER
    assert not verify_structural(part, part.stage)
    whole = excerpt(program, [0, 2])
    assert whole.entry.ref("T").role is not Role.USER
    assert [ref.name for ref in whole.inputs] == ["A"]


def test_an_allocation_of_main_is_no_buffer_of_the_entry() -> None:
    """Both are called T; the entry gets a second one under another name."""
    text = (GOLDEN / "dce_two_names.stripe").read_text()
    text = text.replace("out<[0]> U[0]:assign fp32(8:1)", "#tmp none new@0x00000000<[0]> U[0] fp32(8:1)")
    text = text.replace(
        "in<[0]> A[x] fp32(1:1)\n        out<[0]> O[x]", "in<[0]> A = U[x] fp32(1:1)\n        out<[0]> O[x]"
    )
    program = parse_program(text.replace("in<[0]> T = Tq[x]", "in<[0]> T = U[x]"))
    part = excerpt(program, [2])
    assert part.entry.ref("U_0").role is Role.USER
    assert part.main.ref("U").source == "U_0"
    assert not verify_structural(part, part.stage)
