"""The event simulator: times that follow by hand, and what holds for every run."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.cost.time.contention import Run, Task, simulate

CPU = (("CPU[0]",), 1)
EITHER = (("CPU[0]", "CPU[1]"), 1)


def task(
    cycles: float,
    *deps: int,
    pool: tuple[tuple[str, ...], int] | None = None,
    latency: float = 0.0,
    **need: float,
) -> Task:
    """A task; `need` gives cycles of shared resources."""
    return Task("t", latency, cycles, (pool,) if pool else (), need, deps)


def times(tasks: list[Task], **channels: int) -> list[tuple[float, float]]:
    return [(run.start, run.end) for run in simulate(tasks, channels)]


def test_one_unit_takes_tasks_one_after_the_other() -> None:
    assert times([task(10, pool=CPU), task(5, pool=CPU)]) == [(0, 10), (10, 15)]


def test_any_free_unit_will_do() -> None:
    runs = simulate([task(10, pool=EITHER), task(5, pool=EITHER), task(5, pool=EITHER)], {})
    assert [run.units for run in runs] == [("CPU[0]",), ("CPU[1]",), ("CPU[1]",)]
    assert runs[2].start == 5


def test_channels_are_tasks_at_the_same_time() -> None:
    pool = (("DMA[0]",), 1)
    tasks = [task(10, pool=pool) for _ in range(3)]
    assert simulate(tasks, {"DMA[0]": 2})[2].start == 10


def test_dependences_and_latency() -> None:
    assert times([task(10, latency=2), task(5, 0, latency=3)]) == [(0, 12), (12, 20)]


def test_two_tasks_share_a_bus_evenly() -> None:
    runs = simulate([task(10, bus=10), task(20, bus=20)], {})
    assert [run.end for run in runs] == [20, 30]
    assert runs[0].slowed == pytest.approx({"bus": 10})


def test_what_one_resource_holds_back_leaves_others_room() -> None:
    """Max-min fairness: the link takes two tasks to half their pace, so that the bus has three quarters left for the
    first one, not the two thirds of an even share."""
    runs = simulate([task(30, bus=30), task(30, bus=15, link=30), task(30, link=30)], {})
    assert [run.end for run in runs] == pytest.approx([40, 60, 60])
    assert runs[0].slowed == pytest.approx({"bus": 10})
    assert runs[1].slowed == pytest.approx({"link": 30})


def test_a_task_that_needs_little_of_a_bus_slows_down_with_it() -> None:
    """Together they need 1.5 buses, so each gets on at two thirds of its pace until one has ended."""
    runs = simulate([task(10, bus=10), task(10, bus=5)], {})
    assert [run.end for run in runs] == pytest.approx([15, 15])


def test_half_a_bus_each_is_no_conflict() -> None:
    assert times([task(10, bus=5), task(10, bus=5)]) == [(0, 10), (0, 10)]


def test_no_time_at_all() -> None:
    assert times([task(0), task(0, 0)]) == [(0, 0), (0, 0)]
    assert simulate([], {}) == []


@st.composite
def graphs(draw: st.DrawFn) -> list[Task]:
    found: list[Task] = []
    for number in range(draw(st.integers(1, 9))):
        cycles = draw(st.integers(1, 20))
        deps = [d for d in range(number) if draw(st.booleans()) and draw(st.booleans())]
        pool = draw(st.sampled_from([CPU, EITHER, None]))
        need = {bus: draw(st.integers(0, cycles)) for bus in ("a", "b") if draw(st.booleans())}
        found.append(task(cycles, *deps, pool=pool, latency=draw(st.integers(0, 3)), **need))
    return found


@given(graphs())
def test_what_holds_for_every_run(tasks: list[Task]) -> None:
    runs = simulate(tasks, {})
    total = max(run.end for run in runs)
    for one, run in zip(tasks, runs, strict=True):
        assert run.start >= run.ready - 1e-9 >= max((runs[d].end for d in one.deps), default=0.0) - 2e-9
        lost = sum(run.slowed.values())
        assert run.end - run.start == pytest.approx(one.latency + one.cycles + lost)
    for bus in ("a", "b"):
        assert total >= sum(one.demand.get(bus, 0) for one in tasks) - 1e-6
    for unit in ("CPU[0]", "CPU[1]"):
        assert _apart([run for run in runs if unit in run.units])


def _apart(runs: list[Run]) -> bool:
    ordered = sorted((run.start, run.end) for run in runs)
    return all(first[1] <= second[0] + 1e-9 for first, second in pairwise(ordered))
