"""`stripe-sweep best`: the best point as options, or the points that no other dominates as a table."""

from __future__ import annotations

import shlex
from pathlib import Path

from stripe.cli.arguments.sweep import BestSpec
from stripe.cli.guard import OK
from stripe.cli.job import Job
from stripe.cli.streams import write_stdout
from stripe.cli.tables import write_tables
from stripe.config.parameters import shown
from stripe.cost.report.table import Table
from stripe.ir import ConfigError, StripeError
from stripe.ir.errors import did_you_mean
from stripe.sweep.results import PointResult, best, pareto_front
from stripe.sweep.schema import ObjectiveSpec
from stripe.sweep.space import PASSES
from stripe.sweep.store import SweepFacts, open_store


def perform(_job: Job, spec: BestSpec) -> int:
    """Prints; gives the exit status."""
    store = open_store(Path(spec.input or ""))
    facts, results = store.facts(), store.results()
    if spec.front:
        front = pareto_front(results, facts.objectives)
        axes = tuple(dict.fromkeys(name for result in front for name in (PASSES, *result.point.choices)))
        metrics = tuple(objective.metric for objective in facts.objectives)
        rows = tuple(
            (
                *(_plain({PASSES: r.point.passes, **r.point.choices}.get(axis, "")) for axis in axes),
                *(f"{r.metrics[metric]:.6g}" for metric in metrics),
            )
            for r in front
        )
        write_tables([Table("Points that no other dominates", (*axes, *metrics), rows)])
        return OK
    objective = facts.objectives[0]
    if spec.objective is not None:
        objective = ObjectiveSpec(metric=spec.objective, goal="max" if spec.largest else "min")
    known = sorted({name for result in results for name in result.metrics})
    if known and objective.metric not in known:
        hint = did_you_mean(objective.metric, known, "'stripe-sweep export' lists the metrics")
        raise ConfigError(f"there is no metric '{objective.metric}'", hint=hint)
    found = best(results, objective)
    if not found:
        raise StripeError(
            "no point is feasible", hint="'stripe-sweep export' tells why, in the column reason"
        )
    write_stdout(options_of(found[0], facts) + "\n")
    return OK


def options_of(result: PointResult, facts: SweepFacts) -> str:
    """The point as options of the commands that compile."""
    config, fixed = facts.lists[result.point.passes]
    given = {**fixed, **result.point.choices}
    defines = (f"-D {shlex.quote(f'{name}={_plain(value)}')}" for name, value in sorted(given.items()))
    return " ".join([f"--config {shlex.quote(config)}", f"--hw {shlex.quote(facts.machine)}", *defines])


def _plain(value: bool | int | float | str) -> str:
    return value if isinstance(value, str) else shown(value)
