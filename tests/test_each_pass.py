"""Every pass, with what it needs before it, on every example: it finds work, and all that it does is proved.

What several passes need before them is run and proved once.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from stripe.hw.load import load_hardware
from stripe.ir import Program, parse_program
from stripe.passes.registry import BUILTIN, find_pass
from stripe.pipeline.checks.dependences import DependenceCheck
from stripe.pipeline.checks.proof import ExactCheck, require_sound
from stripe.pipeline.checks.structure import StructureCheck
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.verify.policy import ANY
from tests.support.compiled import EXAMPLES, lowered
from tests.support.tiers import some

GOLDEN = Path(__file__).resolve().parent / "golden"
machine = cache(load_hardware)


@cache
def proved(path: Path, lists: tuple[str, ...], hardware: str) -> tuple[Program, tuple[str, ...]]:
    """The program after some lists of passes, each pass proved, and the answers about the last list."""
    answers: list[str] = []
    if not lists:
        program = (
            lowered(path) if path.suffix == ".tile" else parse_program(path.read_text("utf-8"), path.name)
        )
        require_sound(program, answers.append)
    else:
        before, _ = proved(path, lists[:-1], hardware)
        checks = (
            StructureCheck(machine(hardware)),
            ExactCheck(answers.append, ANY, input_checked=True),
            DependenceCheck(),
        )
        program = PassManager(parse_passes(lists[-1]), machine(hardware), checks).run(before)
    # A program too large to be run at its addresses is proved all the same.
    told = [
        line
        for line in answers
        if not line.startswith("verify: assuming ") and "not run: too large" not in line
    ]
    assert [line for line in told if not line.endswith(": equal\n")] == [], path.name
    return program, tuple(told)


@pytest.mark.parametrize("name", some(sorted(BUILTIN), every=4))
def test_what_a_pass_does_to_the_examples_is_proved(name: str) -> None:
    case = find_pass(name).example
    lists = (*case.after, f"{name}{{{case.options}}}")
    programs = [*EXAMPLES, *(GOLDEN / program for program in case.programs)]
    changed = [path.name for path in programs if proved(path, lists, case.hardware)[1]]
    assert changed, f"{name} found nothing to do in any example"
