"""A pytest plugin: the fixture that registers passes which misbehave on purpose."""

from __future__ import annotations

import sys

import pytest

from stripe.passes import registry
from tests.support import programs


@pytest.fixture
def bad_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes of `tests.support.programs` under their names, as if their module were one of `stripe.passes`."""
    monkeypatch.setitem(sys.modules, "stripe.passes.misbehaving", programs)
    for pass_class in programs.MISBEHAVING:
        monkeypatch.setitem(registry.BUILTIN, pass_class.pass_name, f"misbehaving:{pass_class.__name__}")
