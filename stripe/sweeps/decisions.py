"""The decisions of passes at a design point, and the differences of two points: tiles, units, places, fusions."""

from __future__ import annotations

from typing_extensions import override

from stripe.ir import StripeError
from stripe.passes.base import Remark, RemarkKind
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.sweeps.evaluate import program_of
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.space import DesignPoint

Decisions = dict[tuple[str, str, str], str]
"""Remarks of passes that did something, by workload, entry of the pass list and block."""


def decisions(plan: SweepPlan, point: DesignPoint) -> Decisions:
    """The remarks of all passes that did something at a point, which is compiled again. Raises StripeError."""
    machine, listed = plan.space.templates.rendered(point.choices, point.passes)
    found: Decisions = {}
    for workload in plan.workloads:
        heard = _Applied()
        PassManager(listed.entries, machine, (heard,)).run(program_of(workload))
        for (entry, block), texts in heard.remarks.items():
            found[workload.name, entry, block] = "; ".join(texts)
    return found


def differing(plan: SweepPlan, a: DesignPoint, b: DesignPoint) -> list[list[str]]:
    """The decisions in which two points differ, as rows: pass and block, at the one point, at the other. Empty where a
    point does not compile any more."""
    try:
        first, second = decisions(plan, a), decisions(plan, b)
    except StripeError:
        return []
    keys = [key for key in dict.fromkeys((*first, *second)) if first.get(key) != second.get(key)]
    return [[" ".join(key), first.get(key, ""), second.get(key, "")] for key in keys]


class _Applied(Instrument):
    """The remarks of passes that did something, by entry and block."""

    def __init__(self) -> None:
        self.remarks: dict[tuple[str, str], list[str]] = {}

    @override
    def remark(self, entry: PassEntry, remark: Remark) -> None:
        if remark.kind is RemarkKind.APPLIED:
            self.remarks.setdefault((entry.name, remark.block), []).append(remark.message)
