"""The sweeps under examples/: each is whole, and its points compile."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from stripe.sweeps.decisions import decisions
from stripe.sweeps.evaluate import RowStatus
from stripe.sweeps.plan import read_plan
from stripe.sweeps.results import pareto_front
from stripe.sweeps.run import run_sweep
from stripe.sweeps.store import open_store, writing_store
from stripe.sweeps.strategy import Listed, strategy_of
from stripe.sweeps.workers import SerialExecutor, WorkerSetup
from tests.support.tiers import some
from tools import networks

SWEEPS = Path(__file__).resolve().parents[2] / "examples" / "sweeps"
POINTS = {"dsp_conv": 500, "mali": 6, "sram": 12, "systolic": 19, "tilings": 6}


def test_all_sweeps_are_known() -> None:
    lists = {path for path in SWEEPS.glob("*.json.j2") if "passes" in path.name}
    assert {
        path.name.split(".")[0] for path in SWEEPS.glob("*.json.j2") if path not in lists
    } == POINTS.keys()


@pytest.mark.parametrize("name", POINTS)
def test_a_sweep_has_its_points(name: str) -> None:
    assert sum(1 for _ in read_plan(SWEEPS / f"{name}.json.j2", {}).space.grid()) == POINTS[name]


@pytest.mark.parametrize("name", some(["mali", "sram", "systolic", "tilings"], every=2))
def test_points_of_small_sweeps_compile(name: str, tmp_path: Path) -> None:
    plan = read_plan(SWEEPS / f"{name}.json.j2", {})
    points = list(plan.space.grid())
    chosen = Listed(iter((points[0], points[-1])))
    with writing_store(tmp_path, plan, resume=False) as store:
        run_sweep(plan, store, chosen, SerialExecutor(WorkerSetup(plan, None, None)), seconds=None)
    assert [row.status for row in open_store(tmp_path).rows()] == [RowStatus.OK] * 2 * len(plan.workloads)
    assert strategy_of(plan, 1).ask() == (points[0],)


@pytest.mark.slow
def test_the_manual_has_the_answers_of_the_sweep_of_sram(tmp_path: Path) -> None:
    plan = read_plan(SWEEPS / "sram.json.j2", {})
    with writing_store(tmp_path, plan, resume=False) as store:
        run_sweep(
            plan, store, strategy_of(plan, None), SerialExecutor(WorkerSetup(plan, None, None)), seconds=None
        )
    results = open_store(tmp_path).results()
    found = {
        (r.point.choices["DRAM_BYTES"], r.point.choices["SRAM_SIZE_KIB"]): r.metrics["latency_us"]
        for r in results
    }
    slow, fast, wide = found[16, 16], found[16, 32], found[64, 16]
    assert all(time == (wide if width == 64 else fast) for (width, size), time in found.items() if size != 16)
    page = (SWEEPS.parents[1] / "docs" / "sweeps.md").read_text("utf-8")
    assert (
        f"any SRAM takes {wide:.2f} µs; with 16 bytes 16 KiB take {slow:.2f} µs and more memory {fast:.2f}."
        in page
    )
    front = pareto_front(results, plan.objectives)
    assert [tuple(r.point.choices.values()) for r in front] == [(64, 16), (16, 32), (16, 16)]


def test_all_products_of_the_layer_of_bert_run_on_the_array() -> None:
    plan = read_plan(SWEEPS / "systolic.json.j2", {})
    point = next(point for point in plan.space.grid() if point.choices == {"ROWS": 128, "COLUMNS": 128})
    found = decisions(plan, point)
    products = {block for _, entry, block in found if entry == "instructions"}
    assert products == {"queries", "keys", "values", "scores", "sums", "heads", "wide", "narrow"}


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2"])
def test_networks_are_those_that_their_command_writes(name: str) -> None:
    kept = onnx.load_model_from_string((SWEEPS / "networks" / f"{name}.onnx").read_bytes())
    assert kept == networks.without_weights(networks.FOLDED[name]())
