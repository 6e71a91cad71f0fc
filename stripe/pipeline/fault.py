"""Faults of passes, with what was found as details."""

from __future__ import annotations

from collections.abc import Sequence


class InternalFault(Exception):
    """A fault of ours, not of the user: a pass that crashed or produced invalid IR.

    `details` has one finding per line.
    """

    def __init__(self, reason: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details


MOST_FINDINGS = 10
"""Findings that a fault shows."""


def first_lines(findings: Sequence[object]) -> tuple[str, ...]:
    """The first findings as details of a fault, and the number of the others."""
    more = len(findings) - MOST_FINDINGS
    lines = [line for finding in findings[:MOST_FINDINGS] for line in str(finding).splitlines()]
    return (*lines, *([f"… and {more} more"] if more > 0 else ()))
