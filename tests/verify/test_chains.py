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
