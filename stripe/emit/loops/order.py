"""An order of loops that suits caches and vectors, and changes no bit.

Points that differ in an index that separates the outputs write different elements. So such loops may go anywhere: the
contributions to one element still come in the order of the other loops, which stay as they are (but for integers, whose
sums are the same in any order).
"""

from __future__ import annotations

from collections.abc import Sequence

from stripe.emit.c.scope import Scope
from stripe.emit.loops.parallel import separating_indices
from stripe.ir import Block, Refinement, Special

_VECTOR = 4
"""Fewest iterations that make vectors worth while."""


def fast_order(block: Block, outer: Scope) -> list[str] | None:
    """The iterated indices, outermost first; None for a block that is best left alone (it has blocks inside).

    Innermost comes an index along which the outputs are contiguous and the inputs contiguous or constant; when there is
    none, the indices that are summed over, so that a register holds the sum.
    """
    if any(isinstance(statement, Block | Special) for statement in block.statements):
        return None
    names = [index.name for index in block.iterated if index.range > 1]
    free = separating_indices(block)
    steps = {ref.name: _steps(ref, names, outer) for ref in block.refinements if not ref.is_alloc}
    reads = [steps[ref.name] for ref in block.inputs if ref.name in steps]
    writes = [steps[ref.name] for ref in block.outputs]
    summed = [name for name in names if name not in free]
    if all(ref.dtype.is_integer for ref in block.outputs):
        summed.sort(key=lambda name: -max((abs(step[name]) for step in reads), default=0))
    outside = sorted(free, key=lambda name: -max((abs(step[name]) for step in writes), default=0))
    for name in reversed(outside):
        contiguous = all(step[name] == 1 for step in writes) and all(step[name] in (0, 1) for step in reads)
        if contiguous and block.index(name).range >= _VECTOR:
            return [*(other for other in outside if other != name), *summed, name]
    return [*outside, *summed]


def _steps(ref: Refinement, names: Sequence[str], outer: Scope) -> dict[str, int]:
    """How many elements a step of each index moves the view; 0 also where floor and mod hide it."""
    strides = outer.views[ref.source].buffer.strides
    return {
        name: sum(access.coeff(name) * stride for access, stride in zip(ref.access, strides, strict=True))
        for name in names
    }
