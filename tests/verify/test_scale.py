"""Programs with many statements: readers of one buffer are not compared with each other, and a chain of kernels may be
deeper than Python's stack."""

from __future__ import annotations

from itertools import pairwise

import pytest

from stripe.ir import Program
from stripe.passes.base import PassContext
from stripe.passes.compute_deps import ComputeDeps
from stripe.passes.layout.layout import Layout
from stripe.poly import deps
from stripe.tile import compile_tile
from stripe.verify.machine import dependences, schedule
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal
from tests.support.counting import calls

READERS = 30


@pytest.fixture(scope="module")
def star() -> Program:
    """Kernels that all read one tensor, and nothing else of each other."""
    names = [f"T{number}" for number in range(READERS)]
    body = "\n".join(f"  {name}[i : N] = +(A[i]);" for name in names)
    return compile_tile(f"function (A[N=8]: i8) -> ({', '.join(names)}) {{\n{body}\n}}\n", "<star>", {})


def test_dependences_of_many_readers(star: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made = calls(monkeypatch, vars(deps)["_Use"], "common")
    result = ComputeDeps().run(star, PassContext())
    assert all(not statement.deps for statement in result.main.statements)
    assert len(made) <= READERS


def test_the_checker_with_many_readers(star: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made = calls(monkeypatch, dependences, "is_in")
    assert schedule.check_schedule(star) == []
    assert len(made) <= READERS


@pytest.mark.long
def test_a_chain_of_repacked_temporaries_is_proved_without_recursion() -> None:
    names = [f"T{number}" for number in range(130)]
    links = " ".join(
        f"{name}[x : 8] = +({source}[x + k - 1] * W[k]);" for source, name in pairwise(["A", *names])
    )
    text = f"function (A[N=8]: i8, W[K=3]: i8) -> (B) {{ {links} B = T129 + T129; }}"
    program = compile_tile(text, "<chain>", {})
    packed = Layout(alloc_reqs=("tmp",), block={0: 4}).run(program, PassContext())
    assert isinstance(prove_equal(program, packed), Equal)
