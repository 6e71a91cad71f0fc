"""Bounds of programs that become code: every statement of main is asked about, and equal ones once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given

from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import Program, verify_structural
from stripe.verify import soundness as checks
from stripe.verify.soundness import check_memory
from tests.exec.random_programs import programs
from tests.support.counting import calls
from tests.support.programs import build

TENSORS = "in A 5; in B 4; out X 4; out Y 4; out Z 4"


def copies(*rows: tuple[str, str, int]) -> str:
    """Kernels that copy four elements of the first tensor, from the given element on, to the second one."""
    return "\n".join(
        f"""
    {number}: #kernel block [i:4] ( // copy_{number}
        in {read}[{first} + i] fp32(1:1)
        out {written}[i]:assign fp32(1:1)
    ) {{
      0: $A = load({read})
      1: {written} = store($A)
    }}"""
        for number, (read, written, first) in enumerate(rows)
    )


def test_equal_statements_of_buffers_of_another_size_are_asked_about() -> None:
    assert not check_memory(build(TENSORS, copies(("A", "X", 1), ("A", "Y", 0), ("B", "Z", 0))))
    (found,) = check_memory(build(TENSORS, copies(("A", "X", 1), ("A", "Y", 0), ("B", "Z", 1))))
    assert str(found) == "error: B[4]: read out of bounds of (4)\n  in copy_2 (0.0.2.0) at i=3"


def test_equal_statements_of_views_at_other_places_are_asked_about() -> None:
    text = build("in A 8; in B 8; out X 4; out Y 4; out Z 4", copies(("A", "X", 0), ("B", "Y", 0)))
    moved = replace_view(text, "B", 5)
    (found,) = check_memory(moved)
    assert found.element == (8,)
    assert found.place.block == "copy_1"


def replace_view(program: Program, name: str, first: int) -> Program:
    """The program whose main views a tensor from another element on."""
    main = program.main
    refs = [
        replace(ref, access=(ref.access[0] + first,)) if ref.name == name else ref for ref in main.refinements
    ]
    moved = replace(main, refinements=tuple(refs))
    return replace(program, entry=replace(program.entry, statements=(moved,)))


def test_equal_statements_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = calls(monkeypatch, checks, "_outside")
    rows = [("A", "X", 1), ("A", "Y", 1), ("B", "Z", 0)] * 20
    assert not check_memory(build(TENSORS, copies(*rows)))
    assert len(asked) == 2 * 2 * 3, "two statements of two accesses, each with its buffer and two views"


@given(programs())
def test_random_programs_with_a_buffer_that_is_too_small(program: Program) -> None:
    (ref,) = program.inputs
    assert not check_memory(program)
    smaller = tuple(replace(dim, size=max(1, dim.size - 1)) for dim in ref.dims)
    main = program.main
    views = [replace(view, dims=smaller) if view.name == ref.name else view for view in main.refinements]
    allocs = [replace(a, dims=smaller) if a.name == ref.name else a for a in program.entry.refinements]
    inner = replace(main, refinements=tuple(views))
    small = replace(program, entry=replace(program.entry, refinements=tuple(allocs), statements=(inner,)))
    assume(not verify_structural(small))
    try:
        interpret(small, {ref.name: np.zeros([dim.size for dim in smaller], np.int32)})
        fails = False
    except ExecutionError as error:
        fails = "touches element" in str(error)
    assert bool(check_memory(small)) == fails
