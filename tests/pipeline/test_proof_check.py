"""The check of the input, before proofs of passes: what it cannot decide is told, or an error."""

from __future__ import annotations

from pathlib import Path

import pytest

import stripe
from stripe.cli.start import opt
from stripe.pipeline.checks import proof
from stripe.verify.policy import Policy
from stripe.verify.proof.witness import Unknown
from stripe.verify.soundness import Finding, Instance


@pytest.mark.parametrize("part", ["the outputs", "pads of outputs"])
def test_what_is_undecided_is_told_or_fails(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = stripe.parse("function (A[N=4]) -> (B) { B = A + A; }")
    if part == "the outputs":
        finding = Finding("more than 5 isl operations", part, None, Instance((0,), "p"), unknown=True)
        monkeypatch.setattr(proof, "check_soundness", lambda _: [finding])
    else:
        monkeypatch.setattr(proof, "prove_pads", lambda _: Unknown("more than 5 isl operations"))
    lines: list[str] = []
    proof.require_sound(program, lines.append, "p.tile")
    (line,) = lines
    assert part in line
    assert "more than 5 isl operations" in line
    with pytest.raises(proof.ProofError, match="not proved to be right in itself"):
        proof.require_sound(program, lines.append, "p.tile", Policy(unknown_fails=True))


def test_code_without_checks_needs_a_decided_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the structure is verified, too: emitted C checks nothing."""
    finding = Finding("more than 5 isl operations", "the outputs", None, Instance((0,), "p"), unknown=True)
    monkeypatch.setattr(proof, "check_soundness", lambda _: [finding])
    path = tmp_path / "p.stripe"
    path.write_text(f"{stripe.parse('function (A[N=4]) -> (B) { B = A + A; }')}\n")
    words = [str(path), "--emit", "c", "-o", str(tmp_path / "p.c")]
    assert opt([*words, "--verify-unknown", "fail"]) == 3
    assert "not proved to be right in itself" in capsys.readouterr().err
    assert not (tmp_path / "p.c").exists()
    assert opt(words) == 0
