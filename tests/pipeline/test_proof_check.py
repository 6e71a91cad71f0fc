"""The check of the input, before proofs of passes: what it cannot decide is told, or an error."""

from __future__ import annotations

import pytest

import stripe
from stripe.pipeline.checks import proof
from stripe.verify.assumptions import Policy
from stripe.verify.program import Finding, Instance
from stripe.verify.proof.witness import Unknown


@pytest.mark.parametrize("part", ["the outputs", "pads of outputs"])
def test_what_is_undecided_is_told_or_fails(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = stripe.parse("function (A[N=4]) -> (B) { B = A + A; }")
    if part == "the outputs":
        finding = Finding("more than 5 isl operations", part, None, Instance((0,), "p"), unknown=True)
        monkeypatch.setattr(proof, "check_program", lambda _: [finding])
    else:
        monkeypatch.setattr(proof, "prove_pads", lambda _: Unknown("more than 5 isl operations"))
    lines: list[str] = []
    proof.check_input(program, lines.append, "p.tile")
    (line,) = lines
    assert part in line
    assert "more than 5 isl operations" in line
    with pytest.raises(proof.ProofError, match="not proved to be right in itself"):
        proof.check_input(program, lines.append, "p.tile", Policy(unknown_fails=True))
