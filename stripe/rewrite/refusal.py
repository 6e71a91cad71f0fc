"""The answer of a rewrite that does not apply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a rewrite does not apply, with the numbers that decide it."""

    reason: str

    def __str__(self) -> str:
        return self.reason
