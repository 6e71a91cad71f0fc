"""Predicted and measured times of tilings on a processor, as `python -m benchmarks.cpu.ranks --record` left them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cpu.ranks import RECORD

HEAD = """## Processors

Times of tilings that the simulator predicts for `--hw native` on one core, beside those of the emitted C. The tilings
are drawn at random from all that the entry `register_tiles` of the list `cpu` may take (single vectors and results that
fill all registers too); the rest of the list follows. Programs ran in turn, five rounds; the least processor time
counts. *Rank correlation* is Spearman's, between predicted and measured time; *of the search* is that of the price by
which the list chooses a tile without making the program, *of lines* that of PlaidML's formula, by which it chose
before. *Measured / predicted* is the median with least and most, *chosen* the tile of the least price.

"""

TAIL = """
What the model leaves out: tiles of two to four rows whose vectors come from L2 take a quarter more than predicted, and
rows that share a set of L1 up to 2.5 times as long, because conflicts cost their latency and not their bytes alone.
The price of the search knows neither copies of operands nor edges whose bounds vary, which the finished program has.
"""


def section() -> Iterator[str]:
    """The section, from the file of the last run."""
    known = json.loads(Path(RECORD).read_text(encoding="utf-8"))
    yield HEAD
    for machine, compiler, date in sorted({(r["machine"], r["compiler"], r["date"]) for r in known.values()}):
        yield f"Measured {date} on {machine}, shared with other work, {compiler}.\n"
    columns = ("workload", "tilings", "rank correlation", "of the search", "of lines", "measured / predicted")
    yield f"\n| {' | '.join((*columns, 'fastest', 'chosen'))} |\n"
    yield f"|{' --- |' * (len(columns) + 2)}\n"
    for _, run in sorted(known.items()):
        cells = [
            run["title"],
            f"{run['tilings']} of {run['of']}",
            *(f"{run[name]:.2f}" for name in ("correlation", "by_price", "by_lines")),
            f"{run['median']:.2f} ({run['least']:.2f} to {run['most']:.2f})",
            *(f"{run[name]:.3g} ms" for name in ("fastest_ms", "chosen_ms")),
        ]
        yield f"| {' | '.join(cells)} |\n"
    yield TAIL
