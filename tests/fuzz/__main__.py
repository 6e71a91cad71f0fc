"""`make fuzz`: many cases, in chunks each of which is a process of its own, so that a crash costs one chunk.

A chunk is reproducible: `python -m tests.fuzz --seed S --cases N --chunk C` draws the same cases each time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import TypeVar

from hypothesis.control import BuildContext
from hypothesis.errors import StopTest
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.strategies import SearchStrategy

from stripe.ir import StripeError
from tests.fuzz.case import Case, cases, cases_of_structures, load, save
from tests.fuzz.check import LEVELS, Counts, check_cases
from tests.fuzz.rewrites import FAMILIES, check_rewrites

Drawn = TypeVar("Drawn")

SAVED_PER_GROUP = 3


def draw_cases(count: int, number: int, *, structures: bool = False) -> list[Case]:
    """`count` independent cases from the seed `number`; with `structures` none but Stripe that lowering never makes."""
    return draw_many(cases_of_structures() if structures else cases(), count, number)


def draw_many(strategy: SearchStrategy[Drawn], count: int, number: int) -> list[Drawn]:
    """Independent examples. Hypothesis's own loop would spend most of them on variations of small ones."""
    found: list[Drawn] = []
    for place in range(count):
        data = ConjectureData(random=Random(f"{number}/{place}"))
        try:
            with BuildContext(data, wrapped_test=draw_many):
                found.append(data.draw(strategy))
        except StopTest:  # more choices than Hypothesis keeps for one example
            continue
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first chunk; the next ones count on")
    parser.add_argument("--chunk", type=int, default=100, help="cases of one process")
    parser.add_argument("--jobs", type=int, default=2, help="processes at the same time")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="folder of the failures")
    parser.add_argument("--sanitize", action="store_true", help="build the C with sanitizers")
    parser.add_argument(
        "--structures", action="store_true", help="none but Stripe of structures that lowering never makes"
    )
    parser.add_argument(
        "--seconds", type=float, default=0, help="start no chunk after this time; 0: no limit"
    )
    parser.add_argument("--replay", type=Path, nargs="+", help="check saved failures instead")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        return replay(options.replay)
    if options.worker:
        return _work(options)
    return _run(options)


def replay(paths: list[Path]) -> int:
    try:
        read = [load(path) for path in paths]
    except StripeError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    counts = Counts()
    failures = [failure for case in read for failure in check_cases([case], counts)]
    for failure in failures:
        print(f"{failure.kind}: {failure.guilty}\n{failure.detail}\n")
    print(f"{len(failures)} of {len(paths)} fail")
    return 3 if failures else 0


def _work(options: argparse.Namespace) -> int:
    """One chunk: prints its counts as JSON."""
    counts = Counts()
    drawn = draw_cases(options.cases, options.seed, structures=options.structures)
    failures = check_cases(drawn, counts, sanitize=options.sanitize, level=LEVELS[options.seed % len(LEVELS)])
    share = -(-options.cases // 50)
    for name in FAMILIES:
        counts.rewrites += share
        for text in check_rewrites(name, share, options.seed):
            counts.failures[f"rewrite by hand: {text}"] += 1
    seen: dict[str, int] = {}
    for failure in failures:
        seen[failure.group] = seen.get(failure.group, 0) + 1
        if seen[failure.group] > SAVED_PER_GROUP:
            continue
        key = hashlib.sha256(f"{failure.case.text}{failure.case.passes}".encode()).hexdigest()[:8]
        group = hashlib.sha256(failure.group.encode()).hexdigest()[:6]
        name = f"{failure.kind.replace(' ', '_').replace(',', '')}-{group}-{options.seed}-{key}.json"
        text = f"{failure.kind}: {failure.guilty}\n{failure.detail}"
        save(failure.case, text, f"--seed {options.seed} --cases {options.cases}", options.out / name)
    print(json.dumps({field.name: getattr(counts, field.name) for field in fields(counts)}))
    return 0


def _run(options: argparse.Namespace) -> int:
    started = time.monotonic()
    total = Counts()
    sizes = [min(options.chunk, options.cases - n) for n in range(0, options.cases, options.chunk)]
    died: list[str] = []

    def chunk(number: int) -> None:
        if options.seconds and time.monotonic() - started > options.seconds:
            return
        command = [
            sys.executable, "-m", "tests.fuzz", "--worker", "--seed", str(options.seed + number),
            "--cases", str(sizes[number]), "--out", str(options.out), *(["--sanitize"] if options.sanitize else []),
            *(["--structures"] if options.structures else []),
        ]  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            died.append(f"seed {options.seed + number}: status {result.returncode}\n{result.stderr[-2000:]}")
            return
        total.add(_read_counts(result.stdout))
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{total.cases} cases, {sum(total.failures.values())} failures")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(chunk, range(len(sizes))))
    _report(total, died, options, time.monotonic() - started)
    return 3 if died or total.failures else 0


def _read_counts(text: str) -> Counts:
    counts = Counts()
    for name, value in json.loads(text.splitlines()[-1]).items():
        if isinstance(value, dict):
            getattr(counts, name).update(value)
        else:
            setattr(counts, name, value)
    return counts


def _report(total: Counts, died: list[str], options: argparse.Namespace, seconds: float) -> None:
    print(f"seeds from {options.seed} in chunks of {options.chunk}: {total.cases} cases in {seconds:.0f} s")
    print(f"  programs refused by the compiler: {total.refused_programs}")
    print(f"  proved equal {total.equal}, different {total.different}, unknown {sum(total.unknown.values())}")
    for reason, count in total.unknown.most_common():
        print(f"    {count:5d} unknown: {reason}")
    print(f"  run, but not compared, as the order of float sums decides the result: {total.inexact}")
    print(
        f"  checked as scheduled or placed {total.checked}; corrupted {total.corrupted}, of these refused "
        f"{total.corrupted_refused}, the others harmless in all orders that were run"
    )
    print(f"  run as C, before and after: {total.in_c}")
    print(f"  rewrites by hand with their broken twins: {total.rewrites}")
    print("  pass                 changed  unchanged  refused")
    for name in sorted({*total.applied, *total.unchanged, *total.refused}):
        print(f"    {name:20s} {total.applied[name]:6d} {total.unchanged[name]:10d} {total.refused[name]:8d}")
    print(
        f"  failures: {sum(total.failures.values())}{f', saved in {options.out}' if total.failures else ''}"
    )
    for group, count in total.failures.most_common():
        print(f"    {count:5d} {group}")
    for text in died:
        print(f"  a chunk died: {text}")


if __name__ == "__main__":
    sys.exit(main())
