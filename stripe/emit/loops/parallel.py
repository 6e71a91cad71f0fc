"""The indices of a block that become one parallel loop."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.ir import Block

PARALLEL_TAGS = ("thread", "parallel")
_ITEMS = 64
"""Iterations of a parallel loop that balance well over the cores of a machine."""


def enough_items(block: Block, names: tuple[str, ...], order: Sequence[str]) -> tuple[str, ...]:
    """The first of `names` in `order` that make enough items for any number of threads: what remains stays a plain loop
    inside, which vectors like better than one call per point.
    """
    chosen: list[str] = []
    items = 1
    for name in (name for name in order if name in names):
        if items >= _ITEMS:
            break
        chosen.append(name)
        items *= block.index(name).range
    return tuple(chosen)
