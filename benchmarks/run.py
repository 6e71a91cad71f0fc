"""`make bench`: measures everything that has a target and writes the table, to stdout and to a file.

python -m benchmarks.run [--out FILE] [TOPIC…]
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from benchmarks.measure import FOLDER, machine

TOPICS = {
    "languages": "Languages and command line",
    "interpreter": "Interpreter",
    "passes": "Passes",
    "proofs": "Integer sets and proofs",
    "machines": "Schedule and simulation",
    "code": "Emitted code",
    "sweeps": "Sweeps",
}
"""The modules of this package that have `rows()`, with the heading of each."""

HEAD = "| what | measured | target | verdict | how |\n| --- | --- | --- | --- | --- |"


def main() -> int:
    """Exit status 1 when a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "topics", nargs="*", metavar="TOPIC", help=f"of {', '.join(TOPICS)}; all where none is given"
    )
    parser.add_argument("--out", type=Path, default=FOLDER / "out" / "bench" / "results.md")
    options = parser.parse_args()
    unknown = [topic for topic in options.topics if topic not in TOPICS]
    if unknown:
        parser.error(f"unknown topic '{unknown[0]}', known are {', '.join(TOPICS)}")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded: peers run on one core too
    lines = [f"Machine: {machine()}.\n", "A time is the median on the clock, unless it says otherwise."]
    print("\n".join(lines), flush=True)
    missed = 0
    for topic in options.topics or TOPICS:
        lines.append(f"\n## {TOPICS[topic]}\n\n{HEAD}")
        print(lines[-1], flush=True)
        for row in importlib.import_module(f"benchmarks.{topic}").rows():
            missed += row.ok is False
            lines.append(str(row))
            print(row, flush=True)
    lines.append(f"\nTargets missed: {missed}.")
    print(lines[-1])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("# Benchmark results\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"written to {options.out}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
