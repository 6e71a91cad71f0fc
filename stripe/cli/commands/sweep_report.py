"""`stripe-sweep report`: the results as one HTML page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Literal, cast

from stripe.cli.arguments.sweep import ReportSpec
from stripe.cli.commands.sweep_best import options_of
from stripe.cli.guard import OK
from stripe.cli.job import Job
from stripe.config.output import write_bytes, write_folder
from stripe.hw.schema import HardwareModel
from stripe.ir import StripeError
from stripe.sweep.plan import SweepPlan, read_plan
from stripe.sweep.report.data import page_data
from stripe.sweep.report.page import page_html
from stripe.sweep.report.pictures import PictureFormat, pictures
from stripe.sweep.results import PointResult, best
from stripe.sweep.store import open_store


def perform(_job: Job, spec: ReportSpec) -> int:
    """Writes the page; gives the exit status."""
    folder = Path(spec.input or "")
    store = open_store(folder)
    facts, results = store.facts(), store.results()
    plan = read_plan(Path(facts.file), facts.defines)
    templates = plan.space.templates
    faster: dict[str, Literal["more", "less"]] = {}
    for name in facts.axes:
        described = templates.parameter(name)
        if described is not None and described.faster is not None:
            faster[name] = described.faster
    winners = best(results, facts.objectives[0])
    rendered: dict[str, str] = {}
    unverified: list[str] = []
    options = ""
    for winner in winners:
        model, listed = _rendered(winner, plan)
        unverified = [entry.path for entry in model.unverified()]
        text = json.dumps(model.model_dump(mode="json", exclude_defaults=True, exclude={"sources"}), indent=1)
        rendered = {"model": text, "list": listed}
        options = options_of(winner, facts)
    page = page_html(page_data(facts, results, faster, rendered, options, unverified))
    target = spec.output or str(folder / "report.html")
    write_bytes(target, page.encode())
    sys.stderr.write(f"stripe-sweep: {len(results)} points in {target}\n")
    if spec.pictures is not None:
        drawn = pictures(facts, results, cast("PictureFormat", spec.format))
        write_folder(spec.pictures, drawn, mark=next(iter(drawn), ""))
        sys.stderr.write(f"stripe-sweep: {len(drawn)} pictures in {spec.pictures}\n")
    return OK


def _rendered(result: PointResult, plan: SweepPlan) -> tuple[HardwareModel, str]:
    """The model and the pass list of a point. Raises StripeError where a template has changed since."""
    templates = plan.space.templates
    if result.point.passes not in templates.lists:
        raise StripeError(
            f"the sweep file has no pass list '{result.point.passes}' any more", hint="run the sweep again"
        )
    model, listed = templates.rendered(result.point.choices, result.point.passes)
    return model, json.dumps(listed.data, indent=1)
