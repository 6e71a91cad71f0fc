"""Sweeps on a Dask cluster of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import distributed
import pytest

from stripe.ir import ConfigError
from stripe.sweeps.cluster import ClusterExecutor, cluster
from stripe.sweeps.evaluate import ResultRow
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.run import SweepProgress, run_sweep
from stripe.sweeps.store import open_store, writing_store
from stripe.sweeps.strategy import strategy_of
from stripe.sweeps.workers import SerialExecutor, WorkerSetup

Plans = Callable[..., SweepPlan]


def rows_of(folder: Path) -> list[ResultRow]:
    """The rows in a folder without their time, by point."""
    rows = (replace(row, seconds=0.0) for row in open_store(folder).rows())
    return sorted(rows, key=lambda row: row.point.key)


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_half_way_has_every_point_once(plan_of: Plans, tmp_path: Path) -> None:
    plan = plan_of(
        axes={"NUM_CONV": {"log2": [1, 16]}, "NUM_DSP": {"log2": [1, 4]}, "CLOCK_MHZ": {"values": [400, 500]}}
    )
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1) as local,
        distributed.Client(local) as client,
    ):

        def kill_one(state: SweepProgress) -> None:
            if state.done == 8 and not killed:
                pids = cast("dict[str, int]", client.run(os.getpid))
                worker = min(pids.values())
                killed.append(worker)
                os.kill(worker, signal.SIGKILL)

        with writing_store(tmp_path / "cluster", plan, resume=False) as store:
            executor = ClusterExecutor(client, WorkerSetup(plan, None, None))
            run_sweep(plan, store, strategy_of(plan, None), executor, seconds=100, watch=kill_one)
    assert killed
    with writing_store(tmp_path / "serial", plan, resume=False) as store:
        serial = SerialExecutor(WorkerSetup(plan, None, None))
        run_sweep(plan, store, strategy_of(plan, None), serial, seconds=None)
    assert len(rows_of(tmp_path / "cluster")) == 30
    assert rows_of(tmp_path / "cluster") == rows_of(tmp_path / "serial")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x"])
def test_a_scheduler_that_does_not_answer_is_an_error(
    plan_of: Plans, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = WorkerSetup(plan_of(), None, None)
    client = distributed.Client
    monkeypatch.setattr(
        distributed, "Client", lambda address, timeout: client(address, timeout=min(timeout, 1))
    )
    with pytest.raises(ConfigError, match="no scheduler answers"), cluster(setup, address):
        pass
