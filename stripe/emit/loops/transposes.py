"""Copies that read along one index and write along another: squares of vectors, transposed in registers."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.emit.loops.bounds import ForLoop, Loops
from stripe.emit.loops.scope import CodeScope
from stripe.emit.loops.tiles import interval
from stripe.ir import Agg, Block, Load, Store, step

SQUARE = 16
"""Most rows of a square; those of larger ones leave no registers."""


@dataclass(frozen=True, slots=True)
class Squares:
    """The two innermost loops of a copy: `along` moves its source by one element and its target by `to`, `across` the
    target by one and the source by `by`. Squares have `lanes` rows.
    """

    lanes: int
    source: str
    target: str
    along: ForLoop
    across: ForLoop
    by: int
    to: int


def find_transpose(block: Block, scope: CodeScope, bounds: Loops, parallel: int) -> Squares | None:
    """The transposition of a block with the tag `transpose`; None where plain loops suit it."""
    lanes, loops = min(block.tags.lanes("transpose"), SQUARE), bounds.loops
    if lanes < 2 or len(loops) < parallel + 2 or len(block.statements) != 2:
        return None
    load, store = block.statements
    if not (isinstance(load, Load) and isinstance(store, Store) and store.value == load.into):
        return None
    source, target = scope.areas.get(load.ref), scope.areas.get(store.ref)
    if source is None or target is None or block.ref(store.ref).agg is not Agg.ASSIGN:
        return None
    same = source.pointer.dtype == target.pointer.dtype and not source.pointer.dtype.is_narrow
    if not same or source.pointer.may_alias(target.pointer) or source.pointer.dtype.kind == "bool":
        return None
    for along, across in (loops[-2:], loops[:-3:-1]):
        steps = [step(area.origin, loop.var) for area in (source, target) for loop in (along, across)]
        ahead, by, to, ahead_too = steps
        wide = all(loop.is_plain and size(loop) >= lanes for loop in (along, across))
        if wide and (ahead, ahead_too) == (1, 1) and by is not None and to is not None:
            return Squares(lanes, load.ref, store.ref, along, across, by, to)
    return None


def size(loop: ForLoop) -> int:
    """The number of iterations of a plain loop."""
    low, high = interval(loop)
    return high - low
