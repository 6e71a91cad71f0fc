"""Design points a second: the shipped sweep over ResNet-50 and over a single layer, cold and again from the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import FOLDER, Row, limited, timed
from stripe.sweeps.plan import SweepPlan, read_plan
from stripe.sweeps.run import run_sweep
from stripe.sweeps.store import writing_store
from stripe.sweeps.strategy import strategy_of
from stripe.sweeps.workers import WorkerSetup, processes

SWEEPS = FOLDER / "examples" / "sweeps"
COLD, AGAIN = 600.0, 10.0
"""Seconds for the 500 points of ResNet-50 on two cores: the targets of the issue."""
LAYER = 500 / 100
"""Seconds for 500 points of a single layer."""


def rows() -> Iterator[Row]:
    cores = len(os.sched_getaffinity(0))
    how = f"{cores} processes, with their start; processor time is without theirs"
    with TemporaryDirectory() as scratch:
        folder, cache = Path(scratch), Path(scratch) / "cache.sqlite"
        for network, text, cold in (
            ("networks/resnet50.onnx", "ResNet-50", COLD),
            ("../conv_bias_relu.tile", "one convolution", LAYER),
        ):
            plan = read_plan(SWEEPS / "dsp_conv.json.j2", {"NETWORK": network})
            for name, limit in (("cold", cold), ("again, from the cache", AGAIN)):
                times = timed(partial(_run, plan, folder / text / name, cache, cores), 1, warm_up=False)
                yield limited(f"500 points over {text}, {name}", times, limit, how, clock=True)


def _run(plan: SweepPlan, folder: Path, cache: Path | None, jobs: int) -> None:
    with (
        writing_store(folder, plan, resume=False) as store,
        processes(WorkerSetup(plan, cache, None), jobs) as executor,
    ):
        run_sweep(plan, store, strategy_of(plan, None), executor, seconds=600, batch=4)
