"""Programs as JSON are read back by all commands, with errors that name the JSON path."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from stripe.cli.start import opt, run
from tests.support.programs import MATMUL

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def made(tmp_path: Path, capsys: Capture) -> Path:
    """The matrix product as a file of JSON."""
    source, path = tmp_path / "mm.stripe", tmp_path / "mm.json"
    source.write_text(MATMUL, "utf-8")
    assert opt([str(source), "--emit", "json", "-o", str(path)]) == 0
    assert capsys.readouterr().out == ""
    return path


def test_json_is_read_by_its_suffix_and_its_beginning(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert opt([str(made)]) == 0
    assert capsys.readouterr().out == MATMUL
    for arguments in (["-"], ["-", "--input-format", "json"]):
        data = io.TextIOWrapper(io.BytesIO(made.read_bytes()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", data)
        assert opt(arguments) == 0
        assert capsys.readouterr().out == MATMUL


def test_passes_engines_and_proofs_take_json(made: Path, capsys: Capture) -> None:
    source = str(made.with_suffix(".stripe"))
    assert opt([str(made), "--passes", "compute_deps", "--verify", "exact", "--verify-against", source]) == 0
    assert run([str(made), "--engine", "c", "--compare", "interp"]) == 0
    assert "bit for bit" in capsys.readouterr().out
    assert run([str(made), "--compare", "numpy"]) == 2


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("statements", 0, "indices"), 5, "$.entry.statements[0].indices: error: expected a list, found 5"),
        (("statements", 0, "statements", 0, "indices", 1, "range"), 0,
         "$.entry.statements[0].statements[0].indices[1]: error: index 'j' has range 0"),
        (("statements", 0, "statements", 0, "statements", 3, "value"), "Z",
         "$.entry.statements[0].statements[0].statements[3]: error: scalar '$Z' is used before its definition"),
    ],
)  # fmt: skip
def test_errors_have_the_json_path(
    path: tuple[str | int, ...], value: Any, message: str, made: Path, capsys: Capture
) -> None:
    program = json.loads(made.read_text("utf-8"))
    place = program["entry"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    made.write_text(json.dumps(program), "utf-8")
    assert opt([str(made)]) == 1
    assert f"{made}: {message}" in capsys.readouterr().err


def test_text_that_is_no_json(made: Path, capsys: Capture) -> None:
    made.write_text('{"stripe_ir": 1,\n', "utf-8")
    assert opt([str(made)]) == 1
    assert f"{made}:2:1: error: this is no JSON" in capsys.readouterr().err
    made.write_text(MATMUL, "utf-8")
    assert opt([str(made)]) == 1
    assert "say --input-format stripe" in capsys.readouterr().err
    made.write_text("{}", "utf-8")
    assert opt([str(made), "--shape", "A=3:fp32"]) == 2
    assert "--shape is for Tile inputs" in capsys.readouterr().err
