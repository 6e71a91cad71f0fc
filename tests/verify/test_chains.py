"""Long programs are proved buffer by buffer: the work grows with what changed, and no proof runs out of steps.

With a limit of isl's steps far below what all layers at once would take, fused and scheduled chains are still proved.
"""

from __future__ import annotations

import pytest
from typing_extensions import override

from benchmarks import programs
from benchmarks.passes import shipped
from stripe.ir import Program
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal, Verdict
from tests.verify.mutate import mutants

STEPS = 400_000


class _Proofs(Instrument):
    def __init__(self) -> None:
        self.found: list[tuple[str, Verdict, Program, Program]] = []

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        self.found.append((entry.name, prove_equal(before, after, operations=STEPS), before, after))


@pytest.mark.long
@pytest.mark.parametrize("name", ["dsp_conv", "slides"])
def test_chains_are_proved_within_few_steps(name: str) -> None:
    proofs = _Proofs()
    shipped(name).run(programs.lowered(programs.convolutions(23)), proofs)
    assert [entry for entry, verdict, _, _ in proofs.found if not isinstance(verdict, Equal)] == []


@pytest.mark.long
def test_a_changed_layer_in_the_middle_is_found() -> None:
    text = programs.convolutions(11)
    spoiled = text.replace(
        "T3[x, y, co : H, W, C] = +(T2[x + i - 1,", "T3[x, y, co : H, W, C] = +(T2[x + i - 2,"
    )
    assert spoiled != text
    scheduled = shipped("slides").run(programs.lowered(spoiled))
    assert isinstance(prove_equal(programs.lowered(text), scheduled), Different)


RESHAPED = """
function (A[M=4, N=3, K=5]: fp32) -> (O) {
  T = reshape(A, 20, 1, 3);
  S = T + T * 2;
  R = reshape(S, 30, 2);
  O = R * R + R * R;
}
"""


def test_reshapes_that_are_read_several_times_are_proved() -> None:
    """What tiled and fused copies went through does not pile up: this took over a minute before it was *unknown*."""
    passes = (
        "autotile{reqs=[kernel],max_total_size=64,outer_set=[outer],inner_set=[inner]},peel{reqs=[kernel]},"
        "fusion{a_reqs=[kernel],b_reqs=[kernel],fused_set=[kernel,outer]}"
    )
    before = programs.lowered(RESHAPED)
    after = PassManager(parse_passes(passes)).run(before)
    assert after != before
    assert prove_equal(before, after, operations=STEPS) == Equal()


SMALL_CHAIN = """
function (T0[X=9, Y=2]: i8, W[N=3]: i8) -> (T3) {
  T1[x, y : 10, Y] = <(T0[x + k - 1, y]), k < 2;
  T2[x, y : 8, Y] = +(T1[x + k, y] * T1[x + k, y]), k < 3;
  T3[x, y : 4, Y] = +(T2[2*x + k - 1, y] * W[k]);
}
"""


def test_reductions_of_which_some_terms_are_used_nowhere() -> None:
    """A wrong place in a ring gives elements several terms, of which those that are used have one: once a KeyError."""
    before = programs.lowered(SMALL_CHAIN)
    passes = "fusion{overlap=keep,max_steps=3},split_reduction{reqs=[contraction],vector_bytes=8,vectors=1}"
    after = PassManager(parse_passes(passes)).run(before)
    assert prove_equal(before, after) == Equal()
    ring = [m for m in mutants(after) if "mod" in m.what and m.kind == "lost term"]
    assert ring
    for mutant in ring:
        assert isinstance(prove_equal(before, mutant.program), Different), str(mutant)


def test_padding_with_zeros_is_proved_layer_by_layer() -> None:
    """All layers at once take more steps than one question may; a layer takes few, where no value is infinite."""
    before = programs.lowered(programs.convolutions(9).replace("i8", "fp32"))
    padded = PassManager(parse_passes("pad{allow_nonfinite=true,prime_threshold=0}")).run(before)
    verdict = prove_equal(before, padded, operations=20_000)
    assert isinstance(verdict, Equal)
    assert Assumption.FINITE in verdict.assumptions
