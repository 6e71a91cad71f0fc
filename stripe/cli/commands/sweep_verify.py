"""`stripe-sweep verify`: proves the programs of the best points."""

from __future__ import annotations

from pathlib import Path

from stripe.cli.arguments.sweep import VerifySweepSpec
from stripe.cli.job import Job
from stripe.cli.streams import write_stdout
from stripe.exit_status import MISMATCH, OK
from stripe.ir import ConfigError, StripeError
from stripe.sweeps.plan import read_plan
from stripe.sweeps.results import best
from stripe.sweeps.store import open_store
from stripe.sweeps.verify import verified


def perform(_job: Job, spec: VerifySweepSpec) -> int:
    """Verifies; gives the exit status."""
    folder = Path(spec.input or "")
    store = open_store(folder)
    facts, results = store.facts(), store.results()
    plan = read_plan(Path(facts.file), facts.defines)
    if plan.identity != facts.identity:
        reason = "templates, workloads or the program changed since these results"
        raise ConfigError(reason, path=str(folder), hint="run the sweep again")
    chosen = {r.point for objective in facts.objectives for r in best(results, objective, spec.best)}
    if not chosen:
        raise StripeError(
            "no point is feasible", hint="'stripe-sweep export' tells why, in the column reason"
        )
    workloads = {workload.name: workload for workload in plan.workloads}
    sound = True
    for result in results:
        for row in result.rows if result.point in chosen else ():
            found = verified(plan, row, workloads[row.workload])
            sound = sound and not found.fault
            write_stdout(f"{row.point.key} {row.workload}: {found.words}\n")
    return OK if sound else MISMATCH
