"""Long programs are proved buffer by buffer: the work grows with what changed, and no proof runs out of steps.

With a limit of isl's steps far below what all layers at once would take, fused and scheduled chains are still proved.
"""

from __future__ import annotations

import pytest
from typing_extensions import override

from benchmarks import programs
from benchmarks.passes import shipped
from stripe.ir import Program
from stripe.pipeline.instrument import Instrument, PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.verify.exact import prove_equal
from stripe.verify.witness import Different, Equal, Verdict

STEPS = 400_000


class _Proofs(Instrument):
    def __init__(self) -> None:
        self.found: list[tuple[str, Verdict, Program, Program]] = []

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        self.found.append((entry.name, prove_equal(before, after, operations=STEPS), before, after))


@pytest.mark.parametrize("name", ["dsp_conv", "slides"])
def test_chains_are_proved_within_few_steps(name: str) -> None:
    proofs = _Proofs()
    shipped(name).run(programs.lowered(programs.convolutions(23)), proofs)
    assert [entry for entry, verdict, _, _ in proofs.found if not isinstance(verdict, Equal)] == []


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
        "autotile{reqs=[kernel],max_sizes_product=8,outer_set=[outer],inner_set=[inner]},peel{reqs=[kernel]},"
        "fusion{a_reqs=[kernel],b_reqs=[kernel],fused_set=[kernel,outer]}"
    )
    before = programs.lowered(RESHAPED)
    after = PassManager(parse_passes(passes)).run(before)
    assert after != before
    assert prove_equal(before, after, operations=STEPS) == Equal()
