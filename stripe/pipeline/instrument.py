"""The one interface through which dumps, timing, verification, remarks and reproducers watch a run of passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from stripe.ir import Program
from stripe.passes.base import Pass, Remark


@dataclass(frozen=True, slots=True)
class PassEntry:
    """A pass with its options and the name that the pass list gives it."""

    name: str
    pass_: Pass
    tune: tuple[tuple[str, tuple[JsonValue, ...]], ...] = ()
    """Options with the values that tuning may try beside the pass's own."""
    optional: bool = False
    """Whether programs are expected in which no block has its tags."""

    @property
    def label(self) -> str:
        """The name in messages: `'fuse_relu' (fusion)`, or `'dce'` where both names are the same."""
        kind = self.pass_.pass_name
        return f"'{self.name}'" if self.name == kind else f"'{self.name}' ({kind})"


class InternalFault(Exception):
    """A fault of ours, not of the user: a pass that crashed or produced invalid IR.

    `details` has one finding per line; `reproducer` says where the crash reproducer lies once it is written.
    """

    exit_status = 70

    def __init__(self, reason: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details
        self.reproducer: Path | None = None


MOST_FINDINGS = 10
"""Findings that a fault shows."""


def first_lines(findings: Sequence[object]) -> tuple[str, ...]:
    """The first findings as details of a fault, and the number of the others."""
    more = len(findings) - MOST_FINDINGS
    lines = [line for finding in findings[:MOST_FINDINGS] for line in str(finding).splitlines()]
    return (*lines, *([f"… and {more} more"] if more > 0 else ()))


class Instrument:
    """Watches a run; each method does nothing unless a client overrides it.

    Of several clients, `before` is called from the last to the first and all others from the first to the last, so that
    the first client stands closest to the pass.
    """

    def begin(self, program: Program) -> None:
        """The program before the first pass."""

    def before(self, entry: PassEntry, program: Program) -> None:
        """Just before a pass."""

    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        """Just after a pass; the same object twice when it changed nothing. An exception ends the run."""

    def depends_on_list(self, entry: PassEntry) -> None:
        """The result of the running pass depends on the other entries: on the price of a candidate, which those behind
        it decide too, or on the words of all."""

    def remark(self, entry: PassEntry, remark: Remark) -> None:
        """A remark of the running pass."""

    def failed(self, entry: PassEntry, program: Program, error: Exception) -> None:
        """The pass, or a client after it, raised `error`; `program` is the input of the pass."""

    def end(self, program: Program) -> None:
        """The program after the last pass."""
