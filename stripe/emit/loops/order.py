"""An order of loops that suits caches and vectors, and changes no bit.

Points that differ in an index that separates the outputs write different elements. So such loops may go anywhere: the
contributions to one element still come in the order of the other loops, which stay as they are (but for integers, whose
sums are the same in any order).
"""

from __future__ import annotations

from collections.abc import Sequence

from stripe.emit.loops.scope import CodeScope
from stripe.ir import Block, Special, linearized, separating, step, walk

_VECTOR = 4
"""Fewest iterations that make vectors worth while."""
_ITEMS = 64
"""Iterations of a parallel loop that balance well over the cores of a machine."""
_PARALLEL_TAGS = ("thread", "parallel")


def fast_order(block: Block, outer: CodeScope) -> list[str] | None:
    """The iterated indices, outermost first; None for a block that is best left alone (it has blocks inside).

    Innermost comes an index along which the outputs are contiguous and the inputs contiguous or constant; when there is
    none, the indices that are summed over, so that a register holds the sum.
    """
    if any(isinstance(statement, Block | Special) for statement in block.statements):
        return None
    names = [index.name for index in block.iterated if index.range > 1]
    free = separating(block, buffers_of(block, outer))
    places = {
        ref.name: linearized(ref.access, outer.areas[ref.source].pointer.strides)
        for ref in block.refinements
        if not ref.is_alloc
    }
    # An uneven step counts as none.
    steps = {ref: {name: step(place, name) or 0 for name in names} for ref, place in places.items()}
    reads = [steps[ref.name] for ref in block.inputs if ref.name in steps]
    writes = [steps[ref.name] for ref in block.outputs]
    summed = [name for name in names if name not in free]
    if all(ref.dtype.is_integer for ref in block.outputs):
        summed.sort(key=lambda name: -max((abs(moved[name]) for moved in reads), default=0))
    outside = sorted(free, key=lambda name: -max((abs(moved[name]) for moved in writes), default=0))
    for name in reversed(outside):
        contiguous = all(moved[name] == 1 for moved in writes) and all(
            moved[name] in (0, 1) for moved in reads
        )
        if contiguous and block.index(name).range >= _VECTOR:
            return [*(other for other in outside if other != name), *summed, name]
    return [*outside, *summed]


def buffers_of(block: Block, outer: CodeScope) -> dict[str, object]:
    """The memory of each source that `block` writes: two names outside may be views of one buffer."""
    return {
        ref.source: outer.areas[ref.source].pointer if ref.source in outer.areas else ref
        for ref in block.outputs
    }


def parallel_indices(block: Block, order: Sequence[str], outer: CodeScope) -> tuple[str, ...]:
    """The indices over which threads share the points of a block that is tagged for it: the first in `order` that make
    enough items for any number of threads. The others stay plain loops inside, which vectors like better than one
    call per point. Placed buffers have one instance, which threads would share.
    """
    if outer.private or not block.tags.has_any(_PARALLEL_TAGS):
        return ()
    if any(ref.is_placed for _, inner in walk(block) for ref in inner.refinements):
        return ()
    apart = separating(block, buffers_of(block, outer))
    chosen: list[str] = []
    items = 1
    for name in (name for name in order if name in apart):
        if items >= _ITEMS:
            break
        chosen.append(name)
        items *= block.index(name).range
    return tuple(chosen)
