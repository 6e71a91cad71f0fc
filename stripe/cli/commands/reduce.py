"""`stripe-reduce`: shrinks a program or a crash reproducer while a command goes on to fail."""

from __future__ import annotations

import sys
from pathlib import Path

from stripe.cli import start
from stripe.cli.arguments.reduce import ReduceSpec
from stripe.cli.input import read_source
from stripe.cli.job import Job
from stripe.cli.streams import write_text
from stripe.exit_status import OK
from stripe.ir import ConfigError, StripeError
from stripe.output import check_output
from stripe.pipeline.reduction.command import Command
from stripe.pipeline.reduction.input import ReductionInput, steps_for
from stripe.pipeline.reduction.search import Search
from stripe.pipeline.reproducer import read_reproducer

TOOLS = {"stripe-opt": start.opt, "stripe-run": start.run, "stripe-sim": start.sim}

REDUCED = ("tile", "stripe")
"""The languages that steps of the reduction know."""


def perform(job: Job, spec: ReduceSpec) -> int:
    """Reduces; gives the exit status."""
    if spec.output not in (None, "-"):
        check_output(spec.output)  # before the search, which may take hours
    path = spec.input or ""
    if path.endswith(".json"):
        document = ReductionInput.of(read_reproducer(Path(path))[0])
    else:
        job.source = read_source(path, spec.input_format)
        text = job.source.text if job.source.language in REDUCED else ""
        document = ReductionInput(text, job.source.language)
    if document.language not in REDUCED:
        reason = f"{path}: programs in {' and '.join(REDUCED)} can be reduced, not in {document.language}"
        hint = "write it as Stripe first: stripe-opt INPUT --emit stripe -o FILE.stripe"
        raise ConfigError(reason, hint=hint)
    command = Command(spec.test_words(), spec.exit_status, spec.timeout, TOOLS)
    steps = steps_for(document)
    if not command.start(document).fails():
        wanted = "fail" if spec.exit_status is None else f"end with status {spec.exit_status}"
        raise StripeError(f"the command does not {wanted} on the input as it is", hint="run it by hand first")
    shown = sys.stderr.isatty()
    smallest = document

    def keep(better: ReductionInput) -> None:
        nonlocal smallest
        smallest = better
        if spec.output not in (None, "-"):
            write_text(spec.output, better.render())

    def progress(tried: int, kept: int) -> None:
        if shown:
            size = len(smallest.render())
            sys.stderr.write(
                f"\r\x1b[Kstripe-reduce: {tried} candidates tried, {kept} kept, {size} characters"
            )

    search = Search[ReductionInput](command.start, ReductionInput.render, progress, keep, spec.jobs)
    result = search.run(document, steps)
    sys.stderr.write("\n" if shown else "")
    sys.stderr.write(
        f"stripe-reduce: {len(document.render())} characters became {len(result.render())} "
        f"({search.tried} candidates, {search.kept} kept)\n"
    )
    write_text(spec.output, result.render())
    return OK
