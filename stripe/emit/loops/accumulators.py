"""Accumulators: a store whose element stays the same over the innermost loops goes to a local variable."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.emit.loops.bounds import Loops
from stripe.emit.loops.scope import Area, CodeScope
from stripe.ir import Agg, Block, Load, Special, Store


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The variable `name` holds the element of `area` from before loop number `level` to after it.

    It starts at the element's value and the contributions come in the same order, so that no bit changes. `guarded`:
    where the loops from `level` on do not run, the element must not be touched.
    """

    name: str
    area: Area
    level: int
    guarded: bool = False


def find_accumulators(block: Block, scope: CodeScope, loops: Loops, parallel: int) -> dict[int, Accumulator]:
    """The accumulators by the number of their store: only scalars happen at a point, and no other statement touches the
    memory. The first `parallel` loops are one parallel loop.
    """
    if any(isinstance(statement, Block | Special) for statement in block.statements):
        return {}
    found: dict[int, Accumulator] = {}
    for number, statement in enumerate(block.statements):
        if not isinstance(statement, Store) or statement.ref not in scope.areas:
            continue
        area = scope.areas[statement.ref]
        others = [
            scope.areas[other.ref].pointer
            for place, other in enumerate(block.statements)
            if place != number and isinstance(other, Load | Store) and other.ref in scope.areas
        ]
        if block.ref(statement.ref).agg is Agg.ASSIGN or any(map(area.pointer.may_alias, others)):
            continue
        level, guarded = _first_level(area, scope, loops, parallel)
        if level < len(loops.loops):
            name = scope.names.take(f"{statement.ref}_acc")
            found[number] = Accumulator(name, area, level, guarded)
    return found


def _first_level(area: Area, scope: CodeScope, bounds: Loops, parallel: int) -> tuple[int, bool]:
    """The outermost loop from which on the element stays the same, and whether a test for a point comes before it.

    No test is needed when each loop from there on runs at least once, or when the element is the buffer's own in any
    case and no other thread can write it: then its bits go back as they came.
    """
    level = max(bounds.still_from(area.origin), parallel)
    may_touch = not (scope.private or parallel) and area.stays_inside(bounds.intervals)
    while level < len(bounds.loops):
        if may_touch or all(loop.is_plain for loop in bounds.loops[level:]):
            return level, False
        variables = {loop.var for loop in bounds.loops[level:]}
        if not any(loop.guards or loop.depends_on(variables) for loop in bounds.loops[level:]):
            return level, True
        level += 1
    return level, False
