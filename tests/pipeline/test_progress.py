"""Progress inside one long step."""

from __future__ import annotations

import threading

from stripe.ir import Program
from stripe.passes.base import PassContext
from stripe.passes.dce import DeadCodeElimination
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.printing import Progress
from stripe.pipeline.progress import ElapsedLine
from tests.support.programs import load


def test_a_long_step_has_a_line_that_is_renewed_and_disappears() -> None:
    lines: list[str] = []
    twice = threading.Event()

    def write(text: str) -> None:
        lines.append(text)
        if len(lines) == 2:
            twice.set()

    with ElapsedLine(write, "interpreting", every=0.01):
        assert twice.wait(30)
    assert lines[0].startswith("\r\x1b[Kinterpreting, 0 s")
    assert lines[-1] == "\r\x1b[K"


def test_a_short_step_shows_nothing() -> None:
    lines: list[str] = []
    with ElapsedLine(lines.append, "interpreting", every=600):
        pass
    assert lines == []


def test_a_long_pass_is_named_while_it_runs() -> None:
    lines: list[str] = []
    shown = threading.Event()

    def write(text: str) -> None:
        lines.append(text)
        shown.set()

    class Slow(DeadCodeElimination):
        def run(self, program: Program, context: PassContext) -> Program:
            assert shown.wait(30)
            return program

    PassManager((PassEntry("slow", Slow()),), None, (Progress(write, 1),)).run(
        load("verify/enumeration/many_points_are_unknown")
    )
    assert lines[0].startswith("\r\x1b[K[1/1] slow, ")
    assert lines[-1] == "\r\x1b[K"
