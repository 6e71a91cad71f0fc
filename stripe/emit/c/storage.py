"""Declares allocations in C and sets them to the identity of the aggregation that writes them."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

from stripe.emit.c.boxes import box_element, box_loops
from stripe.emit.c.function import WORKSPACE, Buffer, Function, View, whole_view
from stripe.emit.c.helpers import Helpers
from stripe.emit.c.options import COptions
from stripe.emit.c.scalars import is_zero_bits, memory_literal, memory_type
from stripe.emit.c.scope import Scope
from stripe.emit.loops.memory import ALIGNMENT, Arena, align, arena_key, check_size, is_placed, units_of
from stripe.ir import (
    Agg,
    Block,
    Load,
    Refinement,
    Special,
    Statement,
    allocation_agg,
    is_dense,
    reads_of,
    writes_of,
)

_REGISTER_BYTES = 2048
"""The largest local array that registers may hold: 32 of 64 bytes. A larger one gets a `restrict` pointer: reading the
array itself, gcc does not see that it is not the small one that a loop beside writes, which then stays in memory.
"""


class Storage:
    """Gives each allocation its memory; knows in the end how large the workspaces must be."""

    def __init__(self, options: COptions, helpers: Helpers, arenas: dict[str, Arena]) -> None:
        self.options = options
        self.helpers = helpers
        self.arenas = arenas
        self.shared_bytes = 0
        self.thread_bytes = 0
        self.has_local = False

    def allocate(
        self, ref: Refinement, block: Block, scope: Scope, function: Function, stack: ExitStack
    ) -> None:
        """Declares the allocation `ref` of `block` at the current line and enters it into the views of `scope`.

        What must be freed at the end of the block is left on `stack`. Nothing happens if no statement uses it.
        """
        if not any(ref.name in (*reads_of(s), *writes_of(s)) for s in block.statements):
            return
        check_size(ref)
        view = self._declare(ref, scope, function, stack)
        scope.views[ref.name] = view
        if not is_loaded(block, ref.name):
            function.line(f"(void){view.buffer.name};")
        self.start(view, allocation_agg(block, ref.name), scope, function)

    def start(self, view: View, agg: Agg, scope: Scope, function: Function) -> None:
        """Sets a new buffer to the identity of `agg`; one in an arena only just before its first use."""
        if agg is Agg.ASSIGN:
            return
        value = agg.identity(view.buffer.dtype)
        if view.buffer.arena is None:
            self.fill(view, value, scope, function)
        else:
            scope.pending[view.buffer.name] = (view, value)

    def before(self, statement: Statement, scope: Scope, function: Function) -> None:
        """Sets what `statement` uses first to its value; a block that runs once does so by itself, deeper inside."""
        if not scope.pending or (isinstance(statement, Block) and runs_once(statement)):
            return
        used = {scope.views[name].buffer.name for name in (*reads_of(statement), *writes_of(statement))}
        for name in sorted(used & scope.pending.keys()):
            view, value = scope.pending.pop(name)
            self.fill(view, value, scope, function)

    def _declare(self, ref: Refinement, scope: Scope, function: Function, stack: ExitStack) -> View:
        if self.options.arenas and is_placed(ref):
            return self.in_arena(ref, ref.name, scope, function)
        name = scope.names.take(ref.name)
        function.declare(name)
        buffer = Buffer(name, ref.dtype, ref.sizes, ref.strides, ref.span)
        size = align(ref.bytes)
        c_type = memory_type(ref.dtype)
        if ref.bytes <= self.options.stack_bytes and size <= scope.stack_left:
            scope.stack_left -= size
            self.has_local = True
            aligned = f"_Alignas({ALIGNMENT}) " if ref.bytes >= ALIGNMENT else ""
            if ref.bytes <= _REGISTER_BYTES:
                function.line(f"{aligned}{c_type} {name}[{ref.span}];")
            else:
                array = scope.names.take(f"{ref.name}_array")
                function.line(f"{aligned}{c_type} {array}[{ref.span}];")
                function.line(f"{c_type} *restrict {name} = {array};")
        elif self.options.checked:
            source = f"{self.helpers.need('allocate')}({ref.span} * sizeof({c_type}))"
            function.line(f"{c_type} *{name} = {source};")
            self.helpers.headers.add("stdlib")
            stack.callback(function.line, f"free({name});")
        else:
            place = f"{function.use_bytes(WORKSPACE)} + {scope.workspace}"
            function.line(f"{c_type} *restrict {name} = ({c_type} *)(void *)({place});")
            scope.workspace += size
            self._note(scope)
        return whole_view(buffer)

    def _note(self, scope: Scope) -> None:
        if scope.private:
            self.thread_bytes = max(self.thread_bytes, scope.workspace)
        else:
            self.shared_bytes = max(self.shared_bytes, scope.workspace)

    def in_arena(self, ref: Refinement, wanted: str, scope: Scope, function: Function) -> View:
        """Declares a pointer to where a placed allocation lies in the arena of its location."""
        arena = self.arenas[arena_key(ref)]
        name = scope.names.take(wanted)
        function.declare(name)
        c_type = memory_type(ref.dtype)
        function.line(
            f"{c_type} *{name} = ({c_type} *)(void *)({function.use_bytes(arena.name)} + {ref.offset});"
        )
        strides = arena.strides(ref)
        extent = (arena.name, ref.offset, ref.offset + ref.bytes)
        span = (arena.bytes - ref.offset) // ref.dtype.bytes
        buffer = Buffer(name, ref.dtype, ref.sizes, strides, span, extent)
        units = tuple(scope.affine(unit) for unit in units_of(ref))
        origin = arena.unit(units) * (arena.unit_bytes // ref.dtype.bytes)
        return View(buffer, origin + whole_view(buffer).origin, ref.sizes)

    def fill(self, view: View, value: bool | int | float, scope: Scope, function: Function) -> None:
        """Sets all elements of a buffer to `value`, without touching what lies between them."""
        buffer = view.buffer
        name = function.use(buffer, write=True)
        text = self.helpers.literal(memory_literal(value, buffer.dtype))
        if is_dense(buffer.sizes, buffer.strides) and view.origin.is_constant and not view.origin.offset:
            count = prod(buffer.sizes)
            if is_zero_bits(value):
                self.helpers.headers.add("string")
                function.line(f"memset({name}, 0, {count} * sizeof *{name});")
            elif count == 1:
                function.line(f"{name}[0] = {text};")
            else:
                i = scope.names.child().take("i")
                head = f"for (int64_t {i} = 0; {i} < {count}; ++{i})"
                function.line(f"{head} {name}[{i}] = {text};")
            return
        with box_loops(buffer.sizes, scope, function) as coordinates:
            element = box_element(view, coordinates, scope, function, self.helpers, write=True)
            function.line(f"{element} = {text};")


def runs_once(block: Block) -> bool:
    """Whether the block has exactly one point whatever is outside."""
    return not block.constraints and block.points == 1


def is_loaded(block: Block, name: str) -> bool:
    """Whether a load or special in `block` or inside reads the refinement `name` of `block`."""
    for statement in block.statements:
        if isinstance(statement, Load | Special) and name in reads_of(statement):
            return True
        if isinstance(statement, Block) and any(
            ref.source == name and is_loaded(statement, ref.name) for ref in statement.refinements
        ):
            return True
    return False
