"""`stripe-sweep run`: evaluates the points of a sweep file."""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path
from shutil import get_terminal_size

from stripe.cli.arguments.sweep import RunSweepSpec
from stripe.cli.job import Job
from stripe.cli.setup import parse_defines
from stripe.cli.streams import write_stdout
from stripe.exec.cache import make_private, user_cache
from stripe.exit_status import OK
from stripe.ir import ConfigError
from stripe.ir.errors import StripeWarning
from stripe.sweeps.cluster import cluster
from stripe.sweeps.plan import read_plan
from stripe.sweeps.results import missing_metric
from stripe.sweeps.run import SweepProgress, run_sweep
from stripe.sweeps.store import FILE, writing_store
from stripe.sweeps.strategy import strategy_of
from stripe.sweeps.workers import WorkerSetup, processes


def perform(_job: Job, spec: RunSweepSpec) -> int:
    """Evaluates; gives the exit status."""
    plan = read_plan(Path(spec.input or ""), parse_defines(spec.define))
    strategy = strategy_of(plan, spec.limit)
    space = plan.space
    counts = [n for n in (space.count or space.size, plan.points, spec.limit) if n is not None]
    if spec.dry_run:
        most, workloads = min(counts), len(plan.workloads)
        lines = [
            f"{'' if space.count else 'at most '}{most} point{'s' * (most != 1)} of a grid of {space.size}, "
            f"{workloads} workload{'s' * (workloads != 1)}"
        ]
        lines += [
            f"  {axis.name}: {', '.join(map(str, axis.values))} {axis.unit}".rstrip() for axis in space.axes
        ]
        lines += [f"point {point.key}" for point in islice(space.grid(), 10)]
        write_stdout("\n".join(lines) + "\n")
        return OK
    folder = Path(spec.out or "")
    with writing_store(folder, plan, spec.resume) as store:
        if store.dropped:
            reason = f"rows of {store.dropped} points are damaged: they are computed anew"
            sys.stderr.write(f"{StripeWarning(reason, where=str(folder / FILE))}\n")
        cache = None if spec.no_cache else _cache()
        setup = WorkerSetup(plan, cache, (folder / "crashes").absolute())
        workers = (
            cluster(setup, spec.scheduler)
            if spec.scheduler is not None
            else processes(setup, spec.jobs or len(os.sched_getaffinity(0)))
        )
        with workers as executor:
            done = run_sweep(
                plan, store, strategy, executor, seconds=spec.point_timeout, batch=spec.batch,
                total=min(counts), watch=_progress if sys.stderr.isatty() else lambda _: None,
            )  # fmt: skip
    sys.stderr.write("\r\x1b[K" if sys.stderr.isatty() else "")
    sys.stderr.write(
        f"stripe-sweep: {done.done} points in {folder}, {done.reused} of them from before, "
        f"{done.failed} not feasible or failed\n"
    )
    for objective in plan.objectives:
        if done.metrics and objective.metric not in done.metrics:
            reason, hint = missing_metric(objective.metric, done.metrics)
            sys.stderr.write(f"{StripeWarning(reason, where='$.objectives', hint=hint)}\n")
    return OK


def _cache() -> Path:
    """The file of results that sweeps share. Raises ConfigError where it cannot be written."""
    folder = user_cache().folder.with_name("sweeps")
    try:
        make_private(folder)
    except OSError as error:
        reason = f"cannot write to the cache: {error.strerror}"
        hint = "set XDG_CACHE_HOME to a folder that can be written, or do without: --no-cache"
        raise ConfigError(reason, path=str(folder), hint=hint) from None
    return folder / "results.sqlite"


def _progress(state: SweepProgress) -> None:
    left = f", {_clock(state.seconds_left)} left" if state.seconds_left is not None else ""
    best = "".join(f", {name} {value:.4g}" for name, value in state.best.items())
    total = f" of {state.total}" if state.total is not None else ""
    text = f"{state.done}{total} points, {state.rate:.2g} a second{left}{best}"
    sys.stderr.write("\r\x1b[K" + text[: get_terminal_size().columns - 1])
    sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
