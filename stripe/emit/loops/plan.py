"""The plan of one block: order and bounds of its loops, the parallel ones, accumulators, and hints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stripe.emit.loops.accumulators import Accumulator, find_accumulators
from stripe.emit.loops.bounds import ForLoop, bounded
from stripe.emit.loops.hints import Hint, UnrollHint, hints_of
from stripe.emit.loops.order import buffers_of, fast_order, parallel_indices
from stripe.emit.loops.scope import CodeScope
from stripe.emit.loops.tiles import VectorTile, find_tile
from stripe.emit.loops.transposes import Squares, find_transpose
from stripe.ir import Affine, Block

_PEELED = 16
"""Most iterations of a loop that gcc makes straight code of before it forms vectors (`max-completely-peel-times`)."""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """The loops of `block` from the outermost in, tested by `guards` before the first; `scope` is the inside.

    The first `parallel` loops are one parallel loop: bounds inside do not depend on loops outside, and tests come after
    the last. `accumulators` go by the number of their store, `hints` by that of the loop. `empty`: there is no point.
    `tile`: the innermost loops are straight code, and the accumulators are its. `transpose`: the two innermost loops
    copy squares.
    """

    block: Block
    scope: CodeScope
    guards: tuple[Affine, ...]
    loops: tuple[ForLoop, ...]
    empty: bool = False
    parallel: int = 0
    accumulators: Mapping[int, Accumulator] = field(default_factory=dict[int, Accumulator])
    hints: tuple[Hint | None, ...] = ()
    tile: VectorTile | None = None
    transpose: Squares | None = None

    @property
    def declares_first(self) -> bool:
        """Whether variables are declared before the first loop, or without one."""
        if self.tile:
            return self.tile.level == 0 or 0 in self.tile.accumulators.values()
        return not self.loops or any(a.level == 0 for a in self.accumulators.values())

    def is_short(self, level: int) -> bool:
        """Whether a compiler may make straight code of a loop before it forms vectors."""
        low, high = self.scope.intervals[self.loops[level].var]
        hint = self.hints[level]
        return is_short(high - low + 1, unrolled=hint.count if isinstance(hint, UnrollHint) else 0)


def is_short(iterations: int, *, unrolled: int = 0) -> bool:
    """Whether a compiler may make straight code of a loop with at most so many iterations, `unrolled` by a hint."""
    return iterations <= max(_PEELED, unrolled)


def plan_block(
    block: Block, outer: CodeScope, *, threads: bool, reorder: bool, overlapping: bool = True
) -> BlockPlan:
    """The plan of `block` inside `outer`. `threads` allows parallel loops, `reorder` another order of the loops,
    `overlapping` vectors that begin in others."""
    scope, variables = outer.inside(block)
    order = (fast_order(block, outer) if reorder else None) or list(variables)
    shared = parallel_indices(block, order, outer) if threads else ()
    order.sort(key=lambda name: name not in shared)
    ranges = [(variables[name], block.index(name).range) for name in order]
    found = bounded(ranges, [c.affine.subs(scope.indices) for c in block.constraints], outer.intervals)
    scope.intervals = found.intervals
    if found.empty:
        return BlockPlan(block, scope, (), (), empty=True)
    for ref in block.refinements:
        if not ref.is_alloc:
            scope.areas[ref.name] = scope.area(ref, outer)
    hints = hints_of(
        block,
        [(block.index(name), loop) for name, loop in zip(order, found.loops, strict=True)],
        buffers_of(block, outer),
    )
    parallel = min(len(shared), 1)
    while parallel < len(shared) and not found.loops[parallel - 1].guards:
        if found.loops[parallel].depends_on({loop.var for loop in found.loops[:parallel]}):
            break
        parallel += 1
    tile = find_tile(block, scope, found, parallel, overlapping=overlapping)
    transpose = find_transpose(block, scope, found, parallel)
    accumulators = {} if tile else find_accumulators(block, scope, found, parallel)
    return BlockPlan(
        block, scope, found.guards, found.loops, False, parallel, accumulators, hints, tile, transpose
    )
