"""Every shipped pass list on every example: valid and printable after each pass, results as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stripe.cli.start import opt, run
from stripe.config.files import shipped
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.data import random_inputs
from stripe.ir import Stage, parse_program, verify_structural

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.tile"))
LISTS = shipped("optconfigs")
LARGE = {"slides_layer"}
"""Examples with too many points to be run in a test."""

Capture = pytest.CaptureFixture[str]


def _name(value: object) -> str:
    return value.stem if isinstance(value, Path) else str(value)


@pytest.mark.parametrize("pass_list", LISTS)
@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_every_pass_leaves_what_prints_and_parses_back(
    example: Path, pass_list: str, capsys: Capture
) -> None:
    assert opt([str(example), "--config", pass_list, "--verify-roundtrip"]) == 0, capsys.readouterr().err
    program = parse_program(capsys.readouterr().out)
    stage = Stage.LOCATED if pass_list == "dsp_conv" else Stage.TILED
    assert verify_structural(program, stage) == []


@pytest.mark.parametrize("pass_list", LISTS)
@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_every_pass_is_proved(example: Path, pass_list: str, capsys: Capture) -> None:
    assert opt([str(example), "--config", pass_list, "--verify", "exact"]) == 0, capsys.readouterr().err
    said = capsys.readouterr().err.splitlines()
    not_run = "verify: addresses: not run: too large" if example.stem in LARGE else "always run"
    assert [line for line in said if not line.endswith(": equal") and not_run not in line] == []


@pytest.mark.parametrize("pass_list", LISTS)
@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.stem not in LARGE], ids=_name)
def test_results_stay_the_same(example: Path, pass_list: str, capsys: Capture) -> None:
    assert run([str(example), "--config", pass_list, "--engine", "c", "--compare", "interp"]) == 0
    assert "c agrees with interp" in capsys.readouterr().out


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.stem not in LARGE], ids=_name)
def test_small_memories_make_small_tiles_with_the_same_results(example: Path, capsys: Capture) -> None:
    arguments = ["--config", "dsp_conv", "-D", "SRAM_SIZE_KIB=2", "-D", "NUM_SRAM=1"]
    assert run([str(example), *arguments, "--engine", "interp", "--compare", "numpy"]) == 0, (
        capsys.readouterr()
    )


def test_the_list_for_the_dsp_machine_does_what_the_slides_show(capsys: Capture) -> None:
    """A convolution with its epilogue in one kernel, tiles in SRAM brought by the DMA, results taken back."""
    example = ROOT / "examples" / "conv_bias_relu.tile"
    assert opt([str(example), "--config", "dsp_conv", "-D", "SRAM_SIZE_KIB=4", "--remarks"]) == 0
    captured = capsys.readouterr()
    for expected in (
        "#conv #kernel block<CONV[0]>", "#conv_inner block<CONV[0]>", "#epilogue block<CONV[0]>", "block<DMA[0]>",
        "none new@0x00000000<SRAM[0]>", "#placed #user none new@", "in<SRAM[0]> I[j + y, i, 0]",
        "#conv_stencil #stencil block<CONV[0]>",
    ):  # fmt: skip
        assert expected in captured.out
    assert "tiles of [ci:" in captured.err
    assert "bytes of SRAM" in captured.err


def test_the_list_for_processors_keeps_results_in_registers(capsys: Capture) -> None:
    """Tiles with constant lengths and no test in the interior, an epilogue with its tile, threads outside."""
    example = ROOT / "examples" / "conv_bias_relu.tile"
    assert opt([str(example), "--config", "cpu", "--remarks"]) == 0
    captured = capsys.readouterr()
    kernel = captured.out[captured.out.index("#interior") :].split("#edge")[0]
    assert "#parallel #tile block [" in kernel
    assert "#tmp none new@0x00000000<[0]> C[0, 0, 0]" in kernel
    assert "#epilogue" in kernel
    assert ">= 0" not in kernel[kernel.index("#plain") :].split("#rim")[0]
    assert "missed" not in [
        line.split(": ")[2] for line in captured.err.splitlines() if "register_tiles" in line
    ]


@pytest.mark.parametrize("example", ["conv_bias_relu", "matmul", "softmax", "max_pool"])
def test_threads_of_the_list_for_processors_give_the_same_results(example: str, tmp_path: Path) -> None:
    program = tmp_path / "program.stripe"
    assert opt([str(ROOT / "examples" / f"{example}.tile"), "--config", "cpu", "-o", str(program)]) == 0
    parsed = parse_program(program.read_text("utf-8"))
    inputs = random_inputs(parsed, 0)
    expected = compile_program(parsed, CompileOptions(level="O3")).run(inputs)
    found = compile_program(parsed, CompileOptions(level="O3", openmp=True)).run(inputs)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
