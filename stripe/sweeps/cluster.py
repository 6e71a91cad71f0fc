"""Evaluation on a Dask cluster: the same tasks, on workers of many machines.

The templates have to lie at the same paths everywhere. The cluster notices a worker that dies, and evaluates its
points elsewhere; a row depends on nothing but its point, so that it is the same wherever it was made.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from threading import Lock, Thread, Timer
from typing import Any

from stripe.ir import ConfigError
from stripe.sweeps.evaluate import Evaluator
from stripe.sweeps.extras import extra
from stripe.sweeps.space import DesignPoint
from stripe.sweeps.workers import Rows, WorkerSetup


class ClusterExecutor:
    """Evaluates on the workers of a cluster. A task that takes too long ends its worker."""

    def __init__(self, client: Any, setup: WorkerSetup) -> None:
        self._client = client
        self._setup = client.scatter(setup, broadcast=True)

    @property
    def in_flight(self) -> int:
        return 2 * max(1, sum(self._client.nthreads().values()))

    def submit(self, points: Sequence[DesignPoint], seconds: float | None) -> Future[Rows]:
        future: Future[Rows] = Future()
        task = self._client.submit(_evaluate, self._setup, tuple(points), seconds, pure=False)

        def finish(done: Any) -> None:
            error = done.exception()
            if error is None:
                future.set_result(done.result())
            else:
                future.set_exception(error)

        task.add_done_callback(finish)
        return future


@contextmanager
def cluster(setup: WorkerSetup, address: str) -> Generator[ClusterExecutor]:
    """An executor on the cluster whose scheduler has this address. Raises ConfigError where none answers."""
    distributed = extra("distributed", "a sweep on a cluster", "cluster")
    try:
        client = distributed.Client(address, timeout=20)
    except (OSError, ValueError, TypeError) as error:
        reason = f"no scheduler answers: {error}"
        hint = "start one with 'dask scheduler'"
        raise ConfigError(reason, where=f"--scheduler {address}", hint=hint) from None
    with client:
        yield ClusterExecutor(client, setup)


_evaluators: dict[str, tuple[Evaluator, Lock]] = {}
"""The evaluator of each sweep in this worker process; it keeps programs between tasks."""


def _evaluate(setup: WorkerSetup, points: tuple[DesignPoint, ...], seconds: float | None) -> Rows:
    """Evaluates in a thread of its own, so that a hanging one can be left behind. Raises TimeoutError."""
    if setup.plan.identity not in _evaluators:
        _evaluators.setdefault(setup.plan.identity, (setup.evaluator(), Lock()))
    evaluator, lock = _evaluators[setup.plan.identity]
    rows: Future[Rows] = Future()

    def work() -> None:
        try:
            with lock:
                rows.set_result([evaluator.rows(point) for point in points])
        except BaseException as error:  # noqa: BLE001 - the task raises it
            rows.set_exception(error)

    Thread(target=work, daemon=True).start()
    if not wait([rows], seconds).done:
        Timer(1.0, os._exit, (1,)).start()  # when the answer is on its way
        raise TimeoutError
    return rows.result()
