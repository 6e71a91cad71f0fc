"""Tables of results, for commands and notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.cost.report.table import Table
from stripe.cost.report.tables import energy
from stripe.sweeps.metrics import titled, unit_of
from stripe.sweeps.results import PointResult
from stripe.sweeps.space import PASSES
from stripe.sweeps.store import SweepFacts, plain


def front_table(front: Sequence[PointResult], facts: SweepFacts) -> Table:
    """Points with their choices and objectives."""
    axes = tuple(dict.fromkeys(name for result in front for name in (PASSES, *result.point.choices)))
    metrics = tuple(objective.metric for objective in facts.objectives)
    rows = tuple(
        (
            *(plain({PASSES: r.point.passes, **r.point.choices}.get(axis, "")) for axis in axes),
            *(
                energy(r.value(metric)) if unit_of(metric) == "pJ" else f"{r.value(metric):.6g}"
                for metric in metrics
            ),
        )
        for r in front
    )
    aims = ", ".join(f"{o.metric} ({'smallest' if o.goal == 'min' else 'largest'})" for o in facts.objectives)
    return Table(f"Points that no other dominates: {aims}", (*axes, *map(titled, metrics)), rows)
