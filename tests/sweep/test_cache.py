"""Kept results: found for machines that agree, by a route whose length does not depend on their number, and bounded."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stripe.hw.load import load_hardware
from stripe.hw.trace import MachineFacts, Reads
from stripe.sweeps import evaluate
from stripe.sweeps.cache import ResultCache
from stripe.sweeps.evaluate import Evaluator
from stripe.sweeps.plan import SweepPlan

Plans = Callable[..., SweepPlan]

MACHINES = {
    clock: MachineFacts(load_hardware("dsp_conv", {"CLOCK_MHZ": clock, "NUM_CONV": 2}))
    for clock in range(50, 2050, 50)
}


def reads_of(machine: MachineFacts) -> Reads:
    """A computation that reads another field where the clock is slow, and the sizes of the memories in any case."""
    slow = float(machine.at("clock_mhz") or 0) < 100
    places = ["technology_nm", "clock_mhz", "exec_units.CONV.count" if slow else "exec_units.DSP.count"]
    places += [
        f"mem_units.{name}.{field}" for name in ("DRAM", "SRAM") for field in ("size_KiB", "count", "banks")
    ]
    places += [
        f"exec_units.{name}.{field}" for name in ("CONV", "DSP") for field in ("area_mm2", "pipeline_depth")
    ]
    places += [
        f"buses.{number}.{field}" for number in range(8) for field in ("bytes_per_cycle", "latency_cycles")
    ]
    return {place: machine.at(place) or "" for place in places}


def filled(path: Path, clocks: list[int], most: int = 1000) -> ResultCache:
    cache = ResultCache(path, most)
    for clock in clocks:
        cache.add("key", reads_of(MACHINES[clock]), {"clock": clock}, b"layers")
    return cache


def test_a_result_is_found_for_machines_that_agree(tmp_path: Path) -> None:
    cache = filled(tmp_path / "c", list(MACHINES))
    for clock, machine in MACHINES.items():
        found = cache.find("key", machine)
        assert found is not None
        assert (found.value, found.layers) == ({"clock": clock}, b"layers")
    assert cache.find("other", MACHINES[100]) is None
    wider = load_hardware("dsp_conv", {"CLOCK_MHZ": 100, "NUM_CONV": 2, "DRAM_BYTES": 8})
    assert cache.find("key", MachineFacts(wider)) is None
    larger = load_hardware("dsp_conv", {"CLOCK_MHZ": 100, "NUM_CONV": 4})  # no field that was read
    assert cache.find("key", MachineFacts(larger)) is not None


def test_a_lookup_asks_no_more_where_there_are_more_results(tmp_path: Path) -> None:
    asked: list[str] = []
    counts: list[int] = []
    for count in (3, len(MACHINES)):
        cache = filled(tmp_path / str(count), list(MACHINES)[:count])
        assert cache._database is not None
        cache._database.set_trace_callback(asked.append)
        assert cache.find("key", MACHINES[100]) is not None
        counts.append(len(asked))
        asked.clear()
    assert counts[0] == counts[1] <= 10


def test_what_was_used_least_recently_is_dropped_with_its_part_of_the_tree(tmp_path: Path) -> None:
    path = tmp_path / "c"
    cache = filled(path, list(MACHINES), most=10)
    with sqlite3.connect(path) as database:
        (results,) = database.execute("SELECT count(*) FROM results").fetchone()
        (nodes,) = database.execute("SELECT count(*) FROM reads").fetchone()
    assert results <= 10
    assert nodes <= 2 * results + 1
    assert cache.find("key", MACHINES[2000]) is not None
    assert cache.find("key", MACHINES[50]) is None


def test_a_point_that_was_rendered_before_is_not_rendered_again(
    plan_of: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(constraints=["NUM_CONV < 4", "area_mm2 < 1000"])
    first = Evaluator(plan, ResultCache(tmp_path / "c"))
    rows = {point: first.rows(point) for point in plan.space.grid()}
    monkeypatch.setattr(evaluate, "simulate_program", None)
    monkeypatch.setattr(type(plan.space.templates), "rendered", None)
    again = Evaluator(plan, ResultCache(tmp_path / "c"))
    for point, (row,) in rows.items():
        (found,) = again.rows(point)
        assert (found.metrics, found.layers, found.status, found.reason) == (
            row.metrics, row.layers, row.status, row.reason,
        )  # fmt: skip
        assert (found.provenance, found.parameters) == (row.provenance, row.parameters)


def test_an_edited_template_is_rendered_again(plan_of: Plans, tmp_path: Path) -> None:
    text = Path("optconfigs/dsp_conv.json.j2").read_text("utf-8")
    machine = Path("hwmodels/dsp_conv.json.j2").read_text("utf-8")
    (tmp_path / "list.json.j2").write_text(text, "utf-8")
    (tmp_path / "machine.json.j2").write_text(machine, "utf-8")
    parameters = Path("hwmodels/dsp_conv.params.json").read_text("utf-8")
    (tmp_path / "machine.params.json").write_text(parameters, "utf-8")
    plan = plan_of(passes=["./list.json.j2"], hardware="./machine.json.j2", axes={})
    (point,) = plan.space.grid()
    evaluator = Evaluator(plan, ResultCache(tmp_path / "c"))
    (row,) = evaluator.rows(point)
    slower = machine.replace('"clock_mhz": {{ CLOCK_MHZ }}', '"clock_mhz": {{ CLOCK_MHZ / 2 }}')
    assert slower != machine
    (tmp_path / "machine.json.j2").write_text(slower, "utf-8")
    (other,) = evaluator.rows(point)
    assert other.metrics["latency_us"] == pytest.approx(2 * row.metrics["latency_us"])


DAMAGE = [
    "results SET value = '[1, 2]'",
    "results SET value = (SELECT value FROM results WHERE number = 2)",
    "results SET layers = x'00112233'",
    "results SET layers = 7",
    "results SET nodes = '{'",
    "results SET node = number",
    "results SET number = number + 100",
    "results SET checksum = NULL",
    "results SET used = 'never', value = NULL",
    "points SET facts = '{}'",
    "points SET result = 2",
    "reads SET places = '[1]'",
    "reads SET places = '{}'",
    "reads SET checksum = NULL",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_row_is_told_and_computed_anew(plan_of: Plans, tmp_path: Path, damage: str) -> None:
    plan = plan_of(axes={"NUM_CONV": {"values": [1, 2]}})
    path = tmp_path / "c"
    points = list(plan.space.grid())
    expected = [Evaluator(plan, ResultCache(path)).rows(point) for point in points]
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE OR REPLACE {damage}")
        if not damage.startswith("points"):
            database.execute("DELETE FROM points")
    told: list[str] = []
    for _ in range(2):
        evaluator = Evaluator(plan, ResultCache(path, warn=told.append))
        for point, rows in zip(points, expected, strict=True):
            found = evaluator.rows(point)
            assert [replace(row, seconds=0) for row in found] == [replace(row, seconds=0) for row in rows]
            assert [row.layers for row in found] == [row.layers for row in rows]
    # a row that is not found is no damaged one
    assert len(told) == (damage != "results SET node = number"), told


def test_a_clearing_drops_damaged_rows(tmp_path: Path) -> None:
    path = tmp_path / "c"
    filled(path, [50, 100], most=1000).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE results SET nodes = '{' WHERE number = 1")
    cache = filled(path, list(MACHINES), most=20)
    assert cache.find("key", MACHINES[2000]) is not None
    with sqlite3.connect(path) as database:
        (results,) = database.execute("SELECT count(*) FROM results").fetchone()
    assert results <= 20
