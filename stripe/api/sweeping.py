"""Sweeps of machines from Python: rows as they come, results as a picture in notebooks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from stripe.api.arguments import require
from stripe.config.document import parse_document
from stripe.config.model import Scalar
from stripe.ir import ConfigError

if TYPE_CHECKING:
    from stripe.sweeps.evaluate import ResultRow
    from stripe.sweeps.results import PointResult
    from stripe.sweeps.run import SweepProgress
    from stripe.sweeps.store import SweepFacts
    from stripe.sweeps.workers import PointExecutor

MOST_SHOWN = 10
"""Points of the front that a notebook shows."""


def sweep(
    file: str | os.PathLike[str] | Mapping[str, object],
    out: str | os.PathLike[str] | None = None,
    *,
    jobs: int = 1,
    limit: int | None = None,
    resume: bool = False,
    point_timeout: float | None = None,
    **parameters: Scalar,
) -> SweepRun:
    """A sweep over the points of a sweep file, or of its content as a dictionary; paths in that begin at the working
    folder. Iterating evaluates points and gives their rows as they come.

    `out` is the folder of the results, which `stripe-sweep` reads; without it they last as long as the sweep. `resume`
    goes on with results that are there. `jobs` processes evaluate; one is this very process, which stops no point for
    `point_timeout`. `parameters` are those of the sweep file. Raises ConfigError for all that is wrong with the file.
    """
    from stripe.sweeps.plan import plan_of, read_plan
    from stripe.sweeps.strategy import strategy_of

    if isinstance(file, Mapping):
        document = parse_document(json.dumps(file), "the sweep")
        plan = plan_of(document, Path("sweep.json").absolute(), parameters)
    else:
        path = require(
            file, (str, os.PathLike), "a file name or a dictionary", "as in stripe.sweep('s.json')"
        )
        plan = read_plan(Path(path), parameters)
    if jobs == 1 and point_timeout is not None:
        raise ConfigError("one process cannot stop its own points", hint="give jobs=2, or no point_timeout")
    counts = [count for count in (plan.space.size, plan.points, limit) if count is not None]
    return SweepRun(plan, strategy_of(plan, limit), min(counts), out, jobs, point_timeout, resume=resume)


class SweepRun:
    """A sweep that runs as it is iterated. A notebook shows its progress, with the points that no other dominates."""

    def __init__(
        self, plan: Any, strategy: Any, total: int, out: str | os.PathLike[str] | None, jobs: int,
        seconds: float | None, *, resume: bool,
    ) -> None:  # fmt: skip
        from stripe.sweeps.run import SweepProgress

        self._plan, self._strategy = plan, strategy
        self._jobs, self._seconds, self._resume = jobs, seconds, resume
        self._kept = TemporaryDirectory(prefix="stripe-sweep-") if out is None else None
        self.folder = Path(self._kept.name) / "results" if self._kept else Path(out or "")
        self.progress: SweepProgress = SweepProgress(total)
        self._results: list[PointResult] = []
        self._facts: SweepFacts | None = None
        self._rows = self._run()

    def __iter__(self) -> Iterator[ResultRow]:
        return self._rows

    def _run(self) -> Generator[ResultRow]:
        from stripe.sweeps.run import swept
        from stripe.sweeps.store import writing_store

        with writing_store(self.folder, self._plan, self._resume) as store, self._executor() as executor:
            self._facts = store.facts()
            live = _Live(self)
            for result in swept(
                self._plan, store, self._strategy, executor, self.progress, seconds=self._seconds
            ):
                self._results.append(result)
                live.show()
                yield from result.rows
            live.show(last=True)

    @contextmanager
    def _executor(self) -> Generator[PointExecutor]:
        from stripe.sweeps.workers import SerialExecutor, WorkerSetup, processes

        setup = WorkerSetup(self._plan, None, (self.folder / "crashes").absolute())
        if self._jobs == 1:
            yield SerialExecutor(setup)
        else:
            with processes(setup, self._jobs) as executor:
                yield executor

    @property
    def results(self) -> tuple[PointResult, ...]:
        """All points, with the metrics of their mix of workloads; evaluates the points that are left."""
        for _ in self._rows:
            pass
        return tuple(self._results)

    @property
    def front(self) -> tuple[PointResult, ...]:
        """The points that no other dominates, by the first objective."""
        from stripe.sweeps.results import pareto_front

        return pareto_front(self.results, self._plan.objectives)

    def best(self, metric: str | None = None, *, largest: bool = False) -> PointResult:
        """The point with the smallest value of a metric; of the first objective without one. Raises ConfigError."""
        from stripe.sweeps.results import best_point
        from stripe.sweeps.schema import ObjectiveSpec

        objective = self._plan.objectives[0]
        if metric is not None:
            objective = ObjectiveSpec(metric=metric, goal="max" if largest else "min")
        return best_point(self.results, objective)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the page of `stripe-sweep report`."""
        from stripe.output import write_bytes
        from stripe.sweeps.report.report import report_html

        results = self.results
        assert self._facts is not None
        write_bytes(path, report_html(self._facts, results, self._plan).encode())

    @override
    def __repr__(self) -> str:
        state = self.progress
        return f"<SweepRun {self._plan.title}: {state.done} of at most {state.total} points, {state.failed} failed>"

    def _repr_html_(self) -> str:
        from stripe.api.notebook import table_html
        from stripe.sweeps.report.tables import front_table
        from stripe.sweeps.results import pareto_front

        state = self.progress
        bar = f'<progress value="{state.done}" max="{state.total}"></progress>'
        failed = f", {state.failed} not feasible or failed" if state.failed else ""
        parts = [
            f"<p>{escape(self._plan.title)}: {state.done} of at most {state.total} points{failed} {bar}</p>"
        ]
        if self._facts is not None and any(not result.reason for result in self._results):
            front = pareto_front(self._results, self._plan.objectives)[:MOST_SHOWN]
            parts += [table_html(front_table(front, self._facts)), _front_picture(self._facts, self._results)]
        return "".join(parts)


def _front_picture(facts: SweepFacts, results: list[PointResult]) -> str:
    """The front across the first two objectives; nothing where matplotlib is not installed."""
    from stripe.api.notebook import svg_html
    from stripe.sweeps.report.pictures import front_picture

    try:
        drawn = front_picture(facts, results)
    except ConfigError:
        return ""
    return svg_html(drawn.decode()) if drawn else ""


class _Handle(Protocol):
    """A place of a notebook's output that can be shown anew."""

    def update(self, obj: object) -> None: ...


class _Live:
    """The progress of a sweep in the cell of a notebook that runs it; elsewhere nothing."""

    EVERY = 0.5
    """Seconds between two pictures."""

    def __init__(self, run: SweepRun) -> None:
        self._run = run
        self._handle: _Handle | None = None
        self._last = 0.0
        ipython = sys.modules.get("IPython")
        if ipython is not None and ipython.get_ipython() is not None:
            self._handle = sys.modules["IPython"].display.display(run, display_id=True)

    def show(self, *, last: bool = False) -> None:
        import time

        if self._handle is not None and (last or time.monotonic() - self._last > self.EVERY):
            self._last = time.monotonic()
            self._handle.update(self._run)
