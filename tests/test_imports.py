"""The tools and benchmarks, which no other test runs as a whole, find the names that they import."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for folder in ("tools", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.stem != "__main__" and "peers" not in path.parts
]


@pytest.mark.parametrize("folder", ["tools", "benchmarks"])
def test_modules_are_imported(folder: str) -> None:
    mine = [name for name in MODULES if name.split(".")[0] == folder]
    assert len(mine) > 5
    for name in mine:
        importlib.import_module(name)
