"""`--verify exact` runs the result with its buffers at their addresses, and dependences may not get lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stripe.ir import Program, parse_program
from stripe.pipeline.checks.dependences import DependenceCheck
from stripe.pipeline.checks.proof import ExactCheck, ProofError
from stripe.pipeline.fault import InternalFault
from stripe.pipeline.passlist import parse_passes
from stripe.tile import compile_tile
from stripe.verify.policy import ANY
from stripe.verify.proof import judge as judging
from stripe.verify.proof.witness import Equal

GOLDEN = Path(__file__).parents[1] / "golden"
PLACED = (GOLDEN / "trust" / "placed.stripe").read_text()
UNITS = (GOLDEN / "memory_placement" / "units.stripe").read_text()


def silent(_text: str) -> None:
    pass


def moved(text: str) -> Program:
    """The program with all buffers at address 0."""
    return parse_program(
        re.sub(r"(#placed )?(#\w+ )?none new@0x[0-9a-f]+", r"#placed \2none new@0x00000000", text)
    )


def test_right_addresses_change_nothing() -> None:
    program = parse_program(PLACED)
    lines: list[str] = []
    check = ExactCheck(lines.append, ANY)
    check.begin(program)
    check.end(program)
    assert lines == ["verify: addresses: ran with every buffer at its address on 5 sets of data: equal\n"]


@pytest.mark.parametrize("text", [PLACED, UNITS], ids=["placed", "units"])
def test_buffers_that_overlap_are_found_by_running(text: str) -> None:
    program = moved(text)
    check = ExactCheck(silent, ANY)
    check.begin(program)
    with pytest.raises(ProofError, match="at their addresses the program computes something else"):
        check.end(program)


def test_the_result_runs_against_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof that errs is found by running both, in a list of passes and of two programs."""
    monkeypatch.setattr(judging, "prove_equal", lambda *_, **__: Equal())
    before, after = (
        compile_tile(f"function (A[N=4]: fp32) -> (O) {{ O = A * {n}.0; }}", "p") for n in (2, 3)
    )
    (entry,) = parse_passes("dce")
    check = ExactCheck(silent, ANY)
    check.begin(before)
    check.after(entry, before, after)
    with pytest.raises(InternalFault, match="the passes changed the meaning of the program"):
        check.end(after)
    assert judging.judge(before, after).answer == "different"


def test_a_pass_that_loses_a_dependence_is_at_fault() -> None:
    before, after = parse_program(PLACED), parse_program(PLACED.replace("3[2]: ", "3: "))
    (entry,) = parse_passes("dce")
    check = DependenceCheck()
    check.begin(before)
    with pytest.raises(InternalFault, match="pass 'dce' lost dependences"):
        check.after(entry, before, after)


@pytest.mark.parametrize("given", [True, False], ids=["all lost", "some left out"])
def test_a_pass_gives_all_dependences_or_loses_none(given: bool) -> None:
    """Also where it drops all, and where it is the first to give any."""
    ordered, bare = parse_program(PLACED), parse_program(re.sub(r"(\d+)\[[\d, ]+\]: ", r"\1: ", PLACED))
    some = parse_program(PLACED.replace("3[2]: ", "3: "))
    (entry,) = parse_passes("dce")
    before, after = (ordered, bare) if given else (bare, some)
    check = DependenceCheck()
    check.begin(before)
    with pytest.raises(InternalFault, match=f"pass 'dce' {'lost' if given else 'left out'} dependences"):
        check.after(entry, before, after)
