"""The policy of a user: what is checked, and which answers of proofs count as agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from stripe.verify.assumptions import ALL, Assumption, parse_assumptions

Verify: TypeAlias = Literal["none", "structural", "exact"]
"""The level of the checks after each pass; `stripe/pipeline/checks/levels.py` has the checks."""
VerifyCode: TypeAlias = Literal["none", "structural"]
"""The level of the checks of a program that becomes code."""
Unproved: TypeAlias = Literal["run", "fail"]
"""Without a proof: both programs run and are compared, or the answer is a failure."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The answers that a user accepts: proofs under the `assumed` assumptions, and *unknown* unless it fails."""

    assumed: frozenset[Assumption] = ALL
    unknown_fails: bool = False

    @classmethod
    def of(cls, assume: str, unknown: str) -> Policy:
        """The policy of `--assume` and `--verify-unknown`, one of `Unproved`. Raises ValueError for a word that is
        no assumption."""
        return cls(parse_assumptions(assume), unknown == "fail")


ANY = Policy()
"""Proofs under all assumptions, and *unknown* where running agrees."""
