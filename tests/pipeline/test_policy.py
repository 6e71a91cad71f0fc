"""Every route from a verdict to a user: under the strictest policy none of them accepts less than a proof."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import stripe
from stripe.api.compiling import Unproved
from stripe.cli.start import opt, reduce, run, sim
from stripe.pipeline.checks import bounds, proof
from stripe.verify import enumeration
from stripe.verify.assumptions import Assumption
from stripe.verify.policy import Policy
from stripe.verify.proof import judge as judging
from stripe.verify.proof.acceptance import accept
from stripe.verify.proof.running import JointRun
from stripe.verify.proof.witness import Different, Equal, Side, Unknown, Verdict, Witness
from stripe.verify.soundness import Finding, Instance

PADS = Path(__file__).parents[1] / "golden/layout/pads_under_assumptions.stripe"
PRODUCT = "function (A[I=4, K=8]: fp32, B[K, J=4]: fp32) -> (C) { C[i, j : I, J] = +(A[i, k] * B[k, j]); }"
TILE = "autotile{fixed={i:2,j:2,k:4}}"
STRICT, REFUSED = ["--assume", "none", "--verify-unknown", "fail"], 3
UNKNOWN = Unknown("more than 5 isl operations")

Command = Callable[[Path, Sequence[str]], int]


def _reduced(path: Path, policy: Sequence[str]) -> int:
    """The status of the command, as the reduction sees it: that goes on where the command ends with 3, and else ends
    with 1 at once."""
    test = " ".join(["stripe-opt {} --verify exact --passes", f"'{TILE}'", "-o /dev/null", *policy])
    status = reduce([*_out(path), "--exit-status", "3", "--test", test])
    assert status in (0, 1)
    return 0 if status else 3


def _status(action: Callable[[str, Unproved], object], policy: Sequence[str]) -> int:
    """The exit status of a call from Python: 3 for a ProofError and for an answer that is false."""
    try:
        found = action(policy[1], "fail") if policy else action("all", "run")
    except stripe.StripeError as error:
        return error.exit_status
    return 0 if found else 3


COMMANDS: dict[str, tuple[str, Command]] = {
    "each pass": ("equal input pads", lambda p, o: opt([*_out(p), "--verify", "exact", "--passes", TILE, *o])),
    "against": ("equal input pads", lambda p, o: opt([*_out(_tiled(p)), "--verify-against", str(p), *o])),
    "input alone": ("input pads", lambda p, o: opt([*_out(p), "--verify", "exact", *o])),
    "code": ("input pads", lambda p, o: opt([*_out(p), "--emit", "c", *o])),
    "code after passes": ("bounds", lambda p, o: opt([*_out(p), "--emit", "c", "--passes", TILE, *o])),
    "run": ("equal input pads", lambda p, o: run([str(p), "--verify", "exact", "--passes", TILE, *o])),
    "run as code": ("input pads", lambda p, o: run([str(p), "--engine", "c", *o])),
    "run as code after passes": (
        "input pads bounds", lambda p, o: run([str(p), "--engine", "c", "--passes", TILE, *o])
    ),
    "simulation": (
        "equal input pads",
        lambda p, o: sim([str(p), "--hw", "dsp_conv", "--verify", "exact", "--passes", TILE, *o]),
    ),
    "reduction": ("equal input pads", _reduced),
    "prove": (
        "equal input pads",
        lambda p, o: _status(
            lambda flags, without: stripe.prove(
                stripe.read(p), stripe.read(_tiled(p)), assume=flags, unknown=without
            ),
            o,
        ),
    ),
    "passes from Python": (
        "equal input pads",
        lambda p, o: _status(
            lambda flags, without: stripe.run_passes(
                stripe.read(p), TILE, verify="exact", assume=flags, unknown=without
            ),
            o,
        ),
    ),
}  # fmt: skip
ASKED = [(name, question) for name, (asked, _) in COMMANDS.items() for question in asked.split()]


def _out(path: Path) -> list[str]:
    return [str(path), "-o", str(path.parent / "out")]


def _tiled(path: Path) -> Path:
    """The program of a file, tiled, in a file beside it."""
    tiled = path.parent / "tiled.stripe"
    tiled.write_text(f"{stripe.run_passes(stripe.read(path), TILE)}\n")
    return tiled


def _undecided(_program: object) -> list[Finding]:
    return [Finding(UNKNOWN.reason, "this statement", None, Instance((0,), "p"), unknown=True)]


def _without_answer(question: str, patched: pytest.MonkeyPatch) -> None:
    """Takes the answer to one question away."""
    match question:
        case "equal":
            patched.setattr(judging, "prove_equal", lambda *_, **__: UNKNOWN)
            patched.setattr(enumeration, "decide", lambda *_, **__: UNKNOWN)
        case "input":
            patched.setattr(proof, "check_soundness", _undecided)
        case "pads":
            patched.setattr(proof, "prove_pads", lambda _: UNKNOWN)
        case _:
            patched.setattr(bounds, "check_memory", _undecided)


@pytest.mark.parametrize(("name", "question"), ASKED)
def test_no_route_accepts_an_unknown_that_fails(
    name: str, question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "product.stripe"
    path.write_text(f"{stripe.parse(PRODUCT)}\n")
    _without_answer(question, monkeypatch)
    command = COMMANDS[name][1]
    assert command(path, []) == 0
    assert command(path, ["--assume", "all", "--verify-unknown", "fail"]) == REFUSED


@pytest.mark.parametrize("name", [name for name, question in ASKED if question == "equal"])
def test_no_route_accepts_an_assumption_about_a_rewrite_that_is_not_granted(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "product.stripe"
    path.write_text(f"{stripe.parse(PRODUCT)}\n")
    assert COMMANDS[name][1](path, STRICT) == REFUSED
    assert COMMANDS[name][1](path, ["--assume", "float-order", *STRICT[2:]]) == 0


@pytest.mark.parametrize("name", [name for name, question in ASKED if question == "pads"])
def test_no_route_accepts_an_assumption_about_pads_that_is_not_granted(name: str, tmp_path: Path) -> None:
    """Elements of an output hold a pad where `finite` is granted alone."""
    path = tmp_path / "pads.stripe"
    lines = (line for line in PADS.read_text("utf-8").splitlines() if not re.match(r"// (RUN|\w+):", line))
    path.write_text("\n".join(lines) + "\n")
    command = COMMANDS[name][1]
    assert command(path, ["--assume", "float-order", *STRICT[2:]]) == REFUSED
    assert command(path, ["--assume", "all", *STRICT[2:]]) == 0


def test_one_function_accepts_verdicts() -> None:
    """All verdicts under all policies: the strictest accepts nothing but a proof without assumptions."""
    witness = Witness("it differs", "O", (0,), Side("a"), Side("b"))
    strict, lenient = Policy(frozenset(), unknown_fails=True), Policy()
    verdicts: list[Verdict] = [
        Equal((Assumption.FINITE,)), Different(witness), Different(witness, certain=True), UNKNOWN
    ]  # fmt: skip
    assert not any(accept(verdict, strict).accepted for verdict in verdicts)
    assert [accept(verdict, lenient).accepted for verdict in verdicts] == [True, False, False, True]
    assert accept(Equal(), strict).accepted
    assert not accept(Equal(), lenient, misplaced="error: two buffers overlap").accepted
    assert not accept(UNKNOWN, lenient, JointRun(2, failed="with seed 0: 'O' differs")).accepted


def test_neither_a_proof_nor_a_run_is_no_reason_to_accept() -> None:
    """Programs that are too large to run: nothing speaks for an unknown rewrite."""
    found = accept(UNKNOWN, Policy(), JointRun(0, not_run="not run: too large, some 300000000 points"))
    assert (found.answer, found.accepted) == ("unknown", False)
    assert accept(UNKNOWN, Policy(), JointRun(9)).accepted
    assert accept(UNKNOWN, Policy(), JointRun(2, allowed=("seed 0",))).accepted
    found = accept(UNKNOWN, Policy(), JointRun(2, allowed=("seed 0", "seed 1"), is_open=True))
    assert not found.accepted
    assert "assumptions leave the results open" in found.text
