"""Runs a sweep: points by the strategy, rows by the executor, kept in the store as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stripe.ir import ConfigError
from stripe.sweeps.evaluate import ResultRow
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.results import PointResult, point_result, rows_by_point
from stripe.sweeps.space import DesignPoint
from stripe.sweeps.store import ResultStore
from stripe.sweeps.strategy import Outcome, Strategy
from stripe.sweeps.workers import PointExecutor, evaluated


@dataclass(slots=True)
class SweepProgress:
    """The state of a run, for progress lines and notebooks."""

    total: int | None
    """Points of the whole run; None where the strategy decides as it goes."""
    done: int = 0
    reused: int = 0
    """Points whose rows were in the store."""
    failed: int = 0
    best: dict[str, float] = field(default_factory=dict[str, float])
    """The best value of each objective so far."""
    metrics: set[str] = field(default_factory=set[str])
    """The metrics that points have had."""
    start: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float:
        """Points evaluated in this run, per second."""
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
        self.metrics |= result.metrics.keys()
        for objective in plan.objectives if not result.reason else ():
            value = result.value(objective.metric)
            better = min if objective.goal == "min" else max
            self.best[objective.metric] = better(self.best.get(objective.metric, value), value)


def swept(
    plan: SweepPlan,
    store: ResultStore,
    strategy: Strategy,
    executor: PointExecutor,
    progress: SweepProgress,
    *,
    seconds: float | None,
    batch: int = 1,
) -> Iterator[PointResult]:
    """The results of all points of the strategy as they come; in each batch the points with rows in the store first.
    `seconds` is the time that a point may take. Raises ConfigError where a template changes meanwhile: rows of two
    machines would stand side by side."""
    identity = plan.identity
    weights = {workload.name: workload.weight for workload in plan.workloads}
    known = rows_by_point(row for row in store.rows() if not row.breaks_other_than(plan.constraints))
    while points := strategy.ask():
        outcomes: dict[DesignPoint, Outcome] = {}

        def result_of(
            rows: Sequence[ResultRow], outcomes: dict[DesignPoint, Outcome] = outcomes
        ) -> PointResult:
            result = point_result(rows, weights, plan.constraints)
            outcomes[result.point] = result.outcome(plan.objectives)
            progress.add(result, plan)
            return result

        for point in points:
            if point in known:
                progress.reused += 1
                yield result_of(known[point])
        todo = (point for point in points if point not in known)
        for rows in evaluated(executor, plan, todo, batch, seconds):
            if plan.identity != identity:
                raise ConfigError(
                    "a template changed while the sweep ran",
                    path=str(plan.file),
                    hint="run the sweep again, into another folder",
                )
            store.add(rows)
            yield result_of(rows)
        strategy.tell(outcomes)


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
    """Evaluates the points of the strategy that have no rows yet."""
    progress = SweepProgress(total)
    for _ in swept(plan, store, strategy, executor, progress, seconds=seconds, batch=batch):
        watch(progress)
    return progress
