"""A pytest plugin: the fixture that registers passes which misbehave on purpose."""

from __future__ import annotations

import pytest

from stripe.passes import registry
from support.programs import MISBEHAVING


@pytest.fixture
def bad_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the passes of `support.programs` known by their names."""
    for pass_class in MISBEHAVING:
        monkeypatch.setitem(registry.BUILTIN, pass_class.pass_name, f"support.programs:{pass_class.__name__}")
