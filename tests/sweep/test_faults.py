"""Faults of the surroundings, through the command: each is one clear error, and no row is lost."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from stripe.cli.start import sweep
from stripe.ir import ConfigError
from stripe.ir.package_data import data_dir
from stripe.pipeline.reproducer import Reproducer
from stripe.sweeps import plan, store
from stripe.sweeps.evaluate import ResultRow, RowStatus
from stripe.sweeps.store import ResultStore, open_store, writing_store

Capture = pytest.CaptureFixture[str]
SweepWriter = Callable[..., Path]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def rows(folder: Path) -> list[ResultRow]:
    return list(open_store(folder).rows())


def test_a_point_that_takes_too_long_is_a_row_and_not_evaluated_again(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture
) -> None:
    path, out = str(sweep_file(axes={"NUM_CONV": {"values": [1, 2]}})), tmp_path / "out"
    words = ["run", path, "--out", str(out), "--jobs", "1", "--no-cache"]
    assert sweep([*words, "--point-timeout", "0.001"]) == 0
    assert "2 not feasible or failed" in capsys.readouterr().err
    assert [(row.status, row.reason) for row in rows(out)] == [
        (RowStatus.TIMEOUT, "stopped after 0.001 s")
    ] * 2
    assert sweep([*words, "--resume"]) == 0
    assert "2 of them from before" in capsys.readouterr().err


def test_a_full_disk_ends_the_run_with_the_rows_that_it_has(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = {"NUM_CONV": {"log2": [1, 8]}, "CLOCK_MHZ": {"range": [100, 1000, 50]}}
    path, out = str(sweep_file(axes=axes)), tmp_path / "out"
    opened = store._open

    def small(folder: Path) -> ResultStore:
        made = opened(folder)
        (pages,) = made._database.execute("PRAGMA page_count").fetchone()
        made._database.execute(f"PRAGMA max_page_count = {pages + 6}")
        return made

    words = ["run", path, "--out", str(out), "--jobs", "1"]
    with monkeypatch.context() as patched:
        patched.setattr(store, "_open", small)
        assert sweep(words) == 2
    error = capsys.readouterr().err
    assert "cannot keep results: database or disk is full" in error
    assert "make room on the disk, then go on with --resume" in error
    kept = len(rows(out))
    assert kept < 76
    assert sweep([*words, "--resume"]) == 0
    assert f"76 points in {out}, {kept} of them from before" in capsys.readouterr().err
    assert len({row.point for row in rows(out)}) == len(rows(out)) == 76


@pytest.mark.parametrize("place", ["mm.tile/out", "/proc/out"])
def test_a_folder_that_cannot_be_written_is_named(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture, place: str
) -> None:
    assert sweep(["run", str(sweep_file()), "--out", str(tmp_path / place)]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / place}: error: cannot be written" in error
    assert "name a folder of your own" in error


def test_a_change_of_the_library_of_operators_is_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {plan.program_version.__wrapped__()}
    folders = {kind: tmp_path / kind for kind in ("tilelib", "grammar")}
    for kind, folder in folders.items():
        shutil.copytree(data_dir(kind), folder)
    monkeypatch.setattr(plan, "data_dir", folders.__getitem__)
    assert plan.program_version.__wrapped__() in versions
    for file in (folders["tilelib"] / "onnx" / "batch_norm.tile.j2", next(folders["grammar"].glob("*.lark"))):
        with file.open("a") as text:
            text.write("\n")
        versions.add(plan.program_version.__wrapped__())
    monkeypatch.setattr(plan, "version", lambda name: f"1 of {name}")
    versions.add(plan.program_version.__wrapped__())
    assert len(versions) == 4


def test_two_runs_on_one_folder_and_other_results_in_it_are_refused(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = sweep_file(), tmp_path / "out"
    words = ["run", str(path), "--out", str(out), "--jobs", "1"]
    with writing_store(out, plan.read_plan(path, {}), resume=False):
        assert sweep([*words, "--resume"]) == 2
    assert "another sweep is running on this folder" in capsys.readouterr().err
    assert sweep(words) == 2
    assert "there are results already" in capsys.readouterr().err
    with monkeypatch.context() as patched:
        patched.setattr(plan, "program_version", lambda: "another")
        assert sweep([*words, "--resume"]) == 2
    assert "another version of the program" in capsys.readouterr().err
    database = sqlite3.connect(out / store.FILE)
    database.execute("PRAGMA user_version = 99")
    database.close()
    assert sweep([*words, "--resume"]) == 2
    assert "the store has format 99, and this version reads" in capsys.readouterr().err
    (out / store.FILE).write_bytes(b"no database at all" * 100)
    assert sweep(["best", str(out)]) == 2
    assert "this is no store of a sweep" in capsys.readouterr().err


def test_a_fault_of_the_run_itself_names_its_record_and_promises_no_replay(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the store fell over")

    monkeypatch.setattr(ResultStore, "add", broken)
    assert sweep(["run", str(sweep_file()), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 70
    error = capsys.readouterr().err
    assert "stripe-sweep run: internal fault: RuntimeError: the store fell over" in error
    assert "replay" not in error
    record = Reproducer.model_validate_json(Path(error.split(" are in ")[1].strip()).read_text("utf-8"))
    assert (record.tool, record.error) == ("stripe-sweep run", "RuntimeError: the store fell over")


def test_a_database_of_another_program_is_no_store(tmp_path: Path, capsys: Capture) -> None:
    with sqlite3.connect(tmp_path / store.FILE) as database:
        database.execute(f"PRAGMA user_version = {store._FORMAT}")
    assert sweep(["best", str(tmp_path)]) == 2
    assert "this is no store of a sweep: no such table: rows" in capsys.readouterr().err


COLUMNS = (
    "number = 7", "number = 'x'", "point = 'x'", "workload = 'x'", "status = 'fine'", "reason = NULL", "passes = 1",
    "given = '{'", "parameters = '[]'", "metrics = '{\"latency_us\": 0}'", "provenance = x'00'", "layers = 'x'",
    "seconds = 'x'", "checksum = NULL",
)  # fmt: skip


@pytest.mark.parametrize("damage", COLUMNS)
def test_damage_of_any_column_is_seen_and_drops_its_point(
    sweep_file: SweepWriter, tmp_path: Path, damage: str
) -> None:
    plan_ = plan.read_plan(sweep_file(axes={"NUM_CONV": {"values": [1, 2]}}), {})
    first, second = (ResultRow(point, "mm", RowStatus.OK, seconds=1) for point in plan_.space.grid())
    with writing_store(tmp_path, plan_, resume=False) as written:
        written.add((first,))
        written.add((second,))
    with sqlite3.connect(tmp_path / store.FILE) as database:
        database.execute(f"UPDATE rows SET {damage} WHERE rowid = 2")
    with pytest.raises(ConfigError, match="is damaged"):
        rows(tmp_path)
    with writing_store(tmp_path, plan_, resume=True) as resumed:
        assert resumed.dropped == 1
    assert rows(tmp_path) == [first]


def test_points_of_damaged_rows_are_computed_anew(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture
) -> None:
    path, out = str(sweep_file(axes={"NUM_CONV": {"values": [1, 2]}})), tmp_path / "out"
    words = ["run", path, "--out", str(out), "--jobs", "1"]
    assert sweep(words) == 0
    whole = {row.point: row.metrics for row in rows(out)}
    with sqlite3.connect(out / store.FILE) as database:
        database.execute("UPDATE rows SET metrics = '{}' WHERE rowid = 2")
    capsys.readouterr()
    for command in (["best", str(out)], ["export", str(out)], ["report", str(out)]):
        assert sweep(command) == 2
        assert "is damaged\n  hint: 'stripe-sweep run' with --resume" in capsys.readouterr().err
    assert sweep([*words, "--resume"]) == 0
    error = capsys.readouterr().err
    assert "sweep.sqlite: warning: rows of 1 points are damaged: they are computed anew" in error
    assert "2 points in" in error and " 1 of them from before" in error
    assert {row.point: row.metrics for row in rows(out)} == whole


@pytest.mark.parametrize(("fact", "status"), [("identity", 2), ("axes", 0)])
def test_a_damaged_fact_is_an_error(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture, fact: str, status: int
) -> None:
    path, out = sweep_file(), tmp_path / "out"
    with writing_store(out, plan.read_plan(path, {}), resume=False):
        pass
    with sqlite3.connect(out / store.FILE) as database:
        database.execute("UPDATE sweep SET value = '[1' WHERE name = ?", (fact,))
    assert sweep(["best", str(out)]) == 2
    assert f"the fact '{fact}' of the sweep is damaged" in capsys.readouterr().err
    assert sweep(["run", str(path), "--out", str(out), "--jobs", "1", "--resume"]) == status


def test_results_in_a_folder_that_is_read_only_are_read(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    plan_ = plan.read_plan(sweep_file(), {})
    with writing_store(out, plan_, resume=False) as written:
        points = list(plan_.space.grid())
        for point in points:
            written.add(
                (ResultRow(point, "mm", RowStatus.OK, metrics={"latency_us": 1.0, "energy_pJ": 2.0}),)
            )
        monkeypatch.setattr(store.os, "access", lambda *_: False)
        before = {file: file.read_bytes() for file in out.iterdir()}
        assert len(rows(out)) == len(points)  # those that SQLite has not yet moved into the file itself, too
        assert sweep(["best", str(out)]) == 0
        assert {file: file.read_bytes() for file in out.iterdir()} == before
    assert "-D CLOCK_MHZ=400" in capsys.readouterr().out


def test_a_resumed_run_keeps_the_aims_and_axes_of_the_file_as_it_is_now(
    sweep_file: SweepWriter, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with writing_store(out, plan.read_plan(sweep_file(), {}), resume=False):
        pass
    axes = {"NUM_CONV": {"log2": [1, 16]}}
    path = sweep_file(axes=axes, objectives=["edp"], constraints=["area_mm2 < 50"])
    with writing_store(out, plan.read_plan(path, {}), resume=True):
        pass
    facts = open_store(out).facts()
    assert [objective.metric for objective in facts.objectives] == ["edp"]
    assert facts.axes["NUM_CONV"][1] == (1, 2, 4, 8, 16)
    assert facts.constraints == ("area_mm2 < 50",)


def test_a_front_without_points_tells_why(sweep_file: SweepWriter, tmp_path: Path, capsys: Capture) -> None:
    out = str(tmp_path / "out")
    path = sweep_file(constraints=["latency_us < 0.001"], axes={})
    assert sweep(["run", str(path), "--out", out, "--jobs", "1"]) == 0
    assert sweep(["best", out, "--front"]) == 1
    assert "no point is feasible" in capsys.readouterr().err
    path = sweep_file(axes={}, objectives=["latency_us", "units.CNV[0].utilisation"])
    assert sweep(["run", str(path), "--out", out, "--jobs", "1", "--resume"]) == 0
    error = capsys.readouterr().err
    assert "warning: no point has a metric 'units.CNV[0].utilisation'" in error
    assert "did you mean 'units.CONV[0].utilisation'?" in error
    assert sweep(["best", out, "--front"]) == 2
    assert "no point has a metric 'units.CNV[0].utilisation'" in capsys.readouterr().err


def test_a_constraint_that_is_gone_breaks_nothing_any_more(
    sweep_file: SweepWriter, tmp_path: Path, capsys: Capture
) -> None:
    """A point that broke a constraint over parameters has no metrics; without the constraint it is computed."""
    out, axes = str(tmp_path / "out"), {"SRAM_SIZE_KIB": {"values": [4, 64]}}
    path = sweep_file(axes=axes, constraints=["SRAM_SIZE_KIB < 32"])
    assert sweep(["run", str(path), "--out", out, "--jobs", "1"]) == 0
    assert "1 not feasible" in capsys.readouterr().err
    path = sweep_file(axes=axes, constraints=["SRAM_SIZE_KIB < 100"])
    assert sweep(["run", str(path), "--out", out, "--jobs", "1", "--resume"]) == 0
    assert "2 points in " in (said := capsys.readouterr().err) and "1 of them from before, 0 not" in said
    assert [row.status for row in rows(tmp_path / "out")] == [RowStatus.OK, RowStatus.OK]


@pytest.fixture
def edited_list(tmp_path: Path) -> Callable[[], Path]:
    """A pass list of the user; each call edits it."""

    def edit() -> Path:
        path = tmp_path / "mine.json"
        known = path.read_text("utf-8") if path.exists() else '{"hardware": "dsp_conv", "passes": []}'
        path.write_text(f"// again\n{known}", "utf-8")
        return path

    return edit


def test_results_of_a_template_that_changed_are_not_explained_by_it(
    sweep_file: SweepWriter, edited_list: Callable[[], Path], tmp_path: Path, capsys: Capture
) -> None:
    out = str(tmp_path / "out")
    path = sweep_file(axes={}, passes=[str(edited_list())])
    assert sweep(["run", str(path), "--out", out, "--jobs", "1"]) == 0
    path.unlink()  # the store knows the sweep
    assert sweep(["report", out]) == 0
    capsys.readouterr()
    assert sweep(["best", out]) == 0
    assert "warning" not in capsys.readouterr().err
    edited_list()
    assert sweep(["report", out]) == 2
    assert sweep(["verify", out]) == 2
    assert capsys.readouterr().err.count("changed since these results") == 2
    assert sweep(["best", out]) == 0
    assert (
        "warning: templates, workloads or the program changed since these results" in capsys.readouterr().err
    )


def test_a_template_that_changes_meanwhile_ends_the_run(
    sweep_file: SweepWriter,
    edited_list: Callable[[], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    add = ResultStore.add

    def add_and_edit(self: ResultStore, found: tuple[ResultRow, ...]) -> None:
        add(self, found)
        edited_list()

    monkeypatch.setattr(ResultStore, "add", add_and_edit)
    path = sweep_file(axes={"CLOCK_MHZ": {"values": [400, 500]}}, passes=[str(edited_list())])
    assert sweep(["run", str(path), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 2
    assert "a template changed while the sweep ran" in capsys.readouterr().err
    assert len(rows(tmp_path / "out")) == 1


def test_a_pass_of_another_package_is_part_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        plan, "registered", lambda group: {"mine": "myplug:Mine"} if "passes" in group else {}
    )
    module = tmp_path / "myplug.py"
    versions = {plan.program_version.__wrapped__()}
    for text in ("UNIT = 1", "UNIT = 2"):
        module.write_text(text, "utf-8")
        versions.add(plan.program_version.__wrapped__())
    assert len(versions) == 3
