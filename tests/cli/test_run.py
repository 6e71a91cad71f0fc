"""`stripe-run`, option by option, in process."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from stripe.cli.start import opt as optimize
from stripe.cli.start import run as main
from stripe.cli.start import sim as simulate
from stripe.exec.compile import CompiledProgram
from stripe.exec.native.measure import measured
from stripe.exec.native.processor import this_processor
from stripe.pipeline.engines import Arrays
from stripe.tile.reference import evaluate
from stripe.tile.typed import TypedFunction
from tests.support.programs import MATMUL

Capture = pytest.CaptureFixture[str]


def _data(folder: Path) -> tuple[str, np.ndarray, np.ndarray]:
    a = np.arange(48, dtype=np.float32).reshape(8, 6)
    b = np.arange(24, dtype=np.float32).reshape(6, 4)
    path = folder / "in.npz"
    np.savez(path, A=a, B=b)
    return str(path), a, b


@pytest.mark.parametrize("engine", ["interp", "c"])
def test_outputs_from_given_data(engine: str, mm: str, tmp_path: Path, capsys: Capture) -> None:
    data, a, b = _data(tmp_path)
    out = tmp_path / "out.npz"
    assert main([mm, "--engine", engine, "--data", data, "--out", str(out)]) == 0
    with np.load(out) as found:
        np.testing.assert_array_equal(found["C"], a @ b)
    assert capsys.readouterr().out.startswith(f"C: fp32(8, 4) min {(a @ b).min():g}, max")


def test_random_data_depend_on_the_seed_alone(mm: str, capsys: Capture) -> None:
    texts: list[str] = []
    for seed in ("1", "1", "2"):
        assert main([mm, "--random", seed]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_compare_says_that_engines_agree(mm: str, capsys: Capture) -> None:
    assert main([mm, "--engine", "c", "--compare", "interp", "--passes", "prune_indexes"]) == 0
    assert "c agrees with interp, bit for bit\n" in capsys.readouterr().out


@pytest.mark.usefixtures("bad_passes")
def test_a_difference_gives_3_and_says_whose_fault_it_is(mm: str, capsys: Capture) -> None:
    assert main([mm, "--engine", "c", "--compare", "interp", "--passes", "wrong"]) == 3
    out = capsys.readouterr().out
    assert "c DIFFERS from interp" in out
    assert "'C'[7, 0]" in out
    assert "the passes changed the result" in out or "the interpreter refuses" in out


@pytest.mark.usefixtures("bad_passes")
def test_a_fault_that_a_pass_made_is_not_laid_to_the_file(mm: str, capsys: Capture) -> None:
    assert main([mm, "--verify", "none", "--passes", "outside"]) == 1
    told = capsys.readouterr().err
    assert f"{mm} after the passes: block 0.0.0" in told
    assert "hint: it runs without them: --verify exact says which pass is at fault" in told


def test_bench_and_json(mm: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "r.json"
    assert main([mm, "--engine", "c", "--bench", "3", "--compare", "interp", "--json", str(path)]) == 0
    assert "c: 3 runs, median" in capsys.readouterr().out
    report = json.loads(path.read_text("utf-8"))
    assert report["bench"]["runs"] == 3
    assert report["comparison"] == {
        "reference": "interp", "equal": True, "exact": True, "identical": True, "differences": [], "blame": "",
        "worst_ratio": None, "worst_element": None,
    }  # fmt: skip
    assert (report["outputs"][0]["name"], report["outputs"][0]["dtype"], report["outputs"][0]["shape"]) == (
        "C",
        "fp32",
        [8, 4],
    )


def test_bench_says_what_the_machine_reaches(mm: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "report.json"
    words = ["--engine", "c", "--cflags=-O1 -g0", "--threads", "2", "--bench", "2", "--json", str(path)]
    assert main([mm, *words]) == 0
    assert "c: 2 runs on 2 threads, median" in capsys.readouterr().out
    times = json.loads(path.read_text())["bench"]
    assert times["threads"] == 2
    assert times["speed"]["operations"] == 2 * 8 * 6 * 4
    assert times["speed"]["bytes"] == 4 * (8 * 6 + 6 * 4 + 8 * 4)
    assert times["speed"]["level"] == "L1"
    assert 0 < times["speed"]["share_of_peak"] < 1
    (kernel,) = times["kernels"]
    assert kernel["speed"]["operations"] == times["speed"]["operations"]
    assert kernel["seconds"] > 0


def test_products_of_bytes_have_a_peak_of_their_own(tmp_path: Path) -> None:
    source, path = tmp_path / "dots.tile", tmp_path / "report.json"
    text = (
        "function (A[M=64, K=64]: i8, B[K, N=64]: i8) -> (C) { C[m, n : M, N]: i32 = +(A[m, k] * B[k, n]); }"
    )
    source.write_text(text)
    assert main([str(source), "--engine", "c", "--bench", "1", "--json", str(path)]) == 0
    speed = json.loads(path.read_text())["bench"]["speed"]
    assert speed["operations"] == 2 * 64**3
    assert speed["gflops"] / speed["share_of_peak"] == pytest.approx(measured().dot_gops)


def test_options_of_the_engine_c(mm: str, capsys: Capture) -> None:
    assert main([mm, "--engine", "c", "--cc", "no-such-cc"]) == 2
    assert "no C compiler 'no-such-cc'" in capsys.readouterr().err
    assert main([mm, "--threads", "2"]) == 2
    assert "the engine 'interp' has no option 'threads'" in capsys.readouterr().err


def test_vectors_of_another_machine_are_said(mm: str, capsys: Capture) -> None:
    other = {16: "x86_avx512", 32: "portable", 64: "x86_avx2"}[this_processor().vector_bytes]
    assert main([mm, "--engine", "c", "--config", "cpu", "--hw", other]) == 0
    assert f"warning: the passes are for '{other}' with vectors of" in capsys.readouterr().err
    assert main([mm, "--engine", "c", "--config", "cpu", "--hw", "native"]) == 0
    assert capsys.readouterr().err == ""


def test_json_on_standard_output_stands_alone(mm: str, capsys: Capture) -> None:
    assert main([mm, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "interp"


def test_threads(mm: str, capsys: Capture) -> None:
    passes = ["--passes", "thread{reqs=kernel,threads=2}"]
    assert main([mm, *passes, "--engine", "c{openmp=true}", "--compare", "interp"]) == 0
    assert "c agrees with interp, bit for bit" in capsys.readouterr().out


@pytest.mark.parametrize("compare", [[], ["--compare", "interp"]])
def test_c_is_not_run_where_it_would_leave_its_tensors(
    compare: list[str], tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "wrong.stripe"
    path.write_text(MATMUL.replace("i:8", "i:8000"), "utf-8")
    assert main([str(path), "--engine", "c", *compare]) == 1
    assert f"{path}: error: A[8, 0]: read out of bounds of (8, 6)" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["1000000, N=1000000", "1000000000000000000"])
@pytest.mark.parametrize("engine", ["interp", "c"])
def test_tensors_larger_than_the_memory(engine: str, size: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "huge.tile"
    path.write_text(
        f"function (A[M={size}]: i64) -> (B) {{ B[] = +(A[{'i, j' if 'N' in size else 'i'}]); }}", "utf-8"
    )
    assert main([str(path), "--engine", engine]) == 1
    assert "bytes of memory" in capsys.readouterr().err


def test_a_comparison_says_whether_it_was_bit_for_bit(tmp_path: Path, capsys: Capture) -> None:
    """exp rounds as each library likes, so that equal bits are not demanded; where they are equal, it is said."""
    path = tmp_path / "e.tile"
    path.write_text("function (A[N=8]) -> (B) { B = exp(0 * A); }", "utf-8")
    assert main([str(path), "--engine", "c", "--compare", "interp", "--json", str(tmp_path / "r")]) == 0
    assert "c agrees with interp, bit for bit\n" in capsys.readouterr().out
    found = json.loads((tmp_path / "r").read_text("utf-8"))["comparison"]
    assert (found["equal"], found["exact"], found["identical"]) == (True, False, True)


@pytest.mark.parametrize("words", [[], ["--engine", "c"], ["--passes", "prune_indexes"]])
def test_what_differs_before_any_pass_is_no_fault_of_passes_or_engine(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def wrong(function: TypedFunction, inputs: Arrays) -> Arrays:
        return {name: array + 1 for name, array in evaluate(function, inputs).items()}

    monkeypatch.setattr("stripe.tile.reference.evaluate", wrong)
    path = tmp_path / "e.tile"
    path.write_text("function (A[N=8]) -> (B) { B[i: N] = +(A[i]); }", "utf-8")
    assert main([str(path), *words, "--compare", "numpy"]) == 3
    out = capsys.readouterr().out
    assert "the interpreter differs before any pass: lowering, or numpy itself, is at fault" in out


def _replayed(err: str, capsys: Capture) -> str:
    """What the reproducer that the message names says when it is replayed."""
    path = err.splitlines()[0].split("--run-reproducer ")[1]
    assert optimize(["--run-reproducer", path]) == 70
    again = capsys.readouterr().err
    assert Path(again.splitlines()[0].split("--run-reproducer ")[1]).name == Path(path).name
    return again


@pytest.mark.parametrize("words", [[], ["--data"], ["--bench", "2", "--random", "3"]])
def test_an_emitted_program_that_crashes_leaves_a_reproducer(
    words: list[str], mm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def crash(self: CompiledProgram, inputs: Arrays) -> Arrays:
        assert set(inputs) == {"A", "B"}
        os.kill(os.getpid(), signal.SIGSEGV)
        return {}

    monkeypatch.setattr(CompiledProgram, "run", crash)
    given = ["--data", _data(tmp_path)[0]] if words == ["--data"] else words
    assert main([mm, "--engine", "c", "--passes", "prune_indexes", "--dump-dir", str(tmp_path), *given]) == 70
    err = capsys.readouterr().err
    assert "internal fault: EngineCrash: the emitted program crashed: SIGSEGV, Segmentation fault" in err
    (tmp_path / "in.npz").unlink(missing_ok=True)
    assert "the emitted program crashed: SIGSEGV" in _replayed(err, capsys)


def test_a_wrong_program_that_nobody_checked_is_no_fault_of_ours(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "wrong.stripe"
    path.write_text(MATMUL.replace("i:8", "i:99999999"), "utf-8")
    assert main([str(path), "--engine", "c", "--verify", "none"]) == 1
    assert f"{path}: error: A[8, 0]: read out of bounds of (8, 6)" in capsys.readouterr().err


def test_code_that_the_compiler_refuses_leaves_a_reproducer(
    mm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\necho 'program.c:1: error: no' >&2\nexit 1\n", "utf-8")
    fake.chmod(0o755)
    monkeypatch.setattr("stripe.exec.toolchain.CANDIDATES", (str(fake),))
    assert main([mm, "--engine", "c", "--dump-dir", str(tmp_path)]) == 70
    err = capsys.readouterr().err
    assert "the C compiler refused the emitted code" in err
    assert "program.c:1: error: no" in _replayed(err, capsys)


def test_an_engine_that_runs_out_of_memory_is_no_fault_of_ours(
    mm: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(CompiledProgram, "run", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    assert main([mm, "--engine", "c"]) == 1
    assert "the running program was killed (SIGKILL)" in capsys.readouterr().err


def test_a_simulation_that_crashes_leaves_a_reproducer(
    mm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("counting fell over")

    monkeypatch.setattr("stripe.cost.counts.counts.count_program", crash)
    assert simulate([mm, "--counts", "--halo", "keep", "--dump-dir", str(tmp_path)]) == 70
    assert "counting fell over" in _replayed(capsys.readouterr().err, capsys)


def test_version_and_list_passes(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("stripe-run ")
    assert main(["--list-passes"]) == 0
    assert "dce" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (["--data", "x.npz", "--random", "1"], 2, "two sources"),
        (["--engine", "interp{openmp=true}"], 2, "$.interp.openmp: error: unknown key 'openmp'"),
        (["--engine", "intrep"], 2, "did you mean 'interp'?"),
        (["--compare", "nump"], 2, "did you mean 'numpy'?"),
        (["--compare", "keras"], 2, "unknown value 'keras'; known are interp, numpy, onnx\n"),
        (["--compare", "onnx"], 2, "no reference for an input in Stripe"),
        (["--compare", "numpy"], 2, "--compare numpy"),
        (["--bench", "0"], 2, "'0' is no whole number from 1 on"),
        (["--random", "-1"], 2, "--random"),
        (["--data", "missing.npz"], 1, "missing.npz"),
        (["--out", "/nowhere/at/all/x.npz"], 2, "/nowhere/at/all/x.npz"),
        (["--json", "/nowhere/at/all/x.json"], 2, "/nowhere/at/all/x.json"),
    ],
)
def test_wrong_usage(arguments: list[str], status: int, reason: str, mm: str, capsys: Capture) -> None:
    assert main([mm, *arguments]) == status
    captured = capsys.readouterr()
    assert reason in captured.err
    assert "Traceback" not in captured.err


def test_data_that_do_not_fit(mm: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, A=np.zeros((8, 6), np.float32), B=np.zeros((4, 6), np.float32))
    assert main([mm, "--data", str(path)]) == 1
    assert f"{path}: " in capsys.readouterr().err
    path.write_text("no archive", "utf-8")
    assert main([mm, "--data", str(path)]) == 1
    assert "not a .npz file" in capsys.readouterr().err
