"""Answers of the proof, printed like errors with their place in the IR."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from stripe.ir import Path, path_text
from stripe.ir.frozen import replace
from stripe.verify.assumptions import Assumption
from stripe.verify.interface import InterfaceChange, LogicalForm


@dataclass(frozen=True, slots=True)
class Instance:
    """A statement instance: the path of a statement, and a point of the blocks around it."""

    path: Path
    block: str
    point: tuple[tuple[str, int], ...] = ()

    def of_form(self, form: LogicalForm) -> Instance:
        """The place in a program of a place in its logical form."""
        if len(self.path) < 2:
            return self
        return replace(self, path=(self.path[0], max(0, self.path[1] - form.added), *self.path[2:]))

    def __str__(self) -> str:
        point = ", ".join(f"{name.partition('@')[0]}={value}" for name, value in self.point)
        return f"{self.block or 'block'} ({path_text(self.path)})" + (f" at {point}" if point else "")


@dataclass(frozen=True, slots=True)
class Side:
    """The contribution of one program to the element: the operands, and the store."""

    text: str
    place: Instance | None = None

    def of_form(self, form: LogicalForm) -> Side:
        return self if self.place is None else replace(self, place=self.place.of_form(form))

    def __str__(self) -> str:
        return self.text if self.place is None else f"{self.text}\n          by {self.place}"


@dataclass(frozen=True, slots=True)
class Witness:
    """One element of an output that the programs define differently (or the place of an error), and both operand
    tuples."""

    message: str
    buffer: str
    element: tuple[int, ...] | None
    before: Side
    after: Side
    cause: Witness | None = None

    @staticmethod
    def of_interface(change: InterfaceChange) -> Witness:
        return Witness(change.what, change.tensor, None, Side(change.before), Side(change.after))

    def of_forms(self, before: LogicalForm, after: LogicalForm) -> Witness:
        """The witness against the logical forms of two programs, with its places in the programs."""
        cause = None if self.cause is None else self.cause.of_forms(before, after)
        return replace(self, before=self.before.of_form(before), after=self.after.of_form(after), cause=cause)

    def __str__(self) -> str:
        element = "" if self.element is None else f"[{', '.join(map(str, self.element))}]"
        lines = [f"error: {self.buffer}{element}: {self.message}"]
        lines += [f"  before: {self.before}", f"  after:  {self.after}"]
        if self.cause is not None:
            cause = str(self.cause).removeprefix("error: ").splitlines()
            lines += [f"  first buffer that differs: {cause[0]}", *(f"  {line}" for line in cause[1:])]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Equal:
    """The programs compute the same, under the `assumptions` that the proof relies on. (Verdicts are compared by the
    answer alone.)"""

    assumptions: tuple[Assumption, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return "equal"


@dataclass(frozen=True, slots=True)
class Different:
    """The programs differ, at the witness. `certain`: the difference is one of interfaces, or an error of the second
    program, which running need not show."""

    witness: Witness
    certain: bool = False

    def __str__(self) -> str:
        return str(self.witness)


@dataclass(frozen=True, slots=True)
class Unknown:
    """The proof has no answer, for the given reason."""

    reason: str

    def __str__(self) -> str:
        return f"unknown: {self.reason}"


Verdict: TypeAlias = Equal | Different | Unknown
