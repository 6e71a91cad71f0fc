"""Runs a sweep: points by the strategy, rows by the executor, kept in the store as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stripe.sweep.evaluate import Row
from stripe.sweep.plan import SweepPlan
from stripe.sweep.results import PointResult, point_result
from stripe.sweep.space import DesignPoint
from stripe.sweep.store import ResultStore
from stripe.sweep.strategy import Outcome, Strategy
from stripe.sweep.workers import PointExecutor, evaluated

KEEP_EVERY = 0.5
"""Seconds between two transactions."""


@dataclass(slots=True)
class SweepProgress:
    """The state of a run, for those who watch it."""

    total: int | None
    """Points of the whole run; None where the strategy decides as it goes."""
    done: int = 0
    reused: int = 0
    """Points whose rows were in the store."""
    failed: int = 0
    best: dict[str, float] = field(default_factory=dict[str, float])
    """The best value of each objective so far."""
    start: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float:
        """Points a second, of those evaluated in this run."""
        return (self.done - self.reused) / max(1e-9, time.monotonic() - self.start)

    @property
    def seconds_left(self) -> float | None:
        """Estimated time to the end."""
        if self.total is None or self.rate == 0:
            return None
        return (self.total - self.done) / self.rate

    def add(self, result: PointResult, plan: SweepPlan) -> None:
        self.done += 1
        self.failed += bool(result.reason)
        for objective in plan.objectives if not result.reason else ():
            value = result.metrics.get(objective.metric)
            known = self.best.get(objective.metric)
            better = min if objective.goal == "min" else max
            if value is not None:
                self.best[objective.metric] = value if known is None else better(known, value)


def run_sweep(
    plan: SweepPlan,
    store: ResultStore,
    strategy: Strategy,
    executor: PointExecutor,
    *,
    seconds: float | None,
    batch: int = 1,
    total: int | None = None,
    watch: Callable[[SweepProgress], object] = lambda _: None,
) -> SweepProgress:
    """Evaluates the points of the strategy that have no rows yet. `seconds` is the time that a point may take."""
    progress = SweepProgress(total)
    weights = {workload.name: workload.weight for workload in plan.workloads}
    known = _known_rows(store)
    while points := strategy.ask():
        outcomes: dict[DesignPoint, Outcome] = {}
        for point in points:
            if point in known:
                result = point_result(known[point], weights, plan.constraints)
                outcomes[point] = result.outcome(plan.objectives)
                progress.add(result, plan)
                progress.reused += 1
        watch(progress)
        todo = (point for point in points if point not in known)
        for rows in _kept(store, evaluated(executor, plan, todo, batch, seconds)):
            result = point_result(rows, weights, plan.constraints)
            outcomes[result.point] = result.outcome(plan.objectives)
            progress.add(result, plan)
            watch(progress)
        strategy.tell(outcomes)
    return progress


def _known_rows(store: ResultStore) -> dict[DesignPoint, list[Row]]:
    known: dict[DesignPoint, list[Row]] = {}
    for row in store.rows():
        known.setdefault(row.point, []).append(row)
    return known


def _kept(store: ResultStore, points: Iterator[tuple[Row, ...]]) -> Iterator[tuple[Row, ...]]:
    """The points, each kept in the store; some share a transaction when they come quickly."""
    waiting: list[tuple[Row, ...]] = []
    last = 0.0
    try:
        for rows in points:
            waiting.append(rows)
            if time.monotonic() - last > KEEP_EVERY:
                store.add(waiting)
                waiting, last = [], time.monotonic()
            yield rows
    finally:
        store.add(waiting)
