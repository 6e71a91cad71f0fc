"""The promises of every registered pass: valid structure, equal results, no new object without a change."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, reject, settings

from stripe.hw import load_hardware
from stripe.ir import ConfigError, Program, print_program, verify_structural
from stripe.passes.registry import BUILTIN, find_pass
from stripe.pipeline.instrument import Instrument, PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from tests.passes.kernels import program_of
from tests.passes.programs import assert_same_results
from tests.passes.random_kernels import Made, programs


class Promises(Instrument):
    """Checks each pass of a run."""

    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        assert verify_structural(after) == [], print_program(after)
        assert after is before or after != before, f"{entry.label} changed nothing and made a new program"


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_a_pass_keeps_its_promises(name: str) -> None:
    """With the options, the entries before and the machine of its example."""
    case = find_pass(name).example
    entries = parse_passes(",".join([*case.after, f"{name}{{{case.options}}}"]))
    manager = PassManager(entries, load_hardware(case.hardware), (Promises(),))

    @settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    @given(programs())
    def check(made: Made) -> None:
        kernels, shapes, outputs = made
        before = program_of(kernels, shapes, outputs)
        try:
            after = manager.run(before)
        except ConfigError:  # a machine too small for the program
            reject()
        assert_same_results(before, after)

    check()
