"""`--verify exact` runs a program with its buffers at their addresses, and dependences may not get lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stripe.ir import Program, parse_program
from stripe.pipeline.checks.machine import MachineCheck, run_at_addresses
from stripe.pipeline.checks.proof import ProofError
from stripe.pipeline.instrument import InternalFault
from stripe.pipeline.passlist import parse_passes

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
    assert run_at_addresses(parse_program(PLACED)) == ""


@pytest.mark.parametrize("text", [PLACED, UNITS], ids=["placed", "units"])
def test_buffers_that_overlap_are_found_by_running(text: str) -> None:
    program = moved(text)
    assert run_at_addresses(program) != ""
    with pytest.raises(ProofError, match="at their addresses the program computes something else"):
        MachineCheck(silent).end(program)


def test_a_pass_that_loses_a_dependence_is_at_fault() -> None:
    before, after = parse_program(PLACED), parse_program(PLACED.replace("3[2]: ", "3: "))
    (entry,) = parse_passes("dce")
    check = MachineCheck(silent)
    check.begin(before)
    with pytest.raises(InternalFault, match="pass 'dce' lost dependences"):
        check.after(entry, before, after)
