"""The pass that CONTRIBUTING.md walks through works as printed there, and so does its golden test."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stripe.passes import registry
from support.golden import run_test

PAGE = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text("utf-8")


def _block(language: str) -> str:
    """The one code block of the page in `language`."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return text


def test_the_example_pass_passes_its_golden_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("stripe.passes.tag_hot")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(_block("python"), "CONTRIBUTING.md", "exec"), vars(module))
    registered = re.search(r'`"(tag_hot)": "(\S+)",`', PAGE)
    assert registered is not None
    monkeypatch.setitem(registry.BUILTIN, registered[1], registered[2])
    golden = tmp_path / "tag_hot.tile"
    golden.write_text(_block("tile"), "utf-8")
    run_test(golden)
