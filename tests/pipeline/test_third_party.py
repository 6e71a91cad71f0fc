"""Passes and targets of other packages, through the entry-point groups `stripe.passes` and `stripe.targets`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stripe.cli.start import opt as main
from stripe.config import registry
from tests.support.programs import MATMUL

MODULE = """
from typing import ClassVar
from pydantic import Field
from stripe.emit.targets import ProgramTarget
from stripe.passes.base import Pass

class Names(ProgramTarget):
    '''The names of the tensors.'''
    target_name: ClassVar[str] = "names"
    end: str = "."

    def emit(self, program):
        return " ".join(ref.name for ref in program.entry.refinements) + self.end

class Nothing(Pass):
    '''Does nothing, with an option.'''
    pass_name: ClassVar[str] = "nothing"
    level: int = Field(default=3, ge=0, description="how much of nothing")

    def run(self, program, context):
        context.missed("", f"did nothing at level {self.level}")
        return program
"""


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package that registers a good pass and three broken ones; gives a program to run them on."""
    folder = tmp_path / "site"
    info = folder / "other_passes-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-passes\nVersion: 1.0\n", "utf-8")
    places = {
        "nothing": "other_passes:Nothing",
        "gone": "other_passes_gone:X",
        "nameless": "other_passes:Y",
        "no_pass": "json:dumps",
    }
    lines = [f"{name} = {place}" for name, place in places.items()]
    lines += ["[stripe.targets]", "names = other_passes:Names"]
    (info / "entry_points.txt").write_text("\n".join(["[stripe.passes]", *lines, ""]), "utf-8")
    (folder / "other_passes.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(registry, "registered", registry.registered.__wrapped__)
    program = tmp_path / "mm.stripe"
    program.write_text(MATMUL, "utf-8")
    yield program


def test_a_pass_of_another_package_runs(other_package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(other_package), "--passes", "nothing{level=5}", "--remarks"]) == 0
    assert capsys.readouterr().err == "remark: nothing: missed: did nothing at level 5\n"
    assert main([str(other_package), "--passes", "nothin"]) == 2
    assert "did you mean 'nothing'?" in capsys.readouterr().err


def test_a_target_of_another_package_emits(other_package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(other_package), "--emit", "names{end=!}"]) == 2, "! is no letter of a word"
    assert main([str(other_package), "--emit", 'names{end="!"}']) == 0
    assert capsys.readouterr().out == "A B C!"
    assert main(["--list-targets", "names"]) == 0
    assert "The names of the tensors." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone", "cannot be loaded from 'other_passes_gone:X': ModuleNotFoundError"),
        ("nameless", "cannot be loaded from 'other_passes:Y': AttributeError"),
        ("no_pass", "is no Pass"),
    ],
)
def test_a_broken_package_is_named(
    name: str, reason: str, other_package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(other_package), "--passes", name]) == 2
    assert reason in capsys.readouterr().err
