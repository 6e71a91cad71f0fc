"""`--run-reproducer`: performs the run that a crash reproducer holds, by the command that fell over."""

from __future__ import annotations

from dataclasses import replace

from stripe.cli.arguments.opt import OptSpec
from stripe.cli.arguments.run import RunSpec
from stripe.cli.arguments.sim import SimSpec
from stripe.cli.job import Job
from stripe.cli.reproducer import read_into


def perform(job: Job, spec: OptSpec) -> int:
    """Replays the run; should it fall over again, the report is about the recorded one."""
    job.spec = replace(spec, run_reproducer=None)
    recorded = read_into(job, spec.run_reproducer or "")
    if isinstance(recorded, RunSpec):
        from stripe.cli.commands import run

        return run.perform(job, recorded)
    if isinstance(recorded, SimSpec):
        from stripe.cli.commands import sim

        return sim.perform(job, recorded)
    from stripe.cli.commands import opt

    assert isinstance(recorded, OptSpec)
    return opt.perform(job, recorded)
