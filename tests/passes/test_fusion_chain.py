"""Long chains of element-wise operations: the block that grows is not made anew with each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

import stripe
from stripe.ir import Block, Program
from stripe.passes.fusion import fusion
from stripe.passes.fusion.build import Fused, extended, fuse
from stripe.passes.fusion.candidates import Contents
from stripe.passes.fusion.legality import FusionPlan
from stripe.rewrite.refusal import Refusal

FUSION = "fusion{a_reqs=[eltwise],b_reqs=[eltwise],fused_set=[eltwise]}"
PROGRAMS = {
    "sum": "(A[N=8], B[N], C[N], D[N]) -> (O) { O = A + B + C + D; }",
    "reused": "(A[N=8], B[N]) -> (O, P) { T = A + B; U = T * A; P = U + T; V = relu(P); O = V + B + A; }",
    "broadcast": "(A[N=8, M=6], B[M], C[N, L=1]) -> (O) { T = A + B; U = T * C; O = exp(U) + B * T; }",
    "turned": "(A[N=9]) -> (O) { T = A + A; U[i : N] = =(T[8 - i]); V = U + T; W[i : N] = +(V[i]); O = W * T; }",
    "conv": """(I[X=8, C=4], K[R=3, C, D=4], A[D], B[X, D]) -> (O) {
        T[x, d : X, D] = +(I[x + r - 1, c] * K[r, c, d]); O = relu(T + A) * B + T; }""",
    "index": """(A[N=8]) -> (O) {
        T = index(A, 0); U = A + as_float(T, 32); O = U * A + as_float(T, 32); }""",
}


def chain(terms: int) -> Program:
    names = [f"A{number}" for number in range(terms)]
    text = f"function ({', '.join(f'{name}[N=8]' for name in names)}) -> (O) {{ O = {' + '.join(names)}; }}"
    return stripe.parse(text)


def calls_of(work: Callable[[], object]) -> int:
    """The calls of Python functions in some work."""
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_the_work_is_linear_in_the_terms() -> None:
    found: dict[int, int] = {}
    for terms in (20, 100, 200, 400):  # the first loads what is loaded once
        program = chain(terms)
        found[terms] = calls_of(lambda program=program: stripe.run_passes(program, FUSION, verify="none"))
    assert found[400] - found[200] < 2.2 * (found[200] - found[100])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("options", ["", "tiles={i1=2},", "b_inner_set=[inner],"])
def test_a_block_that_is_extended_is_the_one_that_is_made_anew(
    name: str, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = stripe.parse(f"function {PROGRAMS[name]}")
    seen = 0

    def compared(a: Block, b: Block, plan: FusionPlan, contents: Contents) -> Fused | Refusal | None:
        nonlocal seen
        known = Contents.of(a)
        assert (contents.places, contents.scalars) == (known.places, known.scalars)
        assert (contents.by_source, contents.moving) == (known.by_source, known.moving)
        quick, slow = extended(a, b, plan, contents), fuse(a, b, plan)
        if isinstance(quick, Fused):
            assert isinstance(slow, Fused)
            assert (quick.block, quick.first, quick.local) == (slow.block, slow.first, slow.local)
            seen += 1
        elif quick is not None:
            assert quick == slow
        return quick

    monkeypatch.setattr(fusion, "extended", compared)
    fused = stripe.run_passes(
        program, f"fusion{{{options}a_reqs=[kernel],b_reqs=[kernel],fused_set=[kernel]}}", verify="exact"
    )
    assert fused is not program
    assert seen or options.startswith("tiles")
