"""The list of single cases that take long."""

from __future__ import annotations

import pytest

from tests.support.tiers import LONG_TESTS


def test_long_cases_are_there(pytestconfig: pytest.Config) -> None:
    """A renamed case would be a quick one again."""
    for case in LONG_TESTS:
        file, _, name = case.partition("::")
        text = (pytestconfig.rootpath / file).read_text("utf-8")
        assert name == "RUN" or f"def {name.partition('[')[0]}(" in text, case
