"""Counts calls of a function: the work of an algorithm, where a test must not depend on time."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest


def calls(patch: pytest.MonkeyPatch, module: ModuleType | type, name: str) -> list[str]:
    """Gets an entry for each call of a function from now on."""
    function: Callable[..., object] = getattr(module, name)
    made: list[str] = []

    def counting(*arguments: object) -> object:
        made.append(name)
        return function(*arguments)

    patch.setattr(module, name, counting)
    return made
