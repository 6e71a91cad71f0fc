"""Declares allocations and sets them to the identity of the aggregation that writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

from stripe.emit.c.function import WORKSPACE
from stripe.emit.c.options import COptions
from stripe.emit.c.writer import Writer
from stripe.emit.loops.memory import (
    ALIGNMENT,
    Home,
    Homes,
    LocationMemory,
    arena_key,
    check_size,
    first_fill,
    is_placed,
)
from stripe.emit.loops.scope import Area, Pointer
from stripe.ir import Agg, Block, Refinement, beginnings, loaded_refs, reads_of, writes_of


class Storage:
    """Gives each allocation its memory. `homes` knows in the end how large the workspaces must be."""

    def __init__(self, options: COptions, arenas: Mapping[str, LocationMemory]) -> None:
        self.arenas = arenas
        self.homes = Homes(options.stack_bytes, options.checked)
        self._with_arenas = options.arenas

    def allocate(self, refs: Iterable[Refinement], block: Block, writer: Writer, stack: ExitStack) -> None:
        """Declares the allocations `refs` of `block` at the current line and enters them into the areas of the scope.

        Calls that free memory at the end of the block are left on `stack`. Allocations without a use are left out.
        """
        used = {name for s in block.statements for name in (*reads_of(s), *writes_of(s))}
        needed = [ref for ref in refs if ref.name in used]
        if not needed:
            return
        loaded, begins = loaded_refs(block), beginnings(block)
        for ref in needed:
            check_size(ref)
            area = self.placed(ref, ref.name, writer) or self.declare(ref, writer, stack)
            writer.scope.areas[ref.name] = area
            if ref.name not in loaded:
                writer.line(f"(void){area.pointer.name};")
            self.start(area, begins[ref.name], writer)

    def start(self, area: Area, agg: Agg, writer: Writer) -> None:
        """Sets a new buffer to the identity of `agg`, unless it waits for its first use."""
        if fill := first_fill(area, agg, writer.scope):
            writer.fill(*fill)

    def placed(self, ref: Refinement, wanted: str, writer: Writer) -> Area | None:
        """Declares a pointer like `wanted` to a placed allocation in the arena of its location; None for others."""
        if not (self._with_arenas and is_placed(ref)):
            return None
        arena = self.arenas[arena_key(ref)]
        name = writer.scope.names.take(wanted)
        writer.function.declare(name)
        memory = writer.function.use_bytes(arena.name)
        writer.line(writer.dialect.pointer_into(ref.dtype, name, memory, ref.address, restrict=False))
        return arena.area(ref, name, writer.scope)

    def declare(self, ref: Refinement, writer: Writer, stack: ExitStack) -> Area:
        """Declares an allocation that is in no arena. A call that frees its memory is left on `stack`."""
        dialect, name = writer.dialect, writer.scope.names.take(ref.name)
        writer.function.declare(name)
        c_type = dialect.memory_type(ref.dtype)
        # gcc 12 sets an array of 48 bytes by stores that need an alignment of 16, and aligns its stack for 32 alone.
        alignment = ALIGNMENT if ref.bytes >= ALIGNMENT else 32 if ref.bytes >= 32 else 0
        home, offset = self.homes.find(ref, writer.scope)
        if home is Home.REGISTERS:
            writer.line(dialect.local_array(ref.dtype, name, ref.span, alignment))
        elif home is Home.STACK:
            # Reading the array itself, gcc does not see that it is not the small one that a loop beside writes, which
            # then stays in memory.
            array = writer.scope.names.take(f"{ref.name}_array")
            writer.line(dialect.local_array(ref.dtype, array, ref.span, alignment))
            writer.line(f"{c_type} *{dialect.restrict}{name} = {array};")
        elif home is Home.HEAP:
            source = f"{writer.helpers.need('allocate')}({ref.span} * sizeof({c_type}))"
            writer.line(f"{c_type} *{name} = {source};")
            writer.helpers.headers.add("stdlib")
            stack.callback(writer.line, f"free({name});")
        else:
            memory = writer.function.use_bytes(WORKSPACE)
            writer.line(dialect.pointer_into(ref.dtype, name, memory, offset, restrict=True))
        return Pointer.of(name, ref).whole()
