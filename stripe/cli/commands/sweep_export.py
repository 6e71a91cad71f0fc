"""`stripe-sweep export`: the rows of a sweep as CSV or Parquet."""

from __future__ import annotations

from pathlib import Path

from stripe.cli.arguments.sweep import ExportSpec
from stripe.cli.job import Job
from stripe.cli.streams import write_stdout
from stripe.exit_status import OK
from stripe.output import write_bytes
from stripe.sweeps.store import csv_bytes, open_store, parquet_bytes


def perform(_job: Job, spec: ExportSpec) -> int:
    """Writes the table; gives the exit status."""
    store = open_store(Path(spec.input or ""))
    if spec.output is None or spec.output == "-":
        write_stdout(csv_bytes(store).decode())
    else:
        parquet = spec.output.lower().endswith(".parquet")
        write_bytes(spec.output, parquet_bytes(store) if parquet else csv_bytes(store))
    return OK
