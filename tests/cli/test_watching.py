"""Watching the passes: programs before and after them, and differences; models with their parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.cli.start import opt
from stripe.config.files import shipped
from tests.support.programs import MATMUL

Capture = pytest.CaptureFixture[str]


PASSES = ["--passes", "dce,t:thread{reqs=kernel,threads=2},x:dce"]


def headers(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("// -----", "---", "+++"))]


def test_the_program_before_a_pass(mm: str, capsys: Capture) -> None:
    assert opt([mm, *PASSES, "--print-ir-before", "t"]) == 0
    err = capsys.readouterr().err
    assert headers(err) == ["// ----- before 't' (thread) -----"]
    assert err.split("\n", 1)[1] == MATMUL


def test_the_program_after_passes_that_changed_it(mm: str, capsys: Capture) -> None:
    assert opt([mm, *PASSES, "--print-ir-after-change"]) == 0
    captured = capsys.readouterr()
    assert headers(captured.err) == ["// ----- after 't' (thread) -----"]
    assert captured.err.split("\n", 1)[1] == captured.out


def test_the_difference_that_a_pass_makes(mm: str, capsys: Capture) -> None:
    assert opt([mm, *PASSES, "--diff"]) == 0
    captured = capsys.readouterr()
    assert headers(captured.err) == ["--- before 't' (thread)", "+++ after 't' (thread)"]
    added = [line[1:] for line in captured.err.splitlines()[2:] if line.startswith("+")]
    removed = [line[1:] for line in captured.err.splitlines()[2:] if line.startswith("-")]
    assert added
    assert removed
    assert set(added) <= set(captured.out.splitlines())
    assert set(removed) <= set(MATMUL.splitlines())


def test_names_to_print_before_are_checked(mm: str, capsys: Capture) -> None:
    assert opt([mm, *PASSES, "--print-ir-before", "thraed"]) == 2
    err = capsys.readouterr().err
    assert "--print-ir-before: no pass 'thraed' runs here" in err
    assert "did you mean 'thread'?" in err


def test_models_are_listed_with_their_parameters(tmp_path: Path, capsys: Capture) -> None:
    assert opt(["--list-models"]) == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if line and line[0] != " "] == list(shipped("hwmodels"))
    assert "      NUM_CONV: 1 to 64; default 4; unit: units\n          convolution engines\n" in text
    assert "          source: unverified\n" in text
    (tmp_path / "my.json.j2").write_text('{"clock_mhz": {{ CLOCK }}}', "utf-8")
    (tmp_path / "my.params.json").write_text(
        '{"description": "Mine.", "parameters": {"KIND": {"default": "HBM", "choices": ["HBM", "DDR"]},'
        ' "N": {"default": true}, "CLOCK": {"expression": "2 * 3", "unit": "MHz"}},'
        ' "checks": [{"that": "CLOCK > 1", "reason": "too slow"}]}',
        "utf-8",
    )
    assert opt(["--list-models", str(tmp_path / "my.json.j2")]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "KIND: 'HBM' or 'DDR'; default 'HBM'" in lines
    assert "N: true or false; default true" in lines
    assert "CLOCK: computed as 2 * 3; unit: MHz" in lines
    assert "it must hold that CLOCK > 1: otherwise too slow" in lines
    assert opt(["--list-models", "dsp_cnov"]) == 2
    assert "did you mean 'dsp_conv'?" in capsys.readouterr().err


def test_both_formats_take_the_address_of_their_schema(mm: str, tmp_path: Path, capsys: Capture) -> None:
    schema = '"$schema": "https://example.org/schema.json", '
    passes = tmp_path / "list.json"
    passes.write_text(f'{{ {schema}"passes": [{{"name": "a", "dce": {{}}}}] }}', "utf-8")
    assert opt(["--hw", "ref16x16", "--emit", "json", "-o", str(tmp_path / "model.json")]) == 0
    model = tmp_path / "model.json"
    model.write_text("{" + schema + model.read_text("utf-8").lstrip().removeprefix("{"), "utf-8")
    assert opt([mm, "--config", str(passes), "--hw", str(model)]) == 0
    assert capsys.readouterr().out == MATMUL
    passes.write_text('{ "$schema": 3, "passes": [] }', "utf-8")
    assert opt([mm, "--config", str(passes)]) == 2
    assert "$['$schema']: error: expected a text, found 3" in capsys.readouterr().err
    assert opt(["--schema", "config"]) == 0
    assert '"the address of this schema, for editors"' in capsys.readouterr().out
    assert opt(["--schema", "hw"]) == 0
    assert '"the address of this schema, for editors"' in capsys.readouterr().out
