"""The workloads of docs/cpu.md through the list `cpu`: proved in full size; in small sizes, with the same vectors and
rims, the emitted C gives the bits of the interpreter on integer-valued data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.cpu.workloads import WORKLOADS, Workload
from stripe.cli.start import opt, run

SMALL = {
    4096: 52, 2048: 41, 1024: 37, 1000: 29, 777: 31, 768: 44, 512: 35, 333: 23, 258: 10, 256: 8, 225: 29, 224: 28,
    128: 24, 112: 14, 64: 20, 56: 7, 55: 6,
}  # fmt: skip
"""Sizes of the workloads, and small ones for which strides, windows and results fit in the same way."""

ROUNDED = {"W10", "W13", "W16"}
"""Workloads with quotients or functions, whose sums are not of whole numbers."""

Capture = pytest.CaptureFixture[str]
workloads = pytest.mark.parametrize("workload", [pytest.param(w, id=w.key) for w in WORKLOADS])


@workloads
@pytest.mark.slow
def test_every_pass_is_proved(workload: Workload, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "workload.tile"
    path.write_text(workload.tile)
    for model in ("x86_avx512", "x86_avx2"):
        arguments = ["--config", "cpu", "--hw", model, "--verify", "exact", "--verify-unknown", "fail"]
        assert opt([str(path), *arguments]) == 0, capsys.readouterr().err[-2000:]


@workloads
@pytest.mark.slow
def test_small_forms_give_the_bits_of_the_interpreter(
    workload: Workload, tmp_path: Path, capsys: Capture
) -> None:
    small = re.sub(r"\b\d+\b", lambda m: str(SMALL.get(int(m[0]), m[0])), workload.tile)
    assert small != workload.tile
    path = tmp_path / "small.tile"
    path.write_text(small)
    for model in ("x86_avx512", "x86_avx2"):
        arguments = ["--config", "cpu", "--hw", model, "--engine", "c", "--compare", "interp", "--json", "-"]
        assert run([str(path), *arguments]) == 0, capsys.readouterr().err[-2000:]
        found = json.loads(capsys.readouterr().out)["comparison"]
        assert found["identical"] or (found["equal"] and workload.key in ROUNDED)
