"""Timing, and the rows of the table."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of several runs of one thing: on the clock, and of processor time, that of ended processes included."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def best(self) -> float:
        return min(self.wall)

    def __str__(self) -> str:
        fastest = f", fastest {seconds(self.best)}" if len(self.wall) > 1 else ""
        runs = f"{len(self.wall)} runs" if len(self.wall) > 1 else "one run"
        return f"{runs}{fastest}, processor time {seconds(statistics.median(self.cpu))}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `ok` is None where nobody set a target; `verdict` says more than yes or no."""

    what: str
    measured: str
    how: str
    target: str = ""
    ok: bool | None = None
    verdict: str = ""

    def __str__(self) -> str:
        verdict = self.verdict or ("" if self.ok is None else "ok" if self.ok else "**missed**")
        return f"| {self.what} | {self.measured} | {self.target or 'none'} | {verdict} | {self.how} |"


def timed(function: Callable[[], object], runs: int = 3, *, warm_up: bool = True) -> Times:
    """Times a call several times, after one that does not count."""
    if warm_up:
        function()
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(runs):
        started, worked = time.perf_counter(), _worked()
        function()
        wall.append(time.perf_counter() - started)
        cpu.append(_worked() - worked)
    return Times(tuple(wall), tuple(cpu))


def _worked() -> float:
    """The processor time of this process and of all that it started, as far as they have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def limited(what: str, times: Times, limit: float, how: str = "", *, clock: bool = False) -> Row:
    """The row of a median that has to stay below `limit` seconds. `clock`: processes that others have started do the
    work, whose processor time nobody counts.
    """
    notes = f"{times}; {how}" if how else str(times)
    ok = times.median < limit
    busy = not (ok or clock) and statistics.median(times.cpu) < limit
    verdict = "missed on the clock of a busy machine, kept in processor time" if busy else ""
    return Row(what, seconds(times.median), notes, f"under {seconds(limit)}", ok, verdict)


def seconds(value: float) -> str:
    """A duration in a unit that suits it."""
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs this Python on something in the repository. Raises CalledProcessError with what it wrote."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True)


def machine() -> str:
    """What the numbers were measured on, and how busy that was."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"{_processor()}, {cores} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, load average {load} when the run began"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"
