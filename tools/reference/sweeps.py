"""Regions of docs/sweeps.md: the keys of a sweep file, metrics, and outcomes of points."""

from __future__ import annotations

from stripe.sweeps.metrics import EDP, METRICS, UNITS
from stripe.sweeps.schema import (
    AxisSpec,
    ObjectiveSpec,
    PassListSpec,
    StrategySpec,
    SweepFile,
    WorkloadSpec,
)
from tools.reference.keys import keys_of
from tools.reference.markdown import table

_MIXED = {"sum": "weighted sum", "max": "largest", "mean": "weighted mean", "same": "that of the machine"}


def _metrics() -> str:
    rows = [
        (f"`{metric.name}`", metric.unit, metric.description, _MIXED[metric.mixing])
        for metric in METRICS.values()
    ]
    edp = (f"`{EDP}`", UNITS[EDP], "energy-delay product", "energy of the mix by its latency")
    return table(("metric", "unit", "meaning", "over a mix of workloads"), [*rows, edp])


REGIONS = {
    "file": keys_of(SweepFile),
    "axis": keys_of(AxisSpec),
    "workload": keys_of(WorkloadSpec),
    "list": keys_of(PassListSpec),
    "objective": keys_of(ObjectiveSpec),
    "strategy": keys_of(StrategySpec),
    "metrics": _metrics,
}
