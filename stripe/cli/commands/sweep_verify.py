"""`stripe-sweep verify`: proves the programs of the best points."""

from __future__ import annotations

from pathlib import Path

from stripe.cli.arguments.sweep import VerifySweepSpec
from stripe.cli.job import Job
from stripe.cli.streams import write_stdout
from stripe.exit_status import MISMATCH, OK
from stripe.ir import StripeError
from stripe.sweeps.results import best
from stripe.sweeps.store import open_store
from stripe.sweeps.verify import verified


def perform(_job: Job, spec: VerifySweepSpec) -> int:
    """Verifies; gives the exit status."""
    store = open_store(Path(spec.input or ""))
    facts, results = store.facts(), store.results()
    plan = facts.plan()
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
