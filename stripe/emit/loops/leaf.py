"""Register accumulation: a store whose element stays the same over the innermost loops goes to a local variable."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from stripe.emit.c.function import Function, View
from stripe.emit.c.helpers import Helpers
from stripe.emit.c.scalars import from_memory, scalar_type, to_memory
from stripe.emit.c.scope import Scope
from stripe.emit.loops.affines import c_affine
from stripe.emit.loops.nest import Loop, Nest
from stripe.ir import Agg, Block, Load, Special, Store


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The variable `name` holds the element of `view` from before loop number `level` to after it.

    It starts at what the element holds and the contributions come in the same order, so that no bit changes.
    `guarded`: where the loops from `level` on do not run, the element must not be touched.
    """

    name: str
    view: View
    level: int
    guarded: bool = False

    def open(self, function: Function, scope: Scope, helpers: Helpers, stack: ExitStack) -> None:
        """Declares the variable here; when `stack` unwinds to here, its value goes back to memory."""
        dtype = self.view.buffer.dtype
        element = element_text(self.view, scope, function, helpers, write=True)
        function.line(f"{scalar_type(dtype)} {self.name} = {from_memory(element, dtype, helpers)};")
        stored = to_memory(self.name, dtype, helpers)
        stack.callback(function.line, f"{element} = {stored};")


def element_text(
    view: View, scope: Scope, function: Function, helpers: Helpers, *, write: bool = False
) -> str:
    """`A[…]`: the element at the origin of a view."""
    function.use_affine(view.origin)
    return f"{function.use(view.buffer, write=write)}[{c_affine(view.origin, scope.intervals, helpers)}]"


def find_accumulators(block: Block, scope: Scope, nest: Nest) -> dict[int, Accumulator]:
    """For each store of `block` (by its number) that can accumulate in a variable, that variable.

    Only where nothing but scalars happens at a point and no other statement touches the memory.
    """
    if any(isinstance(statement, Block | Special) for statement in block.statements):
        return {}
    found: dict[int, Accumulator] = {}
    for number, statement in enumerate(block.statements):
        if not isinstance(statement, Store) or statement.ref not in scope.views:
            continue
        if block.ref(statement.ref).agg is Agg.ASSIGN or _is_touched_elsewhere(block, scope, number):
            continue
        view = scope.views[statement.ref]
        level, guarded = _first_level(view, scope, nest)
        if level < len(nest.loops):
            name = scope.names.take(f"{statement.ref}_acc")
            found[number] = Accumulator(name, view, level, guarded)
    return found


def _is_touched_elsewhere(block: Block, scope: Scope, number: int) -> bool:
    """Whether another statement uses memory that the store at `number` may share."""
    own = block.statements[number]
    assert isinstance(own, Store)
    buffer = scope.views[own.ref].buffer
    for place, statement in enumerate(block.statements):
        if place == number or not isinstance(statement, Load | Store):
            continue
        if statement.ref in scope.views and scope.views[statement.ref].buffer.may_alias(buffer):
            return True
    return False


def _first_level(view: View, scope: Scope, nest: Nest) -> tuple[int, bool]:
    """The outermost loop from which on the element stays the same, and whether a test must ask if there is a point.

    No test is needed when each loop from there on runs at least once, or when the element is in bounds in any case and
    no other thread can write it.
    """
    names = view.origin.names()
    level = max((place for place, loop in enumerate(nest.loops) if loop.var in names), default=-1) + 1
    low, high = view.origin.bounds(nest.intervals)
    in_bounds = low >= 0 and high < view.buffer.span and not scope.private
    while level < len(nest.loops):
        if in_bounds or all(loop.is_plain for loop in nest.loops[level:]):
            return level, False
        if is_box(nest.loops[level:]):
            return level, True
        level += 1
    return level, False


def is_box(loops: tuple[Loop, ...]) -> bool:
    """Whether no loop tests anything or has bounds that depend on another of them."""
    variables = {loop.var for loop in loops}
    return not any(
        loop.guards or any(bound.names() & variables for bound in (*loop.lower, *loop.upper))
        for loop in loops
    )
