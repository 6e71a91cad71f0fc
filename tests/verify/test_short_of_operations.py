"""What the proof says when isl may do little: *unknown* at worst, found by fuzzing."""

from __future__ import annotations

import islpy as isl
import pytest

from stripe.ir import Program
from stripe.passes.base import PassContext
from stripe.passes.fusion.fusion import Fusion
from stripe.passes.localize import Localize
from stripe.passes.unroll import Unroll
from stripe.tile import compile_tile
from stripe.verify import soundness as checks
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal, Unknown
from stripe.verify.soundness import check_soundness
from tests.support.programs import load

SUMS_OF_WHAT_IS_NEVER_THERE = """function (A[X=2, Y=6]: fp16, B[M=7]: i8) -> (T4, T5) {
    T0[i, c : 5, 6] = >(A[3*i + k, c]), k < 2;
    T1 = as_float(T0, 32) < T0 ? T0 : T0;
    T2[i, c : 6, 6] = *(T1[2*i + k - 2, c]), k < 2;
    T3 = as_int(T2, 8);
    T4[i : 6] = +(T3[i + 2*k - 1, c] * T0[k, c]);
    T5[-1*i, k + 3 : 6, 6] = +(T4[-1*k + 1] * T4[k + -1]), i < 1, i + 1 < 6 default T3;
}"""


@pytest.mark.long
def test_a_term_that_contributes_nowhere_is_no_difference() -> None:
    before = compile_tile(SUMS_OF_WHAT_IS_NEVER_THERE, "sums.tile", {})
    after = Fusion().run(before, PassContext())
    assert after is not before
    for operations in (100_000, 1_000_000, 4_000_000):
        assert not isinstance(prove_equal(before, after, operations=operations), Different)


RESHAPES_OF_RESHAPES = """function (A[M=12, N=10], W[K=15, L=7]) -> (Y) {
    T0 = reshape(A, 8, 15);
    T1 = reshape(T0, 20, 6);
    T2 = reshape(T1, 5, 24);
    T3 = reshape(T2, 3, 40);
    T4 = reshape(T3, 8, 15);
    T5[i, j : 8, 7] = +(T4[i, k] * W[k, j]);
    T6 = reshape(T5, 7, 8);
    T7 = reshape(T6, 14, 4);
    T8 = reshape(T7, 2, 28);
    T9[i, j : 28, 2] = =(T8[j, i]);
    T10 = reshape(T9, 7, 8);
    Y = reshape(relu(T10), 4, 14);
}"""


def test_unrolled_statements_are_compared_as_few_relations() -> None:
    program, context = compile_tile(RESHAPES_OF_RESHAPES, "reshapes.tile", {}), PassContext()
    before = Localize().run(Fusion().run(program, context), context)
    after = Unroll(reqs=("kernel",)).run(before, context)
    assert after is not before
    assert isinstance(prove_equal(before, after, operations=200_000), Equal)


def test_a_proof_without_processor_time_is_unknown() -> None:
    program = compile_tile("function (A[N=8]) -> (O) { O[] = +(A[i]); }", "sum.tile", {})
    other = compile_tile("function (A[N=8]) -> (O) { O[] = +(A[7 - i]); }", "sum.tile", {})
    found = prove_equal(program, other, seconds=0)
    assert isinstance(found, Unknown)
    assert "processor time" in found.reason
    assert isinstance(prove_equal(program, other), Equal)


class _Failing:
    """The accesses of a program at which isl fails."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @property
    def by_statement(self) -> None:
        raise isl.Error("basic map is inconsistent")


def test_an_isl_failure_in_the_accesses_of_a_program_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "Reaching", _Failing)
    (finding,) = check_soundness(load("verify/enumeration/many_points_are_unknown"))
    assert finding.unknown
    assert "isl failed" in str(finding)
