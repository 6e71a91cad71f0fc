"""The tables of docs/cpu.md."""

from __future__ import annotations

import datetime
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cpu.environment import OWN
from benchmarks.cpu.networks import NETWORKS
from benchmarks.cpu.workloads import WORKLOADS
from stripe.exec.native.measure import Measurement, measured

_WORKLOADS = {workload.key: workload for workload in (*WORKLOADS, *NETWORKS)}


CAUSES = {
    "W9a": "a tile reads eight rows of the image, 28 KiB apart, in pieces of 256 bytes; tiles along one row took 14 % "
    "less, and all tiles have the same price",
    "W10": "of 25 cycles for 16 elements 14 are exp, 6 the division (a product with the reciprocal takes 4 less, and "
    "rounds otherwise), and the rest the maximum and the sum in loops of their own",
    "W15": "lanes are partial sums of one result, whose addition takes a quarter of the time, and the sum of one "
    "factor, for its sign, a sixth; PyTorch packs fours of one factor, so that lanes are results, for which gcc 12 and "
    "clang 14 have no form of C (above)",
}
"""Why rows are below 1, as experiments have shown."""


@dataclass(frozen=True)
class Result:
    """Least seconds of a workload by peer: on the clock, of processor time, and until the first result."""

    key: str
    threads: int
    wall: Mapping[str, float]
    processor: Mapping[str, float]
    compile: Mapping[str, float]
    failed: Mapping[str, str]
    rounds: int = 0
    """Batches of each peer."""

    def rates(self) -> dict[str, float]:
        """GFLOP/s or GB/s by peer: by processor time for one thread, which others on the machine do not disturb, and by
        the clock for more."""
        times = self.processor if self.threads == 1 else self.wall
        return {name: _WORKLOADS[self.key].work / max(time, 1e-9) for name, time in times.items()}

    @property
    def best(self) -> tuple[str, float] | None:
        """The best peer."""
        others = {name: rate for name, rate in self.rates().items() if name not in OWN}
        return max(others.items(), key=lambda item: item[1]) if others else None

    @property
    def ratio(self) -> float | None:
        """The better compiler of ours by the best peer."""
        own = [rate for name, rate in self.rates().items() if name in OWN]
        return max(own) / self.best[1] if own and self.best else None


@dataclass(frozen=True)
class Run:
    """A whole run, and the machine when it began."""

    results: tuple[Result, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    machine: str = ""

    def with_result(
        self, result: Result, versions: Mapping[str, str], missing: Mapping[str, str], machine: str
    ) -> Run:
        """The run with a row in the order of the workloads, instead of one of an earlier run."""
        kept = [r for r in self.results if (r.key, r.threads) != (result.key, result.threads)]
        keys = list(_WORKLOADS)
        rows = sorted((*kept, result), key=lambda r: (r.threads, keys.index(r.key)))
        return Run(tuple(rows), {**self.versions, **versions}, {**self.missing, **missing}, machine)


def as_json(run: Run) -> dict[str, Any]:
    """All figures."""
    return asdict(run)


def from_json(found: dict[str, Any]) -> Run:
    """The run of which `as_json` gave the figures."""
    return Run(
        tuple(Result(**row) for row in found["results"]),
        found["versions"],
        found["missing"],
        found.get("machine", ""),
    )


def write(run: Run, path: Path) -> None:
    """Puts the tables between the marks of the page, or writes a page of them."""
    begin, end = "<!-- measured -->", "<!-- end -->"
    page = path.read_text(encoding="utf-8") if path.is_file() else f"{begin}\n{end}\n"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{_text(run)}{end}{after}", encoding="utf-8")


def _text(run: Run) -> str:
    found = measured()
    lines = [
        f"Measured {datetime.date.today().isoformat()} on {run.machine}; {' '.join(platform.libc_ver())}.",
        "",
        f"One core reaches {found.gflops:.0f} GFLOP/s of fp32 multiply-adds at {found.clock_mhz:.0f} MHz and reads "
        + ", ".join(f"{rate:.0f} GB/s from L{level}" for level, rate in sorted(found.gb_per_s.items()))
        + f", {found.core_memory_gb_per_s:.0f} GB/s from memory (all cores {found.memory_gb_per_s:.0f}).",
        "",
        "Versions: " + "; ".join(f"{name} {version}" for name, version in run.versions.items()) + ".",
    ]
    lines += [f"Missing: {name} ({reason})." for name, reason in run.missing.items()]
    rounds = [result.rounds for result in run.results]
    counts = " to ".join(str(count) for count in sorted({min(rounds), max(rounds)}))
    lines += ["", f"Each figure is from the least time of {counts} batches of about 50 ms."]
    for threads in sorted({result.threads for result in run.results}):
        of_threads = [result for result in run.results if result.threads == threads]
        lines += ["", *_table(of_threads, threads, found)]
    return "\n".join(lines) + "\n"


def _table(results: list[Result], threads: int, found: Measurement) -> Iterator[str]:
    names = list(dict.fromkeys(name for result in results for name in (*result.wall, *result.failed)))
    clock = "processor time" if threads == 1 else "the clock"
    yield f"### {threads} thread{'s' * (threads > 1)}, rates by {clock}"
    yield ""
    yield f"| workload | unit | {' | '.join(names)} | ours / best peer | % of peak | clock / processor |"
    yield f"| --- | --- | {'--- | ' * len(names)}--- | --- | --- |"
    for result in results:
        workload, rates = _WORKLOADS[result.key], result.rates()
        best = result.best
        cells = [
            "-"
            if name not in rates
            else f"**{rates[name]:.1f}**"
            if best and name == best[0]
            else f"{rates[name]:.1f}"
            for name in names
        ]
        own = max((rate for name, rate in rates.items() if name in OWN), default=None)
        peak = (
            f"{own / (found.gflops * threads):.0%}"
            if own and workload.flops and workload.dtype != "int8"
            else "-"
        )
        ratio = f"{result.ratio:.2f}" if result.ratio else "-"
        busy = [result.wall[name] / max(1e-9, result.processor[name]) for name in OWN if name in result.wall]
        yield (
            f"| {result.key} {workload.title} | {workload.unit} | {' | '.join(cells)} | {ratio} | {peak} | "
            f"{max(busy, default=0):.2f} |"
        )
    yield from _below(results)
    ratios = [result.ratio for result in results if result.ratio]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        below = sum(ratio < 1 for ratio in ratios)
        yield ""
        yield f"Geometric mean of ours / best peer: **{mean:.2f}** over {len(ratios)} rows, {below} of them below 1."
    compiled = [name for name in names if any(name in result.compile for result in results)]
    yield ""
    yield (
        "Seconds until the first result (preparation, compiling, one run), medians: "
        + ", ".join(
            f"{name} {_median([result.compile[name] for result in results if name in result.compile]):.2f}"
            for name in compiled
        )
        + "."
    )
    failures: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for name, reason in result.failed.items():
            if "NotImplementedError" not in reason:
                failures.setdefault((name, reason), []).append(result.key)
    for (name, reason), keys in failures.items():
        yield ""
        yield f"{name} has no figure for {', '.join(keys)}: {reason}."


def _below(results: list[Result]) -> Iterator[str]:
    """The rows below 1, with the causes that are known."""
    rows = [result for result in results if result.ratio and result.ratio < 1]
    if rows:
        yield ""
        yield "Rows below 1:"
        yield ""
    for result in rows:
        best = result.best[0] if result.best else ""
        cause = CAUSES.get(result.key, "no cause is known")
        yield f"- {result.key} {_WORKLOADS[result.key].title}, {result.ratio:.2f} of {best}: {cause}."


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0.0
