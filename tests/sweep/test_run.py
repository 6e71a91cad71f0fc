"""Sweeps run, are killed, and go on; every point is there once."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from pyarrow import parquet

import stripe
from stripe.cli.start import sweep
from stripe.hw.load import load_hardware
from stripe.hw.trace import MachineFacts
from stripe.ir import ConfigError
from stripe.ir.package_data import data_dir
from stripe.pipeline.files import load_pass_list
from stripe.pipeline.manager import PassManager
from stripe.sweeps import evaluate
from stripe.sweeps.evaluate import ResultRow, RowStatus, program_of
from stripe.sweeps.memo import PassMemo
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.results import pareto_front
from stripe.sweeps.run import SweepProgress, run_sweep
from stripe.sweeps.schema import ObjectiveSpec
from stripe.sweeps.store import csv_bytes, open_store, writing_store
from stripe.sweeps.strategy import strategy_of
from stripe.sweeps.workers import SerialExecutor, WorkerSetup, processes
from stripe.verify import enumeration
from stripe.verify.proof import judge
from stripe.verify.proof.witness import Unknown
from tests.frontends.test_onnx import conv_net

Capture = pytest.CaptureFixture[str]
Plans = Callable[..., SweepPlan]


def serial(
    plan: SweepPlan, folder: Path, *, resume: bool = False, cache: Path | None = None
) -> SweepProgress:
    """Runs a sweep in this process."""
    with writing_store(folder, plan, resume) as store:
        executor = SerialExecutor(WorkerSetup(plan, cache, folder))
        return run_sweep(plan, store, strategy_of(plan, None), executor, seconds=None)


def rows_of(folder: Path) -> list[ResultRow]:
    """The rows in a folder, without the time that they took, by point."""
    return sorted((replace(row, seconds=0.0) for row in open_store(folder).rows()), key=lambda r: r.point.key)


def test_each_point_has_a_row_with_parameters_metrics_and_provenance(plan_of: Plans, tmp_path: Path) -> None:
    plan = plan_of()
    done = serial(plan, tmp_path / "out")
    assert (done.done, done.failed, done.reused) == (6, 0, 0)
    rows = rows_of(tmp_path / "out")
    assert [row.point for row in rows] == sorted(plan.space.grid(), key=lambda point: point.key)
    row = rows[0]
    assert row.parameters["NUM_SRAM"] == 4  # a default
    assert row.metrics["latency_cycles"] / row.metrics["latency_us"] == pytest.approx(400)
    assert set(row.provenance) == {"model", "passes", "workload", "program"}


@pytest.mark.long
def test_rows_are_those_of_whole_runs_of_the_list(plan_of: Plans, tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile"
    axes = {"SRAM_SIZE_KIB": {"values": [16, 32]}, "CLOCK_MHZ": {"values": [500, 1000]}}
    plan = plan_of(workloads=[str(example)], axes=axes)
    memo = PassMemo(program_of(plan.workloads[0]))
    machines = [load_hardware("dsp_conv", point.choices) for point in plan.space.grid()]
    for machine in machines:
        values = dict(machine.parameters)
        entries = load_pass_list(plan.space.templates.lists["dsp_conv"].path, values).entries
        whole = PassManager(entries, machine).run(memo.root)
        assert memo.run(entries, MachineFacts(machine), {}) == whole
    assert memo.passes_reused >= memo.passes_run  # the list reads no clock


def test_an_equal_result_of_a_pass_that_ran_again_leads_to_the_results_behind_it(plan_of: Plans) -> None:
    """Passes that ask for costs read energies, and make the same program for another energy of the SRAM."""
    example = Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile"
    plan = plan_of(workloads=[str(example)])
    machine = load_hardware("dsp_conv", {"SRAM_SIZE_KIB": 64})
    entries = load_pass_list(plan.space.templates.lists["dsp_conv"].path, dict(machine.parameters)).entries
    memo = PassMemo(program_of(plan.workloads[0]))
    first = memo.run(entries, MachineFacts(machine), {})
    before, memo.passes_run = memo.passes_run, 0
    sram = machine.mem_units["SRAM"].model_copy(update={"read_pJ_per_byte": 1000.0})
    other = machine.model_copy(update={"mem_units": {**machine.mem_units, "SRAM": sram}})
    assert memo.run(entries, MachineFacts(other), {}) is first
    assert PassManager(entries, other).run(memo.root) == first
    assert memo.passes_run < before / 3


def test_no_pass_runs_again_for_a_machine_that_has_more_memories_of_which_one_is_used(plan_of: Plans) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile"
    plan = plan_of(workloads=[str(example)])
    memo = PassMemo(program_of(plan.workloads[0]))
    for count in (1, 8):
        machine = load_hardware("dsp_conv", {"SRAM_SIZE_KIB": 64, "NUM_SRAM": count})
        entries = load_pass_list(
            plan.space.templates.lists["dsp_conv"].path, dict(machine.parameters)
        ).entries
        before, memo.passes_run = memo.passes_run, 0
        memo.run(entries, MachineFacts(machine), {})
    assert before > 0
    assert memo.passes_run == 0


def test_prices_of_other_entries_are_not_taken(plan_of: Plans) -> None:
    """autotile asks what the rest of the list makes of a tile: its result holds under the same rest alone."""
    example = Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile"
    plan = plan_of(workloads=[str(example)])
    machine = load_hardware("dsp_conv", {"SRAM_SIZE_KIB": 16})
    entries = load_pass_list(plan.space.templates.lists["dsp_conv"].path, dict(machine.parameters)).entries
    memo = PassMemo(program_of(plan.workloads[0]))
    memo.run(entries[:1], MachineFacts(machine), {})
    assert memo.run(entries, MachineFacts(machine), {}) == PassManager(entries, machine).run(memo.root)


def test_processes_and_cache_give_the_rows_of_a_serial_run(plan_of: Plans, tmp_path: Path) -> None:
    plan = plan_of()
    serial(plan, tmp_path / "serial")
    for name in ("parallel", "cached"):
        setup = WorkerSetup(plan, tmp_path / "cache.sqlite", None)
        with writing_store(tmp_path / name, plan, resume=False) as store, processes(setup, 2) as executor:
            run_sweep(plan, store, strategy_of(plan, None), executor, seconds=60, batch=2)
        assert rows_of(tmp_path / name) == rows_of(tmp_path / "serial")


def test_a_resumed_sweep_evaluates_no_point_twice(plan_of: Plans, tmp_path: Path) -> None:
    serial(plan_of(points=2), tmp_path / "out")
    done = serial(plan_of(), tmp_path / "out", resume=True)
    assert (done.done, done.reused) == (6, 2)
    serial(plan_of(), tmp_path / "whole")
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "whole")


def test_results_of_another_sweep_are_not_mixed_with_new_ones(plan_of: Plans, tmp_path: Path) -> None:
    serial(plan_of(points=1), tmp_path / "out")
    with pytest.raises(ConfigError, match="there are results already"):
        serial(plan_of(), tmp_path / "out")
    (tmp_path / "mm.tile").write_text("function (A[N=4]) -> (B) { B = A + A; }", "utf-8")
    with pytest.raises(ConfigError, match="other workloads"):
        serial(plan_of(), tmp_path / "out", resume=True)


def test_two_runs_on_one_folder_are_refused(plan_of: Plans, tmp_path: Path) -> None:
    plan = plan_of()
    with (
        writing_store(tmp_path / "out", plan, resume=False),
        pytest.raises(ConfigError, match="another sweep is running"),
        writing_store(tmp_path / "out", plan, resume=True),
    ):
        pass


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 100])
def test_a_damaged_cache_is_begun_anew(plan_of: Plans, tmp_path: Path, damage: bytes) -> None:
    cache = tmp_path / "cache.sqlite"
    cache.write_bytes(damage)
    serial(plan_of(), tmp_path / "first", cache=cache)
    with contextlib.closing(sqlite3.connect(cache)) as database:
        assert database.execute("SELECT count(*) FROM results").fetchone()[0] > 0
    serial(plan_of(), tmp_path / "second", cache=cache)
    assert rows_of(tmp_path / "first") == rows_of(tmp_path / "second")


def test_a_point_that_does_not_fit_is_a_row_with_its_reason(plan_of: Plans, tmp_path: Path) -> None:
    serial(plan_of(constraints=["NUM_CONV < 4", "latency_us < 0.01"]), tmp_path / "out")
    results = open_store(tmp_path / "out").results()
    assert {r.reason for r in results} == {
        "mm: breaks the constraint NUM_CONV < 4",
        "breaks the constraint latency_us < 0.01",
    }


def test_a_constraint_may_name_metrics_by_path(plan_of: Plans, tmp_path: Path) -> None:
    limits = [
        "memories.SRAM.peak_bytes < 1e9",
        "units.CONV[1].utilisation >= 0",
        'energy["compute CONV"] > 0',
    ]
    serial(plan_of(constraints=limits), tmp_path / "out")
    reasons = {str(r.point.choices["NUM_CONV"]): r.reason for r in open_store(tmp_path / "out").results()}
    assert "CONV[1]" in reasons.pop("1") or "undefined" in reasons.get("1", "")
    assert set(reasons.values()) == {""}


def test_a_crash_of_the_compiler_is_a_row_with_a_reproducer(
    plan_of: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(evaluate, "simulate_program", fall)
    serial(plan_of(points=1), tmp_path / "out")
    (row,) = rows_of(tmp_path / "out")
    assert row.status is RowStatus.CRASHED
    (written,) = (tmp_path / "out").glob("*.reproducer.json")
    assert str(written) in row.reason


@pytest.mark.parametrize("strategy", ["random", "nsga2", "tpe"])
def test_a_strategy_proposes_the_same_points_again(plan_of: Plans, tmp_path: Path, strategy: str) -> None:
    chosen = {"name": strategy, "seed": 3, "generation": 2}
    axes = {"NUM_CONV": {"log2": [1, 16]}, "CLOCK_MHZ": {"range": [300, 500, 50]}}
    serial(plan_of(points=3, axes=axes, strategy=chosen), tmp_path / "part")
    serial(plan_of(points=6, axes=axes, strategy=chosen), tmp_path / "part", resume=True)
    serial(plan_of(points=6, axes=axes, strategy=chosen), tmp_path / "whole")
    assert len(rows_of(tmp_path / "whole")) == 6
    if strategy == "random":
        assert rows_of(tmp_path / "part") == rows_of(tmp_path / "whole")


def test_the_front_has_the_points_that_no_other_dominates(plan_of: Plans, tmp_path: Path) -> None:
    plan = plan_of(objectives=["latency_us", {"metric": "CLOCK", "goal": "min"}][:1])
    serial(plan, tmp_path / "out")
    results = open_store(tmp_path / "out").results()
    objectives = (ObjectiveSpec(metric="latency_us"), ObjectiveSpec(metric="energy_pJ"))
    front = pareto_front(results, objectives)
    outcomes = {r.outcome(objectives) for r in results}
    kept = {r.outcome(objectives) for r in front}
    for a in outcomes:
        assert a is not None
        dominated = any(b is not None and b != a and b[0] <= a[0] and b[1] <= a[1] for b in outcomes)
        assert (a in kept) is not dominated


def test_commands_from_run_to_verify(
    sweep_file: Callable[..., Path], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, out = str(sweep_file()), str(tmp_path / "out")
    assert sweep(["run", path, "--dry-run"]) == 0
    assert "6 points of a grid of 6, 1 workload\n" in capsys.readouterr().out
    assert sweep(["run", path, "--out", out, "--jobs", "1"]) == 0
    assert "6 points" in capsys.readouterr().err
    assert sweep(["best", out, "--objective", "latency_us"]) == 0
    printed, said = capsys.readouterr()
    assert printed == "--config dsp_conv --hw dsp_conv -D CLOCK_MHZ=500 -D NUM_CONV=1\n"
    assert re.fullmatch(r"stripe-sweep: the point with the smallest latency_us, [\d.]+ µs\n", said)
    assert sweep(["best", out, "--objective", "edp", "--largest"]) == 0
    assert re.search(r"the largest edp, [\de.-]+ J s\n", capsys.readouterr().err)
    assert sweep(["best", out, "--front"]) == 0
    front = capsys.readouterr().out
    assert front.startswith("Points that no other dominates: latency_us (smallest), ")
    assert re.search(r" energy_pJ\b.*\n.* [\d.]+ [un]J\b", front)
    assert sweep(["export", out]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 6
    assert sweep(["export", out, "-o", str(tmp_path / "rows.parquet")]) == 0
    columns = parquet.read_table(tmp_path / "rows.parquet").to_pydict()
    assert list(columns) == list(rows[0])  # each name once
    assert columns["workload"] == [row["workload"] for row in rows] == ["mm"] * 6
    assert len(columns["workload_hash"][0]) == 16
    assert sweep(["verify", out]) == 0
    assert "proved and executed" in capsys.readouterr().out
    with monkeypatch.context() as patched:  # runs agree where a proof has no answer, which is no proof
        for module, function in ((judge, "prove_equal"), (enumeration, "decide")):
            patched.setattr(module, function, lambda *_, **__: Unknown("it takes too long"))
        assert sweep(["verify", out]) == 0
    assert "not proved, equal in runs and executed" in capsys.readouterr().out
    assert sweep(["best", str(tmp_path / "nothing")]) == 2
    assert "there are no results" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_that_is_killed_at_random_moments_has_every_point_once(
    sweep_file: Callable[..., Path], plan_of: Plans, tmp_path: Path
) -> None:
    axes = {
        "NUM_CONV": {"log2": [1, 16]},
        "NUM_DSP": {"log2": [1, 8]},
        "CLOCK_MHZ": {"range": [300, 500, 50]},
    }
    path, out = sweep_file(axes=axes), tmp_path / "out"
    words = ["run", str(path), "--out", str(out), "--no-cache", "--jobs", "2"]
    generator = random.Random(11)
    killed = 0
    for attempt in range(40):
        command = [sys.executable, "-c", "import sys; from stripe.cli.start import sweep; sys.exit(sweep())"]
        process = subprocess.Popen(
            [*command, *words, *(["--resume"] if (out / "sweep.sqlite").exists() else [])],
            start_new_session=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(generator.uniform(0.5, 5.0 + attempt))
        if process.poll() is not None:
            assert process.returncode == 0
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        killed += 1
        time.sleep(0.1)
    assert killed
    serial(plan_of(axes=axes), tmp_path / "whole")
    assert rows_of(out) == rows_of(tmp_path / "whole")
    assert csv_bytes(open_store(out)).count(b"\n") == 101


@pytest.mark.long
def test_a_row_has_the_numbers_of_a_compilation_of_its_own(plan_of: Plans, tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile"
    axes = {"SRAM_SIZE_KIB": {"values": [64, 16]}, "DRAM_BYTES": {"values": [16, 64]}}
    serial(plan_of(workloads=[str(example)], axes=axes), tmp_path / "out")
    for row in rows_of(tmp_path / "out"):
        parameters = dict(row.point.parameters)
        machine = stripe.hardware("dsp_conv", **parameters)
        alone = stripe.simulate(
            stripe.run_passes(stripe.read(example), "dsp_conv", hardware=machine), machine
        )
        assert row.metrics["latency_cycles"] == alone.latency_cycles
        assert row.metrics["energy_pJ"] == alone.energy_pJ


def test_results_of_another_included_file_or_parameter_are_not_mixed_with_new_ones(
    plan_of: Plans, tmp_path: Path
) -> None:
    folder = data_dir("hwmodels")
    for name in ("portable.json.j2", "processor.j2"):
        (tmp_path / name).write_text((folder / name).read_text("utf-8"), "utf-8")
    described = tmp_path / "portable.params.json"
    described.write_text((folder / "portable.params.json").read_text("utf-8"), "utf-8")
    keys = {"hardware": "./portable.json.j2", "passes": ["cpu"], "axes": {"CORES": {"values": [1, 2]}}}
    before = plan_of(**keys).identity
    assert plan_of(**keys).identity == before
    for file in (tmp_path / "processor.j2", described):
        text = file.read_text("utf-8")
        file.write_text(text + "\n", "utf-8")
        assert plan_of(**keys).identity != before, file.name
        file.write_text(text, "utf-8")


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_lists_that_include_files_are_rendered_for_each_point(
    sign: str, plan_of: Plans, tmp_path: Path
) -> None:
    """What an included file reads is read, however the list includes it."""
    part = '{ "name": "at", "locate_block": { "reqs": ["kernel"], "loc": { "name": "{{ UNIT }}" } } }'
    part = part.replace("{{ UNIT }}", '{{ "DSP" if CLOCK_MHZ < 450 else "CONV" }}')
    (tmp_path / "part.j2").write_text(part, "utf-8")
    text = f'{{ "hardware": "dsp_conv", "passes": [\n{{%{sign} include "part.j2" %}}\n] }}'
    (tmp_path / "mine.json.j2").write_text(text, "utf-8")
    templates = plan_of(passes=["./mine.json.j2"], axes={"CLOCK_MHZ": {"values": [400, 500]}}).space.templates
    lists = [templates.rendered({"CLOCK_MHZ": clock}, "mine")[1] for clock in (400, 500)]
    assert ["DSP" in json.dumps(found.data) for found in lists] == [True, False]
    assert templates.content("mine") is None


def test_results_of_other_weights_beside_a_network_are_not_mixed_with_new_ones(
    plan_of: Plans, tmp_path: Path
) -> None:
    onnx.save(
        conv_net(), tmp_path / "net.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    before = plan_of(workloads=["net.onnx"]).identity
    (tmp_path / "w.bin").write_bytes(bytes(432))
    assert plan_of(workloads=["net.onnx"]).identity != before
