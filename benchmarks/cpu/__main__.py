"""python -m benchmarks.cpu [--peers FOLDER] [--minutes N] [--threads 1,2] [--out FILE] [--only W1a,N1] [--keep] [PEER…]

Measures emitted C and its peers in turn, in one run, and writes the tables of docs/cpu.md after each row. The run
takes `--minutes`: each row has its share of what is left; what preparing all peers leaves of it goes to rounds, in
each of which every peer runs a batch of calls; at least three, at most `--rounds`. Whole networks (N1 …) are measured
where `--only` names them. With `--priority -15`, which needs rights, what is timed comes before other work on the
machine.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

from benchmarks.cpu import table
from benchmarks.cpu.environment import PEERS, TOO_SLOW, Worker, environment, installed
from benchmarks.cpu.networks import NETWORKS, Network, prepare
from benchmarks.cpu.workloads import WORKLOADS, Workload
from benchmarks.measure import FOLDER, machine

_LEAST_ROUNDS = 3
_PATIENCE = 20.0
"""Seconds in which a peer has to be prepared for a row, and to give its first result; one that has none is left out of
the row with more threads."""
_SLOW = frozenset({TOO_SLOW.format(_PATIENCE)})
_PAUSE = 0.02
"""Seconds before a batch of several threads: those of the peer before may still turn and wait for work."""


def main() -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="PEER", help=f"of {', '.join(PEERS)}; all where none is given"
    )
    parser.add_argument(
        "--peers", type=Path, default=FOLDER / "out" / "peers", help="environment of the peers"
    )
    parser.add_argument("--minutes", type=float, default=15, help="of the whole run, about")
    parser.add_argument("--rounds", type=int, default=12, help="most batches of each peer for a row")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument(
        "--priority", type=int, default=0, help="that of peers while they are timed; 0: as usual"
    )
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--keep", action="store_true", help="keep the rows of the last run that this one leaves out"
    )
    parser.add_argument("--out", type=Path, default=FOLDER / "docs" / "cpu.md")
    options = parser.parse_args()
    began, end = machine(), time.monotonic() + 60 * options.minutes
    names = [name for name in PEERS if not options.names or name in options.names]
    python = environment(options.peers)
    missing = {name: reason for name in names if (reason := installed(python, name))}
    only = options.only.split(",")
    chosen = [w for w in (*WORKLOADS, *NETWORKS) if w.key in only] if options.only else list(WORKLOADS)
    for workload in chosen:
        if isinstance(workload, Network):
            prepare(workload, python)
    log = FOLDER / "out" / "bench" / "cpu.json"
    log.parent.mkdir(parents=True, exist_ok=True)
    data = table.from_json(json.loads(log.read_text())) if options.keep and log.is_file() else table.Run()
    rows = [(threads, w) for threads in map(int, options.threads.split(",")) for w in chosen]
    workers: dict[str, Worker] = {}
    slow: set[tuple[str, str]] = set()
    for number, (threads, workload) in enumerate(rows):
        if number % len(chosen) == 0:
            for worker in workers.values():
                worker.end()
            workers = {name: Worker(name, python, threads) for name in names if name not in missing}
        others = {name: worker for name, worker in workers.items() if (name, workload.key) not in slow}
        share = (end - time.monotonic()) / (len(rows) - number)
        result = _measured(
            workload, others, threads, options.rounds, time.monotonic() + share, options.priority
        )
        slow |= {(name, workload.key) for name, reason in result.failed.items() if reason in _SLOW}
        print(result, file=sys.stderr, flush=True)
        versions = {name: worker.version for name, worker in workers.items()}
        data = data.with_result(result, versions, missing, began)
        log.write_text(json.dumps(table.as_json(data), indent=1), encoding="utf-8")
        table.write(data, options.out)
    for worker in workers.values():
        worker.end()
    print(f"written to {options.out} and {log}", file=sys.stderr)
    return 0


def _measured(
    workload: Workload | Network,
    workers: dict[str, Worker],
    threads: int,
    rounds: int,
    end: float,
    priority: int,
) -> table.Result:
    """Batches of all peers in random order, until `end`, in `rounds` at most: each figure is the least, that of the
    quietest moment."""
    failed: dict[str, str] = {}
    compile_seconds: dict[str, float] = {}
    for name, worker in workers.items():
        worker.renew()
        answer = worker.ask(within=_PATIENCE, do="prepare", workload=workload.key, threads=threads)
        if "error" in answer:
            failed[name] = str(answer["error"])
        else:
            compile_seconds[name] = answer["compile"]
    order = [name for name in workers if name not in failed]
    walls: dict[str, list[float]] = {name: [] for name in order}
    used: dict[str, list[float]] = {name: [] for name in order}
    done = 0
    while order and done < rounds and (done < _LEAST_ROUNDS or time.monotonic() < end):
        random.Random(done).shuffle(order)
        for name in [name for name in order if name not in failed]:
            if threads > 1:
                time.sleep(_PAUSE)
            answer = workers[name].ask(within=_PATIENCE, do="batch", priority=priority)
            if "error" in answer:
                failed[name] = str(answer["error"])
                continue
            walls[name].append(answer["wall"])
            used[name].append(answer["processor"])
        done += 1
    return table.Result(
        workload.key,
        threads,
        {name: min(times) for name, times in walls.items() if name not in failed},
        {name: min(times) for name, times in used.items() if name not in failed},
        compile_seconds,
        failed,
        done,
    )


if __name__ == "__main__":
    sys.exit(main())
