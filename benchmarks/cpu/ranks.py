"""python -m benchmarks.cpu.ranks [--tilings N] [--record] [KEY…]: predicted and measured times of tilings.

For each workload, tilings drawn at random from all that the search of the list `cpu` (its entry `register_tiles`) may
take, with wider limits, are compiled with the rest of the list. The simulator predicts the time of each program on one
core; all run in turn, several rounds, and the least processor time counts. Spearman's rank correlation compares the
two. `--record` keeps the figures for `make fidelity`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.cpu.workloads import WORKLOADS
from stripe.api.compiling import run_passes
from stripe.config.files import NATIVE
from stripe.cost.time.simulate import simulate_program
from stripe.exec.native.processor import this_processor
from stripe.exec.toolchain import find_compiler, identity
from stripe.hw import HardwareModel
from stripe.ir import Block, Program, StripeError, walk
from stripe.passes.autotile.autotile import Autotile
from stripe.passes.autotile.search import TileSearch
from stripe.passes.autotile.tiler import candidate_sizes
from stripe.passes.autotile.tiling import Tiling
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.hardware import find_hardware
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.pipeline.tuning import measured_seconds
from stripe.tile import compile_tile

KEYS = ("W1a", "W1b", "W3", "W4", "W8b")
RECORD = Path(__file__).resolve().parents[2] / "tools" / "fidelity" / "tilings.json"
_ENTRY = "register_tiles"


@dataclass(frozen=True)
class Ranks:
    """The tilings of a workload: their number of all that there are, the rank correlation of predicted and measured
    time, those of the price by which the list chooses a tile and of PlaidML's formula, and measured by predicted time:
    median, least and most. The times of the fastest tiling and of the one with the least price are in milliseconds."""

    key: str
    title: str
    tilings: int
    of: int
    correlation: float
    by_price: float
    by_lines: float
    median: float
    least: float
    most: float
    fastest_ms: float
    chosen_ms: float
    machine: str
    compiler: str
    date: str


def main() -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tilings", type=int, default=100)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("keys", nargs="*", default=KEYS)
    options = parser.parse_args()
    for workload in WORKLOADS:
        if workload.key not in options.keys:
            continue
        program = compile_tile(workload.tile, workload.key, {})
        found = ranks(workload.key, workload.title, program, options.tilings)
        print(json.dumps(asdict(found)), flush=True)
        if options.record:
            known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
            known[workload.key] = asdict(found)
            RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


def ranks(key: str, title: str, program: Program, count: int) -> Ranks:
    """The figures of `count` tilings."""
    machine = find_hardware(NATIVE, {"CORES": 1})
    built, costs, of = _tilings(program, machine, count)
    by_price, by_lines = zip(*costs, strict=True)
    predicted = [simulate_program(each, machine).cycles / (machine.clock_mhz * 1e6) for each in built]
    seconds = measured_seconds(built)
    whole = [place for place, time in enumerate(seconds) if np.isfinite(time)]
    measured = [seconds[place] for place in whole]
    prices = [predicted[place] for place in whole]
    ratios = [time / price for time, price in zip(measured, prices, strict=True)]
    return Ranks(
        key,
        title,
        len(whole),
        of,
        round(spearman(prices, measured), 3),
        round(spearman([by_price[place] for place in whole], measured), 3),
        round(spearman([by_lines[place] for place in whole], measured), 3),
        round(float(np.median(ratios)), 2),
        round(min(ratios), 2),
        round(max(ratios), 2),
        round(min(measured) * 1e3, 3),
        round(seconds[min(whole, key=lambda place: by_price[place])] * 1e3, 3),
        this_processor().name,
        identity(find_compiler(), True).splitlines()[0],
        datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


def _tilings(
    program: Program, machine: HardwareModel, count: int
) -> tuple[list[Program], list[tuple[float, float]], int]:
    """Programs in tilings drawn at random, the price of each with its cost by PlaidML's formula, and the number of all
    tilings."""
    entries, _ = read_setup([("config", "cpu")], machine, {})
    at = next(number for number, entry in enumerate(entries) if entry.name == _ENTRY)
    pass_ = entries[at].pass_
    assert isinstance(pass_, Autotile)
    # More tiles than the list allows: of single vectors, and of results that fill all registers.
    limits = {"vector_bytes": pass_.vector_bytes // 2, "max_output_size": pass_.max_output_size * 4 // 3}
    pass_ = pass_.model_copy(update=limits)
    before = PassManager(entries[:at], machine).run(program)
    block = next(b for _, b in walk(before.entry) if isinstance(b, Block) and b.words.has_all(pass_.reqs))
    tiling = Tiling(pass_, block, machine)
    sizes = candidate_sizes(pass_, tiling, sums=pass_.acc_idxs)
    found = TileSearch(sizes, tiling.ranges, tiling.lower_bound, 1 << 20).run()
    lines = Tiling(pass_.model_copy(update={"cost": "lines"}), block, machine)
    chosen = random.Random(0).sample(found, min(count, len(found)))
    built: list[Program] = []
    costs: list[tuple[float, float]] = []
    for ranked in chosen:
        fixed = dict(zip(tiling.names, ranked.sizes, strict=True))
        setting = pass_.model_copy(update={"fixed": fixed})
        changed = (*entries[:at], PassEntry(_ENTRY, setting), *entries[at + 1 :])
        try:
            built.append(run_passes(program, changed, hardware=machine))
            row = np.array([ranked.sizes], dtype=np.int64)
            costs.append((ranked.cost, float(lines.lower_bound(row, row)[0])))
        except StripeError as error:
            print(f"{fixed}: {error.reason}", file=sys.stderr)
    return built, costs, len(found)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation of the ranks of two series; equal values share the mean of their ranks."""
    return float(np.corrcoef(_ranks(np.asarray(first)), _ranks(np.asarray(second)))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


if __name__ == "__main__":
    sys.exit(main())
