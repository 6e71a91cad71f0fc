"""Declares allocations and sets them to the identity of the aggregation that writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from stripe.emit.c.function import THREADS, WORKSPACE
from stripe.emit.c.options import COptions
from stripe.emit.c.writer import Writer
from stripe.emit.loops.memory import (
    ALIGNMENT,
    Home,
    Homes,
    LocationMemory,
    arena_key,
    first_fill,
    lifetimes,
    require_addressable,
)
from stripe.emit.loops.scope import Area, Pointer
from stripe.ir import Agg, Block, Interval, Refinement, beginnings, loaded_refs


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
        lives = lifetimes(block)
        needed = [ref for ref in refs if ref.name in lives]
        if not needed:
            return
        for ref in needed:
            require_addressable(ref)
        free = [ref for ref in needed if not self._has_arena(ref)]
        homes = {ref.name: self.homes.find(ref, writer.scope) for ref in free}
        moved = [ref for ref in free if homes[ref.name] is Home.WORKSPACE]
        pieces = self._in_workspace(moved, lives, writer)
        loaded, begins = loaded_refs(block), beginnings(block)
        for ref in needed:
            area = (
                pieces.get(ref.name)
                or self.placed(ref, ref.name, writer)
                or self._declare(ref, homes[ref.name], writer, stack)
            )
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
        if not self._has_arena(ref):
            return None
        arena = self.arenas[arena_key(ref)]
        name = writer.scope.names.take(wanted)
        writer.function.declare(name)
        area = arena.area(ref, name, writer.scope)
        self._point(area.pointer, arena.name, ref.address, writer, restrict=False)
        return area

    def _point(self, pointer: Pointer, memory: str, offset: int, writer: Writer, *, restrict: bool) -> None:
        """Declares a pointer into raw memory."""
        name, definition = writer.dialect.raw_type(pointer.dtype)
        if definition:
            writer.helpers.define(name, definition)
        memory = writer.function.use_bytes(memory)
        writer.line(writer.dialect.pointer_into(pointer, memory, offset, restrict=restrict))

    def _has_arena(self, ref: Refinement) -> bool:
        return self._with_arenas and ref.is_placed

    def scratch(self, ref: Refinement, writer: Writer, stack: ExitStack) -> Area:
        """Declares an allocation of the code itself, for the statement that follows."""
        home = self.homes.find(ref, writer.scope)
        if home is Home.WORKSPACE:
            return self._in_workspace([ref], {ref.name: (0, 0)}, writer)[ref.name]
        return self._declare(ref, home, writer, stack)

    def _in_workspace(
        self, refs: Sequence[Refinement], lives: Mapping[str, Interval], writer: Writer
    ) -> dict[str, Area]:
        """Declares pointers into the workspace. Allocations that are never alive at the same statement share bytes."""
        offsets = self.homes.share([(ref.bytes, lives[ref.name]) for ref in refs], writer.scope)
        space = THREADS if writer.scope.private else WORKSPACE
        pointers: list[Pointer] = []
        for ref, offset in zip(refs, offsets, strict=True):
            name = writer.scope.names.take(ref.name)
            writer.function.declare(name)
            arena = (space, offset, offset + ref.bytes)
            pointers.append(replace(Pointer.of(name, ref), arena=arena, is_raw=True))
        areas: dict[str, Area] = {}
        for ref, pointer, offset in zip(refs, pointers, offsets, strict=True):
            shares = any(pointer.may_alias(other) for other in pointers if other is not pointer)
            self._point(pointer, WORKSPACE, offset, writer, restrict=not shares)
            areas[ref.name] = (pointer if shares else replace(pointer, arena=None)).whole()
        return areas

    def _declare(self, ref: Refinement, home: Home, writer: Writer, stack: ExitStack) -> Area:
        """Declares an allocation on the stack or the heap. A call that frees its memory is left on `stack`."""
        dialect, name = writer.dialect, writer.scope.names.take(ref.name)
        writer.function.declare(name)
        c_type = dialect.memory_type(ref.dtype)
        # gcc 12 sets arrays of 24 or 48 bytes by stores that need an alignment of 16, and aligns its stack only for 32.
        alignment = ALIGNMENT if ref.bytes >= ALIGNMENT else 32 if ref.bytes >= 16 else 0
        if home is Home.STACK and ref.span == 1:
            writer.line(dialect.local_array(ref.dtype, name, ref.span, alignment))
        elif home is Home.STACK:
            # Reading the array itself, gcc does not see that it is not the small one that a loop beside writes, which
            # then stays in memory; and it takes an element read under a test for the last one elsewhere (bug 113831).
            array = writer.scope.names.take(f"{ref.name}_array")
            writer.line(dialect.local_array(ref.dtype, array, ref.span, alignment))
            writer.line(f"{c_type} *{dialect.restrict}{name} = {array};")
        else:
            source = f"{writer.helpers.need('allocate')}({ref.span} * sizeof({c_type}))"
            writer.line(f"{c_type} *{name} = {source};")
            writer.helpers.headers.add("stdlib")
            stack.callback(writer.line, f"free({name});")
        return Pointer.of(name, ref).whole()
