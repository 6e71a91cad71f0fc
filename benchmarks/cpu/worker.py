"""A peer in a process of its own: prepares a workload, and times batches of calls when it is told to.

python worker.py PEER, with one JSON object a line on standard input and on standard output.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_BATCH = 0.05
"""Seconds of a batch, about."""
_SLOW = 0.5
"""Seconds of a call that is not repeated."""


def main() -> None:
    """Answers requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print do not disturb the answers
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from benchmarks.cpu.networks import NETWORKS
    from benchmarks.cpu.workloads import WORKLOADS

    workloads = {workload.key: workload for workload in (*WORKLOADS, *NETWORKS)}
    state: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "begin":
                state["peer"] = importlib.import_module(f"benchmarks.cpu.peers.{sys.argv[1]}")
                answer = {"version": state["peer"].version()}
            elif request["do"] == "prepare":
                answer = _prepare(state, workloads[request["workload"]], request["threads"])
            else:
                answer = state["slow"] or _batch(state["run"], state["count"], request["priority"])
        except Exception as error:  # noqa: BLE001 - whatever a library raises is the reason of its empty field
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _prepare(state: dict[str, Any], workload: Any, threads: int) -> dict[str, Any]:
    from benchmarks.cpu.networks import Network
    from benchmarks.cpu.workloads import expected

    data = workload.data()
    started, worked = time.perf_counter(), time.process_time()
    run, result = state["peer"].prepare(workload, data, threads)
    run()
    took, used = time.perf_counter() - started, time.process_time() - worked
    found = np.asarray(result(), np.float64)
    right = workload.expected() if isinstance(workload, Network) else expected(workload, data)
    scale = float(np.abs(right).max())
    error = float(np.abs(found.reshape(right.shape) - right).max()) / scale
    if not error < 1e-4:
        return {"error": f"wrong result, {error:.2g} of the largest element"}
    once = _batch(run, 1)
    count = max(1, round(_BATCH / max(once["wall"], 1e-7)))
    # Too slow to be run again and again: its first figure stands.
    state |= {"run": run, "count": count, "slow": once if once["processor"] > _SLOW else None}
    return {"error_of_result": error, "compile": took, "compile_processor": used}


def _batch(run: Callable[[], object], count: int, priority: int = 0) -> dict[str, float]:
    """Seconds of one call, on the clock and of processor time. All threads have the priority meanwhile."""
    _prioritize(priority)
    worked, started = time.process_time_ns(), time.perf_counter_ns()
    for _ in range(count):
        run()
    wall, processor = time.perf_counter_ns() - started, time.process_time_ns() - worked
    _prioritize(0)
    return {"wall": wall / count / 1e9, "processor": processor / count / 1e9}


def _prioritize(priority: int) -> None:
    tasks = Path("/proc/self/task")
    if tasks.exists() and priority != os.getpriority(os.PRIO_PROCESS, 0):
        for task in tasks.iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), priority)
        group = Path(
            "/proc/self/autogroup"
        )  # where sessions share the processor, the priority is that of the session
        if group.exists():
            group.write_text(str(priority))


if __name__ == "__main__":
    main()
