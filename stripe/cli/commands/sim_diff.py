"""`stripe-sim --diff`: the difference of two simulations."""

from __future__ import annotations

from pathlib import Path

from stripe.cli.arguments.sim import SimSpec
from stripe.cli.job import Job
from stripe.cli.tables import write_tables
from stripe.config.document import read_json
from stripe.config.validate import validate
from stripe.cost.report.difference import difference_tables
from stripe.cost.report.schema import SimulationJson
from stripe.exit_status import OK


def perform(_job: Job, spec: SimSpec) -> int:
    """Compares; gives the exit status."""
    files = spec.before or "", spec.input or ""
    first, second = (validate(SimulationJson, read_json(Path(path))) for path in files)
    same = first.model_dump(exclude={"input"}) == second.model_dump(exclude={"input"})
    write_tables(difference_tables(first, second, files), ("the simulations are equal",) if same else ())
    return OK
