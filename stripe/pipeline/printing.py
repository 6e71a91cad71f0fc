"""Clients that show programs, remarks and progress on a stream."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from stripe.ir import Program, print_program
from stripe.passes.base import Remark, RemarkKind
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.predictions import Prediction, differences, predictions
from stripe.pipeline.progress import ElapsedLine

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel


@dataclass(frozen=True, slots=True)
class Shown:
    """The programs to show: before and after passes by the name of an entry or a pass, and after changes."""

    before: Collection[str] = ()
    after: Collection[str] = ()
    after_all: bool = False
    after_change: bool = False
    diff: bool = False

    def any(self) -> bool:
        """Whether there is something to show."""
        return bool(self.before or self.after or self.after_all or self.after_change or self.diff)


class PrintPrograms(Instrument):
    """`--print-ir-before`, `--print-ir-after`, `--print-ir-after-all`, `--print-ir-after-change` and `--diff`."""

    def __init__(self, write: Callable[[str], None], shown: Shown) -> None:
        self._write = write
        self._shown = shown

    @override
    def before(self, entry: PassEntry, program: Program) -> None:
        if _named(entry, self._shown.before):
            self._write(f"// ----- before {entry.label} -----\n{print_program(program)}")

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        changed = before is not after
        shown = self._shown
        if shown.after_all or _named(entry, shown.after) or (changed and shown.after_change):
            text = print_program(after) if changed else "// (no change)\n"
            self._write(f"// ----- after {entry.label} -----\n{text}")
        if changed and shown.diff:
            from difflib import unified_diff

            lines = (print_program(before).splitlines(), print_program(after).splitlines())
            names = (f"before {entry.label}", f"after {entry.label}")
            self._write("".join(f"{line}\n" for line in unified_diff(*lines, *names, lineterm="")))

    @override
    def failed(self, entry: PassEntry, program: Program, error: Exception) -> None:
        self._write(f"// ----- pass {entry.label} failed; it was given -----\n{print_program(program)}")


def _named(entry: PassEntry, names: Collection[str]) -> bool:
    return entry.name in names or entry.pass_.pass_name in names


class Remarks(Instrument):
    """`--remarks`: `remark: ENTRY: applied|missed|analysis: BLOCK: …`, one line per remark; at the end the times that
    differ from the prices by which passes decided."""

    def __init__(self, write: Callable[[str], None], hardware: HardwareModel | None = None) -> None:
        self._write = write
        self._hardware = hardware
        self._predicted: dict[str, Prediction] = {}

    @override
    def remark(self, entry: PassEntry, remark: Remark) -> None:
        if remark.kind is not RemarkKind.WARNING:
            self._write(f"remark: {entry.name}: {remark}\n")
        self._predicted.update((each.statement, each) for each in predictions(entry, remark))

    @override
    def end(self, program: Program) -> None:
        if self._hardware is not None:
            for entry, remark in differences(self._predicted, program, self._hardware):
                self._write(f"remark: {entry.name}: {remark}\n")


class Warnings(Instrument):
    """Options without effect: `warning: ENTRY: …`, with and without `--remarks`."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    @override
    def remark(self, entry: PassEntry, remark: Remark) -> None:
        if remark.kind is RemarkKind.WARNING:
            self._write(f"warning: {entry.name}: {remark.message}\n")


class Progress(Instrument):
    """Says on a terminal which pass runs, and for how long, once it runs longer than a second."""

    def __init__(self, write: Callable[[str], None], total: int) -> None:
        self._write = write
        self._total = total
        self._count = 0
        self._line: ElapsedLine | None = None

    @override
    def before(self, entry: PassEntry, program: Program) -> None:
        self._count += 1
        self._line = ElapsedLine(self._write, f"[{self._count}/{self._total}] {entry.name}")
        self._line.__enter__()

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        self._end()

    @override
    def failed(self, entry: PassEntry, program: Program, error: Exception) -> None:
        self._end()

    def _end(self) -> None:
        if self._line is not None:
            self._line.__exit__(None, None, None)
            self._line = None
