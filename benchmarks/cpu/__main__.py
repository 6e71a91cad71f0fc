"""python -m benchmarks.cpu [--peers FOLDER] [--rounds N] [--threads 1,2] [--out FILE] [--only W1a,W3] [--keep] [PEER…]

Measures emitted C and its peers in turn, in one run, and writes the tables of docs/cpu.md after each row. With
`--priority -15`, which needs rights, what is timed comes before other work on the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from benchmarks.cpu import table
from benchmarks.cpu.environment import PEERS, Worker, environment, installed
from benchmarks.cpu.networks import NETWORKS, Network, prepare
from benchmarks.cpu.workloads import WORKLOADS, Workload
from benchmarks.measure import FOLDER


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
    parser.add_argument("--rounds", type=int, default=5)
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
    names = [name for name in PEERS if not options.names or name in options.names]
    python = environment(options.peers)
    missing = {name: reason for name in names if (reason := installed(python, name))}
    every = (*WORKLOADS, *NETWORKS)
    chosen = [w for w in every if not options.only or w.key in options.only.split(",")]
    for workload in chosen:
        if isinstance(workload, Network):
            prepare(workload, python)
    log = FOLDER / "out" / "bench" / "cpu.json"
    log.parent.mkdir(parents=True, exist_ok=True)
    data = table.from_json(json.loads(log.read_text())) if options.keep and log.is_file() else table.Run()
    for threads in map(int, options.threads.split(",")):
        workers = {name: Worker(name, python, threads) for name in names if name not in missing}
        versions = {name: worker.version for name, worker in workers.items()}
        for workload in chosen:
            result = _measured(workload, workers, threads, options.rounds, options.priority)
            print(result, file=sys.stderr, flush=True)
            data = data.with_result(result, versions, missing)
            log.write_text(json.dumps(table.as_json(data), indent=1), encoding="utf-8")
            table.write(data, options.out)
        for worker in workers.values():
            worker.end()
    print(f"written to {options.out} and {log}", file=sys.stderr)
    return 0


def _measured(
    workload: Workload | Network, workers: dict[str, Worker], threads: int, rounds: int, priority: int
) -> table.Result:
    """Batches of all peers in random order, `rounds` times: each figure is the least, that of the quietest moment."""
    failed: dict[str, str] = {}
    compile_seconds: dict[str, float] = {}
    for name, worker in workers.items():
        worker.renew()
        answer = worker.ask(do="prepare", workload=workload.key, threads=threads)
        if "error" in answer:
            failed[name] = str(answer["error"])
        else:
            compile_seconds[name] = answer["compile"]
    order = [name for name in workers if name not in failed]
    walls: dict[str, list[float]] = {name: [] for name in order}
    used: dict[str, list[float]] = {name: [] for name in order}
    for number in range(rounds):
        random.Random(number).shuffle(order)
        for name in [name for name in order if name not in failed]:
            answer = workers[name].ask(do="batch", priority=priority)
            if "error" in answer:
                failed[name] = str(answer["error"])
                continue
            walls[name].append(answer["wall"])
            used[name].append(answer["processor"])
    return table.Result(
        workload.key,
        threads,
        {name: min(times) for name, times in walls.items() if name not in failed},
        {name: min(times) for name, times in used.items() if name not in failed},
        compile_seconds,
        failed,
    )


if __name__ == "__main__":
    sys.exit(main())
