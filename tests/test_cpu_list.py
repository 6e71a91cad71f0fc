"""The list `cpu` on networks with constant weights: proved, and the same bits as the interpreter."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from stripe.cli.start import opt, run
from tools.networks import Builder

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A residual block, channels first, with a stride, a pooling window and a classifier."""
    made = Builder()
    x = made.input("x", (1, 3, 19, 19))
    y = made.conv(x, 3, 16, 3, 2, act="relu")
    z = made.conv(made.conv(y, 16, 24, 1, act="relu"), 24, 24, 3, act="relu")
    z = made.op("Add", made.conv(z, 24, 16, 1), y)
    z = made.conv(z, 16, 256, 1, act="relu")
    z = made.op("MaxPool", z, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    z = made.op("Flatten", made.op("GlobalAveragePool", z))
    z = made.op("Gemm", z, made.weight(10, 256), made.weight(10), transB=1)
    path = tmp_path_factory.mktemp("net") / "block.onnx"
    onnx.save(made.model(z), path)
    return path


@pytest.mark.long
def test_every_pass_is_proved(block: Path, capsys: Capture) -> None:
    status = opt(
        [str(block), "--config", "cpu", "--verify", "exact", "--verify-unknown", "fail", "--remarks"]
    )
    said = capsys.readouterr()
    assert status == 0, said.err[-2000:]
    assert "innermost: applied" in said.err
    assert "no_rims: applied" in said.err
    assert "pack_constants: applied" in said.err


@pytest.mark.long
def test_results_are_right(block: Path, capsys: Capture) -> None:
    arguments = ["--config", "cpu", "--engine", "c", "--compare"]
    assert run([str(block), *arguments, "interp"]) == 0, capsys.readouterr().err
    assert run([str(block), *arguments, "onnx"]) == 0, capsys.readouterr().err
