"""The policy of a user: which answers of proofs count as agreement."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.verify.assumptions import ALL, Assumption, parse_assumptions


@dataclass(frozen=True, slots=True)
class Policy:
    """The answers that a user accepts: proofs under the `assumed` assumptions, and *unknown* unless it fails."""

    assumed: frozenset[Assumption] = ALL
    unknown_fails: bool = False

    @classmethod
    def of(cls, assume: str, unknown: str) -> Policy:
        """The policy of `--assume` and `--verify-unknown` (`run`, `fail`). Raises ValueError for a word that is no
        assumption."""
        return cls(parse_assumptions(assume), unknown == "fail")


ANY = Policy()
"""Proofs under all assumptions, and *unknown* where running agrees."""
