"""`stripe-sweep report`: the results as one HTML page, and its pictures as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

from stripe.cli.arguments.sweep import ReportSpec
from stripe.cli.job import Job
from stripe.exit_status import OK
from stripe.output import write_bytes, write_folder
from stripe.sweeps.report.pictures import PictureFormat, pictures
from stripe.sweeps.report.report import report_html
from stripe.sweeps.store import open_store


def perform(_job: Job, spec: ReportSpec) -> int:
    """Writes the page; gives the exit status."""
    folder = Path(spec.input or "")
    store = open_store(folder)
    facts, results = store.facts(), store.results()
    page = report_html(facts, results, facts.plan())
    target = spec.output or str(folder / "report.html")
    write_bytes(target, page.encode())
    sys.stderr.write(f"stripe-sweep: {len(results)} points in {target}\n")
    if spec.pictures is not None:
        drawn = pictures(facts, results, cast("PictureFormat", spec.format))
        write_folder(spec.pictures, drawn, mark=next(iter(drawn), ""))
        sys.stderr.write(f"stripe-sweep: {len(drawn)} pictures in {spec.pictures}\n")
    return OK
