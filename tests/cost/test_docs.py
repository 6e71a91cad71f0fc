"""The Python of docs/sim.md runs, and its commands do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from stripe.cli.start import sim as main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sim.md").read_text("utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_python_runs() -> None:
    (code,) = _blocks("python")
    exec(compile(code, "docs/sim.md", "exec"), {})


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = _blocks("sh")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for line in text.splitlines():
        assert main(shlex.split(line)[1:]) == 0, line
    assert {"report.json", "trace.json", "picture.svg"} <= {path.name for path in tmp_path.iterdir()}
