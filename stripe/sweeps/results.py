"""Results of points over their mix of workloads: outcomes, feasibility, and the points that nothing dominates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stripe.config.template import Parameter, evaluate
from stripe.ir import ConfigError, StripeError
from stripe.ir.errors import did_you_mean
from stripe.sweeps.evaluate import ResultRow, RowStatus, broken_constraint
from stripe.sweeps.metrics import Metrics, mixed, nested
from stripe.sweeps.schema import ObjectiveSpec
from stripe.sweeps.space import PASSES, DesignPoint
from stripe.sweeps.strategy import Outcome


@dataclass(frozen=True, slots=True)
class PointResult:
    """A point with the metrics of the mix. `reason` says why it is not feasible; it is empty for one that is."""

    point: DesignPoint
    rows: tuple[ResultRow, ...]
    metrics: Metrics
    reason: str

    def value(self, metric: str) -> float:
        """The value of a metric of a feasible point: 0 by a path to what its program does not use, such as a bus or the
        multipliers of a unit."""
        return self.metrics.get(metric, 0.0) if "." in metric else self.metrics[metric]

    def outcome(self, objectives: Sequence[ObjectiveSpec]) -> Outcome:
        """The objectives, smaller being better; None where the point is not feasible."""
        if self.reason:
            return None
        signs = [1.0 if objective.goal == "min" else -1.0 for objective in objectives]
        return tuple(sign * self.value(o.metric) for sign, o in zip(signs, objectives, strict=True))


def point_result(
    rows: Sequence[ResultRow], weights: Mapping[str, float], constraints: Sequence[str]
) -> PointResult:
    """The result of one point from its rows."""
    point = rows[0].point
    failed = next((row for row in rows if row.status is not RowStatus.OK), None)
    if failed is not None:
        reason = f"{failed.workload}: {failed.reason or failed.status.value}"
        return PointResult(point, tuple(rows), {}, reason)
    metrics = mixed([(weights[row.workload], row.metrics) for row in rows])
    known: dict[str, Parameter] = {**rows[0].parameters, **point.choices, PASSES: point.passes}
    known |= nested(metrics) if constraints else {}
    for constraint in constraints:
        try:
            kept = evaluate(constraint, known)
        except ConfigError as error:  # a path that this machine has not
            return PointResult(point, tuple(rows), metrics, error.reason)
        if not kept:
            return PointResult(point, tuple(rows), metrics, broken_constraint(constraint))
    return PointResult(point, tuple(rows), metrics, "")


def point_results(
    rows: Iterable[ResultRow], weights: Mapping[str, float], constraints: Sequence[str]
) -> tuple[PointResult, ...]:
    """The results of all points, in the order of their rows."""
    return tuple(point_result(found, weights, constraints) for found in rows_by_point(rows).values())


def rows_by_point(rows: Iterable[ResultRow]) -> dict[DesignPoint, list[ResultRow]]:
    """The rows of each point, one a workload."""
    found: dict[DesignPoint, list[ResultRow]] = {}
    for row in rows:
        found.setdefault(row.point, []).append(row)
    return found


def pareto_front(
    results: Iterable[PointResult], objectives: Sequence[ObjectiveSpec]
) -> tuple[PointResult, ...]:
    """The feasible points that no other is at least as good as in all objectives and better in one.

    Sorted by the first objective. One pass over the points in lexicographic order: a point can be dominated only by one
    before it.
    """
    ranked = sorted(
        (
            (outcome, result)
            for result in _with_metrics(results, objectives)
            if (outcome := result.outcome(objectives)) is not None
        ),
        key=lambda pair: pair[0],
    )
    front: list[tuple[tuple[float, ...], PointResult]] = []
    for outcome, result in ranked:
        before = (other for other, _ in front if other != outcome)
        if not any(all(x <= y for x, y in zip(other, outcome, strict=True)) for other in before):
            front.append((outcome, result))
    return tuple(result for _, result in front)


def best(results: Iterable[PointResult], objective: ObjectiveSpec, count: int = 1) -> tuple[PointResult, ...]:
    """The `count` best feasible points by one objective, in order; equal ones in the order of points."""
    found = _with_metrics(results, (objective,))
    feasible = [result for result in found if not result.reason]
    return tuple(sorted(feasible, key=lambda result: result.outcome((objective,)) or ())[:count])


def _with_metrics(
    results: Iterable[PointResult], objectives: Sequence[ObjectiveSpec]
) -> Sequence[PointResult]:
    """The results; none where no point has one of the objectives."""
    found = list(results)
    known = {name for result in found for name in result.metrics}
    return found if known.issuperset(objective.metric for objective in objectives) else []


def best_point(results: Sequence[PointResult], objective: ObjectiveSpec) -> PointResult:
    """The best feasible point by one objective. Raises ConfigError for a metric that no point has, StripeError where no
    point is feasible."""
    known = {name for result in results for name in result.metrics}
    if known and objective.metric not in known:
        reason, hint = missing_metric(objective.metric, known)
        raise ConfigError(reason, hint=hint)
    found = best(results, objective)
    if not found:
        raise StripeError(
            "no point is feasible", hint="'stripe-sweep export' tells why, in the column reason"
        )
    return found[0]


def missing_metric(metric: str, known: Collection[str]) -> tuple[str, str]:
    """The reason and the hint of an error about a metric that no point has."""
    hint = did_you_mean(metric, sorted(known), "'stripe-sweep export' lists the metrics")
    return f"no point has a metric '{metric}'", hint
