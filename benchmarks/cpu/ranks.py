"""python -m benchmarks.cpu.ranks [--tilings N]: Spearman's rank correlation of predicted and measured time.

For a matrix product and a convolution, tilings spread over all ranks of the search of the list `cpu` (its entry
`register_tiles`) are compiled with the rest of the list and timed in turn on this machine.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.cpu.workloads import WORKLOADS
from stripe.api.compiling import run_passes
from stripe.config.files import NATIVE
from stripe.ir import Block, Program, StripeError, walk
from stripe.passes.autotile.autotile import Autotile
from stripe.passes.autotile.search import TileSearch
from stripe.passes.autotile.tiler import candidate_sizes
from stripe.passes.autotile.tiling import Tiling
from stripe.pipeline.instrument import PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.native import load_machine
from stripe.pipeline.setup import read_setup
from stripe.pipeline.tuning import measured_seconds
from stripe.tile import compile_tile

KEYS = ("W1a", "W3")
_ENTRY = "register_tiles"


def main() -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tilings", type=int, default=100)
    parser.add_argument("keys", nargs="*", default=KEYS)
    options = parser.parse_args()
    for workload in WORKLOADS:
        if workload.key in options.keys:
            program = compile_tile(workload.tile, workload.key, {})
            predicted, seconds, sizes = timed_tilings(program, options.tilings)
            print(f"{workload.title}: {len(seconds)} tilings, rho = {spearman(predicted, seconds):.3f}")
            order = np.argsort(seconds)
            for at in (*order[:5], *order[-3:]):
                print(f"  {seconds[at] * 1e3:.3f} ms, cost {predicted[at]:.4g}: {sizes[at]}")
            best = int(np.argmin(predicted))
            print(f"  least cost: {seconds[best] * 1e3:.3f} ms: {sizes[best]}")
    return 0


def timed_tilings(program: Program, count: int) -> tuple[list[float], list[float], list[str]]:
    """Costs, seconds and sizes of tilings spread over all that keep the limits."""
    entries, hardware = read_setup([("config", "cpu")], load_machine(NATIVE), {})
    at = next(number for number, entry in enumerate(entries) if entry.name == _ENTRY)
    pass_ = entries[at].pass_
    assert isinstance(pass_, Autotile)
    # More tiles than the list allows: of single vectors, and of results that fill all registers.
    limits = {"vector_bytes": pass_.vector_bytes // 2, "max_output_size": pass_.max_output_size * 4 // 3}
    pass_ = pass_.model_copy(update=limits)
    before = PassManager(entries[:at], hardware).run(program)
    block = next(b for _, b in walk(before.entry) if isinstance(b, Block) and b.words.has_all(pass_.reqs))
    tiling = Tiling(pass_, block, hardware)
    sizes = candidate_sizes(pass_, tiling, sums=pass_.acc_idxs)
    search = TileSearch(sizes, tiling.ranges, tiling.price, 1 << 20)
    found = search.run()
    chosen = [found[round(place)] for place in np.linspace(0, len(found) - 1, min(count, len(found)))]
    built: list[Program] = []
    kept: list[int] = []
    for number, ranked in enumerate(chosen):
        fixed = dict(zip(tiling.names, ranked.sizes, strict=True))
        setting = pass_.model_copy(update={"fixed": fixed})
        changed = (*entries[:at], PassEntry(_ENTRY, setting), *entries[at + 1 :])
        try:
            built.append(run_passes(program, changed, hardware=hardware))
            kept.append(number)
        except StripeError as error:
            print(f"{fixed}: {error.reason}", file=sys.stderr)
    seconds = measured_seconds(built)
    whole = [place for place, time in enumerate(seconds) if np.isfinite(time)]
    return (
        [chosen[kept[place]].cost for place in whole],
        [seconds[place] for place in whole],
        [str(dict(zip(tiling.names, chosen[kept[place]].sizes, strict=True))) for place in whole],
    )


def spearman(first: list[float], second: list[float]) -> float:
    """The correlation of the ranks of two series; equal values share the mean of their ranks."""
    return float(np.corrcoef(_ranks(np.asarray(first)), _ranks(np.asarray(second)))[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


if __name__ == "__main__":
    sys.exit(main())
