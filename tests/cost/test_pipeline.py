"""Pipelines of tiles: against recurrences, known closed forms, and extrapolation against simulating every tile."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.cost.time.pipeline import PipelineStage, pipeline_cycles, pipeline_slices

CYCLES = st.integers(1, 9)


def recurrence(stages: list[PipelineStage], tiles: int, depth: int) -> float:
    """The end of the last tile when each stage has a resource of its own, so that tiles pass it in order."""
    ends: list[list[float]] = []
    for tile in range(tiles):
        row: list[float] = []
        for number, stage in enumerate(stages):
            waits = [row[dep] for dep in stage.deps]
            if tile:
                waits.append(ends[tile - 1][number])
                waits += [ends[tile - 1][turn] for turn in stage.turns]
            if tile >= depth:
                waits += [ends[tile - depth][share] for share in stage.shares]
            row.append(max(waits, default=0.0) + stage.cycles)
        ends.append(row)
    return max(ends[-1])


def three(load: int, compute: int, store: int) -> list[PipelineStage]:
    """Loading into one buffer, computing into another, storing from that, each on its own unit."""
    return [
        PipelineStage("in", load, (), (0, 1)),
        PipelineStage("unit", compute, (0,), (0, 1, 2)),
        PipelineStage("out", store, (1,), (1, 2)),
    ]


@given(CYCLES, CYCLES, CYCLES, st.integers(1, 400), st.integers(2, 4))
def test_stages_with_units_of_their_own(load: int, compute: int, store: int, tiles: int, depth: int) -> None:
    found = pipeline_cycles(three(load, compute, store), tiles, depth)
    assert found.exact
    assert found.cycles == pytest.approx(recurrence(three(load, compute, store), tiles, depth))


@given(CYCLES, CYCLES, CYCLES, st.integers(1, 400), st.integers(2, 4))
def test_stages_that_take_turns(load: int, compute: int, store: int, tiles: int, depth: int) -> None:
    """One copy of what is computed: storing comes before computing of the next tile."""
    stages = three(load, compute, store)
    stages = [stages[0], replace(stages[1], turns=(1, 2)), replace(stages[2], turns=(1, 2))]
    found = pipeline_cycles(stages, tiles, depth)
    assert found.exact
    assert found.cycles == pytest.approx(recurrence(stages, tiles, depth))


@pytest.mark.parametrize(
    ("depth", "cycles"),
    [(1, 10 * (3 + 5 + 2)), (2, 3 + 10 * 5 + 2)],
    ids=["one after the other", "bound by computing"],
)
def test_known_times(depth: int, cycles: int) -> None:
    assert pipeline_cycles(three(3, 5, 2), 10, depth).cycles == cycles


@given(CYCLES, CYCLES, CYCLES, st.integers(49, 500), st.integers(2, 3))
def test_a_shared_transfer_unit_settles(load: int, compute: int, store: int, tiles: int, depth: int) -> None:
    """Loads and stores on one unit: the extrapolation agrees with every tile simulated."""
    stages = [
        PipelineStage("dma", load, (), (0, 1)),
        PipelineStage("unit", compute, (0,), (0, 1, 2)),
        PipelineStage("dma", store, (1,), (1, 2)),
    ]
    slices = pipeline_slices(stages, tiles, depth)
    found = pipeline_cycles(stages, tiles, depth)
    assert found.cycles == pytest.approx(max(s.end for s in slices))
    assert found.cycles >= tiles * max(load + store, compute)
    by_statement = sorted((s.start, s.end) for s in slices if stages[s.stage].resource == "dma")
    assert all(a[1] <= b[0] for a, b in pairwise(by_statement))


def test_a_million_tiles_take_no_longer_to_count() -> None:
    found = pipeline_cycles(three(3, 7, 2), 10**6, 2)
    assert found.exact
    assert found.cycles == 3 + 7 * 10**6 + 2


def test_no_tiles_take_no_time() -> None:
    assert pipeline_cycles(three(1, 1, 1), 0, 2).cycles == 0
    assert pipeline_cycles([], 5, 2).cycles == 0


def test_equal_loops_are_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [PipelineStage("dma", 3.25), PipelineStage("conv", 5.5, (0,), (0,))]
    shown = pipeline_slices(stages, 7, 2)
    monkeypatch.setattr("stripe.cost.time.pipeline._simulate", pytest.fail)
    assert pipeline_slices(list(stages), 7, 2) is shown
