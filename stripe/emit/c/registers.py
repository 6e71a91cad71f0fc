"""Registers in C: allocations as variables of vectors, where tiles alone touch them."""

from __future__ import annotations

from dataclasses import replace

from stripe.emit.c.options import COptions
from stripe.emit.c.vectors import splat, vector_type
from stripe.emit.c.writer import Writer
from stripe.emit.loops.registers import register_vectors
from stripe.emit.loops.scope import Pointer
from stripe.ir import Agg, Block, beginnings, loaded_refs, reads_of, writes_of


def declare_registers(block: Block, writer: Writer, options: COptions) -> set[str]:
    """Declares the allocations of `block` that registers hold, and enters them into the areas of the scope. Gives their
    names: those that only tiles of vectors touch, at constant places.
    """
    users: dict[str, list[Block] | None] = {}
    for statement in block.statements:
        tile = statement if isinstance(statement, Block) and statement.tags.lanes("vector") > 0 else None
        for name in (*reads_of(statement), *writes_of(statement)):
            seen = users.setdefault(name, [])
            users[name] = [*seen, tile] if tile is not None and seen is not None else None
    candidates = [ref for ref in block.allocs if users.get(ref.name)]
    if not candidates:
        return set()
    others = {ref.name: Pointer.of(ref.name, ref).whole() for ref in block.allocs}
    loaded_inside, begins = loaded_refs(block), beginnings(block)
    held: set[str] = set()
    for ref in candidates:
        areas = {**others, **writer.scope.areas}
        found = register_vectors(
            ref,
            users[ref.name] or [],
            replace(writer.scope, areas=areas),
            threads=options.openmp,
            reorder=options.reorder,
        )
        if found is None or not found[0]:
            continue
        vectors, read = found
        names = {vector[:2]: writer.scope.names.take(ref.name) for vector in vectors}
        area = replace(Pointer.of(ref.name, ref), registers=names).whole()
        writer.scope.areas[ref.name] = area
        held.add(ref.name)
        dtype, agg = ref.dtype, begins[ref.name]
        writer.scope.fresh.update(names.values())
        for vector in vectors:
            variable, start = names[vector[:2]], ""
            if agg is not Agg.ASSIGN:
                value = writer.memory_literal(agg.identity(dtype), dtype)
                start = f" = {splat(value, dtype, vector.lanes, writer)}"
            writer.line(f"{vector_type(dtype, vector.lanes, writer)} {variable}{start};")
            if ref.name not in loaded_inside or vector not in read:
                writer.line(f"(void){variable};")
    return held
