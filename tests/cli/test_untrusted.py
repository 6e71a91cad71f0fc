"""Reproducers and emitted C of programs from strangers: nothing is written, read or run beyond the request."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from stripe.cli.start import opt, run
from tests.support.programs import MATMUL

Capture = pytest.CaptureFixture[str]

TILE = "function (A[M=8, K=4], B[K, N=16]) -> (C) { C[m, n : M, N] = +(A[m, k] * B[k, n]); }"
OUTSIDE = MATMUL.replace("A[i, k] fp32", "A[3 + i, k] fp32")


@pytest.fixture
def outside(tmp_path: Path) -> str:
    path = tmp_path / "outside.stripe"
    path.write_text(OUTSIDE, "utf-8")
    return str(path)


def _reproducer(folder: Path, **changes: Any) -> str:
    found: dict[str, Any] = {"stripe_reproducer": 2, "error": "", "input_format": "stripe", "input": MATMUL}
    path = folder / "r.json"
    path.write_text(json.dumps(found | changes), "utf-8")
    return str(path)


def test_c_that_leaves_its_tensors_is_refused_on_every_path(
    outside: str, tmp_path: Path, capsys: Capture
) -> None:
    for level in ([], ["--verify", "structural"], ["--verify", "exact"]):
        assert opt([outside, "--emit", "c", *level]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "out of bounds" in captured.err
        assert run([outside, "--engine", "c", *level]) == 1
        capsys.readouterr()
    assert opt(["--run-reproducer", _reproducer(tmp_path, input=OUTSIDE, options=["--emit=c"])]) == 1
    assert opt([outside, "--emit", "c{openmp=true}", "--split-input-file"]) == 1
    assert opt([outside]) == 0
    capsys.readouterr()


def test_an_access_out_of_bounds_names_the_file_and_a_way_out(outside: str, capsys: Capture) -> None:
    for command, arguments in ((run, []), (run, ["--engine", "c"]), (opt, ["--verify", "exact"])):
        assert command([outside, *arguments]) == 1
        err = capsys.readouterr().err
        assert err.startswith(f"{outside}: ")
        assert "  hint: make the buffer larger, or leave the point out by a constraint" in err


@pytest.mark.usefixtures("bad_passes")
@pytest.mark.parametrize("verify", [[], ["--verify", "structural"]])
@pytest.mark.parametrize(
    "path", ["opt --emit c", "opt --emit c{openmp=true}", "opt --emit library -o net", "run --engine c"]
)
def test_c_that_a_pass_lets_leave_its_tensors_is_refused_on_every_path(
    path: str, verify: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mm.tile").write_text(TILE, "utf-8")
    Path("mm.stripe").write_text(MATMUL, "utf-8")
    command, *words = path.split()
    for name in ("mm.tile", "mm.stripe"):
        arguments = [name, *words, *verify, "--passes", "dce,far:outside,prune_indexes"]
        assert (opt if command == "opt" else run)(arguments) == 70
        captured = capsys.readouterr()
        assert captured.out == ""
        assert (
            "the result of pass 'far' (outside) accesses memory out of bounds, or unwritten; replay it"
            in captured.err
        )
        assert "error: A[1000, 1000]: read out of bounds of (8, " in captured.err
        assert "\n    in kernel_0 (0.0.0.0) at " in captured.err
        assert not Path("net").exists()
        reproducer = captured.err.split("--run-reproducer ")[1].splitlines()[0]
        if command == "opt" and "library" not in path:
            assert opt(["--run-reproducer", reproducer]) == 70
            assert "the result of pass 'far' (outside)" in capsys.readouterr().err
        Path(reproducer).unlink()
        assert opt([name, *verify, "--passes", "outside"]) == 0, "a text of Stripe leaves nothing"
        capsys.readouterr()


@pytest.mark.usefixtures("bad_passes")
def test_without_verification_the_c_of_a_pass_is_not_checked(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "mm.tile"
    path.write_text(TILE, "utf-8")
    assert opt([str(path), "--emit", "c", "--verify", "none", "--passes", "outside"]) == 0
    assert capsys.readouterr().err.startswith("warning: --verify none: accesses out of bounds are not looked")


def test_without_verification_a_warning_is_shown(outside: str, capsys: Capture) -> None:
    assert opt([outside, "--emit", "c", "--verify", "none"]) == 0
    captured = capsys.readouterr()
    assert "for (" in captured.out
    assert captured.err.startswith("warning: --verify none: accesses out of bounds are not looked for")
    assert opt([outside, "--verify", "none"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changes", "place", "reason"),
    [
        ({"options": ["--verify=nonsense"]}, "$.options", "unknown value 'nonsense'"),
        ({"options": ["--verify"]}, "$.options", "--verify needs a value"),
        ({"options": ["-o=stolen"]}, "$.options", "cannot set -o"),
        ({"options": ["--dump-dir=stolen"]}, "$.options", "cannot set --dump-dir"),
        ({"options": ["other.stripe"]}, "$.options", "cannot set INPUT"),
        ({"options": ["--passes=dce"]}, "$.options", "cannot set --config"),
        ({"options": ["--verify-against=/etc/passwd"]}, "$.options", "the file of --verify-against is missing"),
        ({"options": ["--help"]}, "$.options", "cannot set -h"),
        ({"tool": "stripe-run", "options": ["--out=stolen"]}, "$.options", "cannot set --out"),
        ({"tool": "stripe-run", "options": ["--json=stolen"]}, "$.options", "cannot set --json"),
        ({"tool": "stripe-run", "options": ["--data=/etc/passwd"]}, "$.options", "the file of --data is missing"),
        ({"tool": "stripe-run", "options": ["--engine=c", "--verify=none"]}, "$.options", "executes C"),
        ({"tool": "stripe-run", "options": ["--engine=c{openmp=true}", "--verify=none"]}, "$.options", "executes C"),
        ({"tool": "stripe-run", "options": ["--engine=c{cc=\"/tmp/cc\"}"]}, "$.options", "cannot set cc of an engine"),
        ({"tool": "stripe-run", "options": ["--engine=c", "--cc=/tmp/cc"]}, "$.options", "cannot set --cc"),
        ({"tool": "sh"}, "$.tool", "no command is called 'sh'"),
        ({"input_format": "python"}, "$.input_format", "no language is called 'python'"),
        ({"files": {"data": "no base64!"}}, "$.files.data", "no base64"),
        ({"verify": "none"}, "$.verify", "unknown key 'verify'"),
        ({"passes": [{"name": "x", "nonsense": {}}]}, "$.passes[0].nonsense", "unknown pass 'nonsense'"),
        ({"hardware": {"clock_mhz": "x"}}, "$.hardware.clock_mhz", "expected a number"),
    ],
)  # fmt: skip
def test_a_reproducer_sets_only_the_options_that_reproducers_record(
    changes: dict[str, Any],
    place: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = _reproducer(tmp_path, **changes)
    assert opt(["--run-reproducer", path]) == 2
    err = capsys.readouterr().err
    assert place in err.splitlines()[0]
    assert reason in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]


def test_data_of_a_reproducer_get_a_name_of_ours(tmp_path: Path, capsys: Capture) -> None:
    data = base64.b64encode(b"no archive").decode()
    path = _reproducer(tmp_path, tool="stripe-run", options=["--data=.."], files={"data": data})
    assert opt(["--run-reproducer", path]) == 1
    assert "not a .npz file" in capsys.readouterr().err


def test_the_own_command_line_may_allow_c_without_checks(tmp_path: Path, capsys: Capture) -> None:
    path = _reproducer(tmp_path, tool="stripe-run", options=["--engine=c", "--verify=none"])
    assert opt(["--run-reproducer", path, "--verify", "none"]) == 0
    assert "warning: --verify none" in capsys.readouterr().err


def test_a_link_with_the_name_of_a_reproducer_is_not_followed(tmp_path: Path) -> None:
    from stripe.pipeline.reproducer import Reproducer

    found = Reproducer(error="x", input_format="stripe", input="")
    path = found.write(tmp_path)
    assert path is not None
    path.unlink()
    (tmp_path / "mine").write_text("mine", "utf-8")
    path.symlink_to(tmp_path / "mine")
    assert found.write(tmp_path) == path
    assert (tmp_path / "mine").read_text("utf-8") == "mine"
    assert not path.is_symlink()
