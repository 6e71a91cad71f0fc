"""Mistakes that people make in their first hour, with what puts them right."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.cli.start import opt as main
from tests.support.programs import MATMUL

Capture = pytest.CaptureFixture[str]

FILES = {
    "mm.stripe": MATMUL,
    "a.tile": "function (A[N=4]) -> (B) {\n  B = A * 2;\n}\n",
    "tile.stripe": "// A comment.\nfunction (A[N=4]) -> (B) { B = A; }",
    "stripe.tile": MATMUL,
    "comment.stripe": "// nothing yet\n",
    "times.tile": "function (A[N=4]) -> (B) {\n  B = A × 2;\n}\n",
    "letter.tile": "function (Ä[N=4]) -> (B) {\n  B = Ä;\n}\n",
    "mine.json.j2": '{ "clock_mhz": 1 }',
    "list.json": '{ "passes": [] }',
    "blank.json": "\n",
    "sharp.json": '{ "passes": [ { "name": "x", "dce": { "reqs": ["#kernel"] } } ] }',
}


@pytest.mark.parametrize(
    ("words", "reason", "hint"),
    [
        (["tile.stripe"], "unexpected 'function'", "this looks like Tile: say --input-format tile"),
        (["stripe.tile"], "unexpected '0'", "this looks like Stripe: say --input-format stripe"),
        (["comment.stripe"], "unexpected end of the file", "a program begins with '0: #program block [] ('"),
        (["times.tile"], "unexpected character '×'", "write '*'"),
        (["letter.tile"], "unexpected character 'Ä'", "names are made of ASCII letters"),
        (["a.tile", "--passes", "dce(reqs=main)"], "unexpected '('", "options stand in braces, dce{option=value}"),
        (["a.tile", "--config", "sharp.json"], "'#kernel' cannot be a tag; write 'kernel'", ""),
        (["a.tile", "--passes", "dce{reqs=[#main]}"], "expected a value, found '#'", "tags are written without '#'"),
        (["a.tile", "--config", "blank.json"], "blank.json: error: there is nothing in the file", ""),
        (["a.tile", "--config", "lits.json"], "there is no such file", "did you mean 'list.json'?"),
        (["a.tile", "--config", "no/list.json"], "there is no such file", "there is no folder 'no' either"),
        (["--run-reproducer", "list.json"], "this is no crash reproducer", "the report of a fault names"),
        (["a.tile", "--config", "mine.json.j2"], "this is a hardware model, not a pass list", "give it with --hw"),
        (["a.tile", "--hw", "list.json"], "this is a pass list, not a hardware model", "give it with --config"),
        (["a.tile", "--hw", "mine"], "no hardware model called 'mine'", "did you mean './mine.json.j2'?"),
        (["a.tile", "--config", "./dsp_conv"], "there is no such file", "'dsp_conv' is the one that comes with"),
        (["a.tile", "-o", "no/where/x"], "there is no folder '", "make it first"),
        (["a.tile", "--verify"], "--verify needs a value", "write --verify none|structural|exact"),
        (["a.tile", "--timing=yes"], "--timing takes no value, and 'yes' is given", "write --timing alone"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_with_what_is_right(
    words: list[str],
    reason: str,
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(words) in (1, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert reason in captured.err
    assert hint in captured.err
