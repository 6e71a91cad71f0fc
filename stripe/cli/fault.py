"""The report of an exception that ends a command: an error of the user, or a fault of ours with its reproducer."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from stripe.cli.job import Job
from stripe.exit_status import FAULT
from stripe.ir import StripeError

_MOST_LINES = 20


def report(error: Exception, job: Job) -> int:
    """Prints the report, and gives the exit status."""
    if isinstance(error, StripeError):
        print(error, file=sys.stderr)
        return error.exit_status
    if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
        name = job.source.name if job.source else job.command[0]
        print(
            f"{name}: error: this takes more memory than there is\n  hint: make the tensors smaller",
            file=sys.stderr,
        )
        return StripeError.exit_status
    from stripe.cli import reproducer  # pydantic and the passes, for faults alone
    from stripe.pipeline.fault import InternalFault

    fault = error if isinstance(error, InternalFault) else None
    reason = fault.reason if fault else f"{type(error).__name__}: {error}"
    details = fault.details if fault else ()
    raised = error if fault is None else error.__cause__
    first, *more = reason.splitlines() or [""]
    path = reproducer.write(job, "\n".join((reason if fault else first, *details)), raised)
    if path is None:
        where = "no reproducer could be written"
    elif job.spec.prog in reproducer.REPLAYED:
        where = f"replay it with: stripe-opt --run-reproducer {path}"
    else:
        where = f"its place in our code and the options are in {path}"
    print(f"{job.command[0]}: internal fault: {first}{_origin(raised)}; {where}", file=sys.stderr)
    for line in [*more, *details][:_MOST_LINES]:
        print(f"  {line}", file=sys.stderr)
    return FAULT


def _origin(raised: BaseException | None) -> str:
    """The line of our code that raised the exception, for the author of a pass; empty for findings."""
    if raised is None:
        return ""
    frames = [
        frame for frame in traceback.extract_tb(raised.__traceback__) if "site-packages" not in frame.filename
    ]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
