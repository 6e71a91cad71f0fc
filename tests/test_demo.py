"""`make demo`, but for the set-up: it ends well, and shows what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_demonstration(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for expected in (
        "function (I[H=16, W=16, CI=8]", "#contraction #conv #kernel", "block<CONV[0]>", "<SRAM[0]>",
        "void stripe_conv_bias_relu(", "interpreter, C and numpy agree, bit for bit", "c agrees with onnx",
        "NET_OUT_",
    ):  # fmt: skip
        assert expected in done.stdout
    assert "tiles of [ci:" in done.stderr
