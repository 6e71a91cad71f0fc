"""Whole texts of whole pipelines; `pytest --bless` rewrites them after a change that is meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stripe.cli.start import opt as main

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize(
    ("example", "arguments"),
    [
        ("conv_bias_relu", ("--config", "dsp_conv", "-D", "SRAM_SIZE_KIB=4")),
        ("attention", ("--config", "dsp_conv", "-D", "SRAM_SIZE_KIB=1")),
        ("conv_transposed", ("--config", "minimal")),
    ],
)
def test_whole_text(
    example: str,
    arguments: tuple[str, ...],
    golden: Callable[[str, str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(EXAMPLES / f"{example}.tile"), *arguments]) == 0
    golden(f"{example}_{arguments[1]}", capsys.readouterr().out)
