"""The report of a sweep: one HTML page from its store and its plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Literal

from stripe.cost.report.report import unverified_sources
from stripe.cost.report.tables import unverified_names
from stripe.sweeps.decisions import differing
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.report.data import page_data
from stripe.sweeps.report.page import page_html
from stripe.sweeps.results import PointResult, best
from stripe.sweeps.store import SweepFacts


def report_html(facts: SweepFacts, results: Sequence[PointResult], plan: SweepPlan) -> str:
    """The page about results of a plan, as `SweepFacts.plan` gives it."""
    templates = plan.space.templates
    faster: dict[str, Literal["more", "less"]] = {}
    for name in facts.axes:
        described = templates.parameter(name)
        if described is not None and described.faster is not None:
            faster[name] = described.faster
    rendered: dict[str, str] = {}
    unverified: list[str] = []
    options = ""
    for winner in best(results, facts.objectives[0]):
        point = winner.point
        model, listed = templates.rendered(point.choices, point.passes)
        unverified = unverified_names(unverified_sources(model))
        text = json.dumps(model.model_dump(mode="json", exclude_defaults=True, exclude={"sources"}), indent=1)
        rendered = {"model": text, "list": json.dumps(listed.data, indent=1)}
        options = facts.options(winner)
    explained = partial(differing, plan)
    return page_html(page_data(facts, results, faster, rendered, options, unverified, explained))
