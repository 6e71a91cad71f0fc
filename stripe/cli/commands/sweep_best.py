"""`stripe-sweep best`: the best point as options, or the points that no other dominates as a table."""

from __future__ import annotations

import sys
from pathlib import Path

from stripe.cli.arguments.sweep import BestSpec
from stripe.cli.job import Job
from stripe.cli.streams import write_stdout
from stripe.cli.tables import write_tables
from stripe.exit_status import OK
from stripe.ir import ConfigError, StripeError, StripeWarning
from stripe.sweeps.metrics import metric_text
from stripe.sweeps.report.tables import front_table
from stripe.sweeps.results import best_point, pareto_front
from stripe.sweeps.schema import ObjectiveSpec
from stripe.sweeps.store import open_store


def perform(_job: Job, spec: BestSpec) -> int:
    """Prints; gives the exit status."""
    store = open_store(Path(spec.input or ""))
    facts, results = store.facts(), store.results()
    try:
        facts.plan()
    except ConfigError as error:  # the numbers stand, but their options may give others now
        sys.stderr.write(f"{StripeWarning(error.reason, where=error.path, hint=error.hint)}\n")
    if spec.front:
        front = pareto_front(results, facts.objectives)
        if not front:
            for objective in facts.objectives:
                best_point(results, objective)  # the reason
            raise StripeError(
                "no point has all objectives", hint="'stripe-sweep export' lists the metrics of each"
            )
        write_tables([front_table(front, facts)])
        return OK
    objective = facts.objectives[0]
    if spec.objective is not None:
        objective = ObjectiveSpec(metric=spec.objective, goal="max" if spec.largest else "min")
    found = best_point(results, objective)
    aim = "smallest" if objective.goal == "min" else "largest"
    reached = metric_text(objective.metric, found.value(objective.metric))
    sys.stderr.write(f"stripe-sweep: the point with the {aim} {objective.metric}, {reached}\n")
    write_stdout(facts.options(found) + "\n")
    return OK
