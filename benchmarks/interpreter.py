"""The interpreter on one large convolution, in a process of its own so that its memory can be told."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator

from benchmarks import programs
from benchmarks.measure import Row, python, seconds, timed

RUNS = 3
MIB = 1 << 20


def rows() -> Iterator[Row]:
    found: dict[str, float] = json.loads(python("-m", "benchmarks.interpreter").stdout)
    how = (
        f"median of {RUNS} runs, processor time {seconds(found['cpu'])}; 115.6 M multiply-adds, all checks on"
    )
    yield Row(
        "interpret a 3x3 convolution, 56x56x64x64",
        seconds(found["wall"]),
        how,
        "under 10 s",
        found["wall"] < 10,
    )
    peak = found["peak"] / MIB
    yield Row(
        "peak memory of that process",
        f"{peak:.0f} MiB",
        "resident, all of Python in it",
        "under 2 GiB",
        peak < 2048,
    )


def _measure() -> None:
    from stripe.exec.data import random_inputs
    from stripe.exec.interp import interpret

    program = programs.lowered(programs.CONV56)
    inputs = random_inputs(program)
    times = timed(lambda: interpret(program, inputs), RUNS, warm_up=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"wall": times.median, "cpu": sorted(times.cpu)[RUNS // 2], "peak": peak}))


if __name__ == "__main__":
    _measure()
