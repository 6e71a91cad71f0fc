"""The best points, again: compiled with a proof of each pass, run where programs are small, and simulated."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.cost.report.report import simulation_json
from stripe.cost.time.simulate import simulate_program
from stripe.ir import StripeError
from stripe.pipeline.checks.levels import exact_checks
from stripe.pipeline.checks.proof import ExactCheck, quiet
from stripe.pipeline.manager import PassManager
from stripe.sweeps.evaluate import ResultRow, program_of
from stripe.sweeps.metrics import metrics_of
from stripe.sweeps.plan import SweepPlan, Workload
from stripe.verify.policy import ANY


@dataclass(frozen=True, slots=True)
class Verified:
    """The verdict on one row: empty `fault` where all checks held; then `proved` tells whether each pass has a proof,
    and is false where both programs of some ran instead."""

    row: ResultRow
    executed: bool
    fault: str = ""
    proved: bool = True

    @property
    def words(self) -> str:
        """The verdict in words."""
        proof = "proved" if self.proved else "not proved, equal in runs"
        return self.fault or (f"{proof} and executed" if self.executed else proof)


def verified(plan: SweepPlan, row: ResultRow, workload: Workload) -> Verified:
    """Compiles the row's point again with `--verify exact`, and compares the metrics with the row's."""
    point = row.point
    proof = ExactCheck(quiet, ANY)
    try:
        machine, listed = plan.space.templates.rendered(point.choices, point.passes)
        checks = exact_checks(machine, proof)
        after = PassManager(listed.entries, machine, tuple(checks)).run(program_of(workload))
        report = simulation_json(simulate_program(after, machine), workload.name)
    except StripeError as error:
        return Verified(row, proof.executed, str(error))
    for name, value in metrics_of(report, machine).items():
        if row.metrics.get(name) != value:
            return Verified(
                row, proof.executed, f"{name} is {value}, and the row has {row.metrics.get(name)}"
            )
    return Verified(row, proof.executed, proved=proof.proved)
