"""Acceptance of a verdict by the policy of a user: the one place where assumptions, unknowns and runs are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from stripe.verify.assumptions import Assumption
from stripe.verify.policy import Policy
from stripe.verify.proof.running import JointRun
from stripe.verify.proof.witness import Different, Equal, Unknown, Verdict

Answer: TypeAlias = Literal["equal", "equal under assumptions", "different", "not proved", "unknown"]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The answer in words, whether the policy accepts it, and the text about it. An accepted proof relies on
    `assumptions`."""

    answer: Answer
    accepted: bool
    text: str
    assumptions: tuple[Assumption, ...] = ()


def accept(verdict: Verdict, policy: Policy, run: JointRun | None = None, misplaced: str = "") -> Acceptance:
    """Acceptance of a verdict under `policy`. `run` has the results of both programs: a difference of them, or errors
    in what the second says of a machine (`misplaced`), refute any verdict; without a proof and without results nothing
    is accepted."""
    text, assumptions = str(verdict), ()
    accepted = False
    match verdict:
        case _ if misplaced or (run is not None and run.failed):
            answer: Answer = "different"
        case Equal(assumptions):
            refused = [flag for flag in assumptions if flag not in policy.assumed]
            answer, accepted = ("equal under assumptions", False) if refused else ("equal", True)
            text = "\n".join(f"equal only under {flag}: {flag.text}" for flag in refused) or text
        case Different(certain=True):
            answer = "different"
        case Different():
            answer, text = "not proved", f"not proved: {text.removeprefix('error: ')}"
        case Unknown():
            answer = "unknown"
            accepted = not policy.unknown_fails and (run is None or run.agrees)
    lines = [text]
    if run is not None:
        agrees = ", which does not confirm the difference" if answer == "not proved" and run.sets else ""
        lines.append(f"{run}{agrees}")
    lines += [misplaced] if misplaced else []
    return Acceptance(answer, accepted, "\n".join(lines), assumptions if accepted else ())
