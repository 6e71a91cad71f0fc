"""Every shipped pass list on every example: valid and printable after each pass, results as they were."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from stripe.cli.start import opt, run
from stripe.exec.compare import compare, tolerance_for
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.data import random_inputs
from stripe.ir import Stage, print_program, verify_structural
from stripe.passes.base import RemarkKind
from stripe.pipeline.engines import parse_engine
from tests.support.compiled import EXAMPLES, LARGE, LISTS, SMALL, compiled, interpreted, lowered, of
from tests.support.running import run_apart

ROOT = Path(__file__).resolve().parents[1]

THREADED = {"conv_bias_relu", "matmul", "softmax", "max_pool"}

Capture = pytest.CaptureFixture[str]
on_all = pytest.mark.parametrize(("example", "pass_list"), [of(e, name) for e in EXAMPLES for name in LISTS])
on_small = pytest.mark.parametrize(("example", "pass_list"), [of(e, name) for e in SMALL for name in LISTS])


@on_all
def test_every_pass_leaves_what_prints_and_parses_back(example: Path, pass_list: str) -> None:
    stage = Stage.LOCATED if pass_list == "dsp_conv" else Stage.TILED
    assert verify_structural(compiled(example, pass_list).program, stage) == []


@on_all
def test_every_pass_is_proved(example: Path, pass_list: str) -> None:
    not_run = "verify: addresses: not run: too large" if example.stem in LARGE else "always run"
    verdicts = compiled(example, pass_list).verdicts
    assert [line for line in verdicts if not line.endswith(": equal\n") and not_run not in line] == []


@on_small
def test_results_stay_the_same(example: Path, pass_list: str) -> None:
    inputs, expected = interpreted(example)
    outputs = parse_engine("c").load(compiled(example, pass_list).program, reorder=False).run(inputs)
    assert not compare(expected, outputs, tolerance_for(lowered(example)))


@pytest.mark.parametrize("example", [of(e) for e in SMALL])
def test_small_memories_make_small_tiles_with_the_same_results(example: Path, capsys: Capture) -> None:
    arguments = ["--config", "dsp_conv", "-D", "SRAM_SIZE_KIB=2", "-D", "NUM_SRAM=1"]
    assert run([str(example), *arguments, "--engine", "interp", "--compare", "numpy"]) == 0, (
        capsys.readouterr()
    )


def test_the_list_for_the_dsp_machine_does_what_the_slides_show(capsys: Capture) -> None:
    """A convolution with its epilogue in one kernel, tiles in SRAM brought by the DMA and shared by all engines,
    results taken back."""
    example = ROOT / "examples" / "conv_bias_relu.tile"
    assert opt([str(example), "--config", "dsp_conv", "-D", "SRAM_SIZE_KIB=4", "--remarks"]) == 0
    captured = capsys.readouterr()
    for expected in (
        "#conv #kernel block<CONV[0]>", "#conv_inner block<CONV[", "#epilogue block<CONV[", "block<DMA[0]>",
        "#conv_parts block [#engine ",
        "none new@0x00000000<SRAM[0]>", "#placed #user none new@", "in<SRAM[0]> I[",
        "#conv_stencil #stencil block [",
    ):  # fmt: skip
        assert expected in captured.out
    assert "tiles of [ci:" in captured.err
    assert "bytes of SRAM" in captured.err


@pytest.mark.parametrize("example", [of(ROOT / "examples" / "conv_bias_relu.tile")])
def test_the_list_for_processors_keeps_results_in_registers(example: Path) -> None:
    """Tiles with constant lengths and no test in the interior, an epilogue with its tile, threads outside."""
    done = compiled(example, "cpu")
    kernel = print_program(done.program).partition("#interior")[2].split("#edge")[0]
    assert "#parallel #tile block [" in kernel
    assert "#tmp none new@0x00000000<[0]> C[0, 0, 0]" in kernel
    assert "#epilogue" in kernel
    assert ">= 0" not in kernel
    tiled = [remark.kind for entry, remark in done.remarks if entry.name == "register_tiles"]
    assert tiled and RemarkKind.MISSED not in tiled


@pytest.mark.parametrize("example", [of(e) for e in EXAMPLES if e.stem in THREADED])
def test_threads_of_the_list_for_processors_give_the_same_results(example: Path) -> None:
    program = compiled(example, "cpu").program
    inputs = random_inputs(program, 0)
    expected = compile_program(program, CompileOptions(level="O3")).run(inputs)
    found = run_apart(compile_program(program, CompileOptions(level="O3", openmp=True)), inputs)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_numbers_of_the_list_for_processors_come_from_the_model() -> None:
    """Between its templates the list has no number but 0, for none, and the one vector of a last sum."""
    text = (ROOT / "optconfigs" / "cpu.json.j2").read_text("utf-8")
    named = r'"(hardware|name)": "\w+"'
    ignored = rf"^\s*(##|//)[^\n]*|{{{{.*?}}}}|{{%.*?%}}|{named}"
    assert re.findall(r"\d+", re.sub(ignored, "", text, flags=re.MULTILINE | re.DOTALL)) == ["0", "1"]
