"""Executors of evaluations, in the shape of `concurrent.futures`: processes of this machine, or a Dask cluster.

A batch of points is one task. A task that hangs is stopped with its process, and one that takes its process down is
noticed; its points are then evaluated one by one, so that only the guilty point is lost.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from stripe.sweeps.cache import ResultCache
from stripe.sweeps.evaluate import Evaluator, ResultRow, RowStatus, failed_rows
from stripe.sweeps.extras import extra
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.space import DesignPoint

Rows = list[tuple[ResultRow, ...]]


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """All that a worker needs to evaluate points."""

    plan: SweepPlan
    cache: Path | None
    crashes: Path | None

    def evaluator(self) -> Evaluator:
        cache = ResultCache(self.cache, warn=_to_stderr) if self.cache else None
        return Evaluator(self.plan, cache, self.crashes)


def _to_stderr(text: str) -> None:
    """A line of a worker for its user."""
    sys.stderr.write(f"{text}\n")


class PointExecutor(Protocol):
    """Evaluates batches of points."""

    @property
    def in_flight(self) -> int:
        """Tasks to submit before the first is done."""
        ...

    def submit(self, points: Sequence[DesignPoint], seconds: float | None) -> Future[Rows]:
        """The rows of the points to come. The future raises TimeoutError after `seconds`, and any other error where the
        worker died.
        """
        ...


class SerialExecutor:
    """Evaluates in this process: for tests, and for programs that bring their own parallelism. Never stops a point."""

    in_flight = 1

    def __init__(self, setup: WorkerSetup) -> None:
        self._evaluator = setup.evaluator()

    def submit(self, points: Sequence[DesignPoint], seconds: float | None) -> Future[Rows]:  # noqa: ARG002 - see above
        future: Future[Rows] = Future()
        future.set_result([self._evaluator.rows(point) for point in points])
        return future


class ProcessExecutor:
    """Evaluates in processes of this machine."""

    def __init__(self, pool: Any, workers: int) -> None:
        self._pool = pool
        self.in_flight = 2 * workers

    def submit(self, points: Sequence[DesignPoint], seconds: float | None) -> Future[Rows]:
        future: Future[Rows] = self._pool.schedule(_evaluate, args=(tuple(points),), timeout=seconds)
        return future


@contextmanager
def processes(setup: WorkerSetup, workers: int) -> Generator[ProcessExecutor]:
    """An executor of `workers` processes, which end with the block."""
    pebble = extra("pebble", "a sweep in several processes")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # a new worker starts with the modules loaded
    pool = pebble.ProcessPool(max_workers=workers, initializer=_begin, initargs=(setup,), context=context)
    try:
        yield ProcessExecutor(pool, workers)
        pool.close()
    except BaseException:
        pool.stop()
        raise
    finally:
        pool.join()


_evaluators: list[Evaluator] = []
"""The evaluator of this worker process."""


def _begin(setup: WorkerSetup) -> None:
    _evaluators[:] = [setup.evaluator()]


def _evaluate(points: tuple[DesignPoint, ...]) -> Rows:
    return [_evaluators[0].rows(point) for point in points]


def evaluated(
    executor: PointExecutor,
    plan: SweepPlan,
    points: Iterator[DesignPoint],
    batch: int,
    seconds: float | None,
) -> Iterator[tuple[ResultRow, ...]]:
    """The rows of all points as they come. `batch` points are one task; `seconds` is the time that a point may take."""
    tasks = iter(lambda: tuple(islice(points, batch)), ())
    running: dict[Future[Rows], tuple[DesignPoint, ...]] = {}
    waiting: list[tuple[DesignPoint, ...]] = []
    while True:
        while len(running) < executor.in_flight:
            task = waiting.pop() if waiting else next(tasks, None)
            if task is None:
                break
            limit = seconds * len(task) if seconds is not None else None
            running[executor.submit(task, limit)] = task
        if not running:
            return
        done = wait(running, return_when=FIRST_COMPLETED).done
        for future in [future for future in running if future in done]:  # in the order of points
            task = running.pop(future)
            error = future.exception()
            if error is None:
                yield from future.result()
            elif task[1:]:
                waiting += [(point,) for point in task]
            else:
                yield _failure(plan, task[0], error, seconds)


def _failure(
    plan: SweepPlan, point: DesignPoint, error: BaseException, seconds: float | None
) -> tuple[ResultRow, ...]:
    if isinstance(error, TimeoutError):
        return failed_rows(plan, point, RowStatus.TIMEOUT, f"stopped after {seconds:g} s")
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error
    return failed_rows(plan, point, RowStatus.CRASHED, f"the worker ended: {type(error).__name__}: {error}")
