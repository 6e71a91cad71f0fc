"""Registers in C: allocations as variables of vectors, where tiles alone touch them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from stripe.emit.c.options import COptions
from stripe.emit.c.vectors import splat, vector_type
from stripe.emit.c.writer import Writer
from stripe.emit.loops.plan import plan_block
from stripe.emit.loops.scope import CodeScope, Pointer
from stripe.emit.loops.tiles import Vector, partition, vectors_of
from stripe.ir import Agg, Block, Refinement, beginnings, lanes_of, loaded_refs, reads_of, writes_of


def declare_registers(block: Block, writer: Writer, options: COptions) -> set[str]:
    """Declares the allocations of `block` that registers hold, and enters them into the areas of the scope. Gives their
    names: those that only tiles of vectors touch, at constant places.
    """
    users: dict[str, list[Block] | None] = {}
    for statement in block.statements:
        tiled = isinstance(statement, Block) and lanes_of(statement.tags.get("vector")) > 0
        for name in (*reads_of(statement), *writes_of(statement)):
            seen = users.setdefault(name, [])
            users[name] = (
                [*seen, statement] if tiled and isinstance(statement, Block) and seen is not None else None
            )
    candidates = [ref for ref in block.allocs if users.get(ref.name)]
    if not candidates:
        return set()
    others = {ref.name: Pointer.of(ref.name, ref).whole() for ref in block.allocs}
    loaded_inside, begins = loaded_refs(block), beginnings(block)
    held: set[str] = set()
    for ref in candidates:
        areas = {**others, **writer.scope.areas}
        scope = replace(writer.scope, areas=areas)
        vectors = _register_vectors(ref, users[ref.name] or [], scope, options)
        if not vectors:
            continue
        names = {(first, lanes): writer.scope.names.take(ref.name) for first, lanes, _ in vectors}
        area = replace(Pointer.of(ref.name, ref), registers=names).whole()
        writer.scope.areas[ref.name] = area
        held.add(ref.name)
        dtype, agg = ref.dtype, begins[ref.name]
        writer.scope.fresh.update(names.values())
        for (_, lanes), variable in names.items():
            start = ""
            if agg is not Agg.ASSIGN:
                start = f" = {splat(writer.memory_literal(agg.identity(dtype), dtype), dtype, lanes, writer)}"
            writer.line(f"{vector_type(dtype, lanes, writer)} {variable}{start};")
            if ref.name not in loaded_inside:
                writer.line(f"(void){variable};")
    return held


def _register_vectors(
    ref: Refinement, users: Sequence[Block], scope: CodeScope, options: COptions
) -> list[Vector] | None:
    """The vectors in which tiles touch an allocation; None where one cannot."""
    scope.areas[ref.name] = replace(Pointer.of(ref.name, ref), registers={}).whole()
    for repeats in (True, False):
        vectors: list[Vector] = []
        written: list[set[Vector]] = []
        for user in users:
            plan = plan_block(user, scope, threads=options.openmp, reorder=options.reorder, repeats=repeats)
            if plan.empty:
                continue
            if plan.tile is None or plan.parallel:
                return None
            for view in user.refinements:
                found = vectors_of(plan.tile, plan.scope.areas[view.name]) if view.source == ref.name else []
                if found is None:
                    return None
                vectors += found
                if view.dir.writes:
                    written.append(set(found))
        parts = partition(vectors)
        if parts is not None and all(_agree(parts, each) for each in written):
            return parts
    return None


def _agree(vectors: Sequence[Vector], written: AbstractSet[Vector]) -> bool:
    """Whether all vectors that hold an element of those `written` together are among them."""
    elements = {element for first, lanes, _ in written for element in range(first, first + lanes)}
    return all(
        vector in written or elements.isdisjoint(range(vector[0], vector[0] + vector[1]))
        for vector in vectors
    )
