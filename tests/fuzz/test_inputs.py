"""A short run of `make fuzz-input`, the same cases each time."""

from __future__ import annotations

import pytest

from tests.fuzz.inputs import fuzz


@pytest.mark.long
def test_no_mutated_input_is_a_fault_or_hangs() -> None:
    outcome = fuzz(0, 40)
    assert outcome.failures == {}
    assert sum(outcome.statuses.values()) == 40
    assert len(outcome.formats) > 5
