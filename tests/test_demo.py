"""`make demo`, but for the set-up: it ends well, and shows what it promises.

The commands of the project that it runs are called in this process, which has loaded what they need.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from tests.support.shell import TOOLS, Command, run_pipeline

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.long
def test_the_demonstration(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    start = subprocess.run

    def run(words: list[str | Path], **options: Any) -> Any:
        name = Path(words[0]).name
        if name not in TOOLS:
            return start(words, **options)
        assert Path(words[0]) == Path(sys.executable).parent / name, "the command is installed"
        (outcome,) = run_pipeline((Command((name, *map(str, words[1:]))),), options["cwd"])
        sys.stdout.write(outcome.stdout)
        sys.stderr.write(outcome.stderr)
        return subprocess.CompletedProcess(words, outcome.status)

    monkeypatch.setattr(subprocess, "run", run)
    status = run_path(str(ROOT / "examples" / "demo.py"))["main"]()
    shown, told = capfd.readouterr()
    assert status == 0, shown + told
    for expected in (
        "function (I[H=16, W=16, CI=8]", "#contraction #conv #kernel", "block<CONV[0]>", "<SRAM[0]>",
        "st_fma_fp32(", "void stripe_conv_bias_relu(", "interpreter, C and numpy agree, bit for bit",
        "c agrees with onnx", "NET_OUT_",
    ):  # fmt: skip
        assert expected in shown
    assert "tiles of [ci:" in told and "verify: tile_conv: equal" in told
