"""The best points, again: compiled with a proof of each pass, simulated, and run where the data are small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stripe.cost.report.report import simulation_json
from stripe.cost.time.simulate import simulate_program
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.ir import Program, StripeError
from stripe.pipeline.checks.proof import ExactCheck, quiet
from stripe.pipeline.checks.structure import StructureCheck
from stripe.pipeline.manager import PassManager
from stripe.sweeps.evaluate import ResultRow, program_of
from stripe.sweeps.metrics import metrics_of
from stripe.sweeps.plan import SweepPlan, Workload
from stripe.verify.policy import ANY


@dataclass(frozen=True, slots=True)
class Verified:
    """The verdict on one row: empty `fault` where all checks held. Where some pass has no proof (`proved`) both
    programs ran instead."""

    row: ResultRow
    executed: bool
    fault: str = ""
    proved: bool = True

    @property
    def words(self) -> str:
        """The verdict in words."""
        proof = "proved" if self.proved else "not proved, equal in runs"
        return self.fault or (f"{proof} and executed" if self.executed else proof)


def verified(plan: SweepPlan, row: ResultRow, workload: Workload, run_below: int) -> Verified:
    """Compiles the row's point again with `--verify exact`, compares the metrics with the row's, and runs
    the programs before and after the passes where they do fewer than `run_below` multiply-accumulates.
    """
    point = row.point
    executed = False
    try:
        machine, listed = plan.space.templates.rendered(point.choices, point.passes)
        proof = ExactCheck(quiet, ANY)
        checks = (StructureCheck(machine), proof)
        before = program_of(workload)
        after = PassManager(listed.entries, machine, checks).run(before)
        report = simulation_json(simulate_program(after, machine), workload.name)
        for name, value in metrics_of(report, machine).items():
            if row.metrics.get(name) != value:
                return Verified(row, executed, f"{name} is {value}, and the row has {row.metrics.get(name)}")
        if report.macs < run_below:
            executed = True
            if wrong := _differing(before, after):
                return Verified(row, executed, f"the output {wrong} differs")
    except StripeError as error:
        return Verified(row, executed, str(error))
    return Verified(row, executed, proved=proof.proved)


def _differing(before: Program, after: Program) -> str | None:
    """The first output in which the interpreter sees a difference, on data of small integers."""
    inputs = random_inputs(before, 0)
    expected, found = interpret(before, inputs), interpret(after, inputs)
    names = (n for n, array in expected.items() if not np.array_equal(array, found[n], equal_nan=True))
    return next(names, None)
