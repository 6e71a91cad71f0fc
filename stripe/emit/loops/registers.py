"""Allocations in registers: the vectors by which tiles touch them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from stripe.emit.loops.plan import BlockPlan, plan_block
from stripe.emit.loops.scope import CodeScope, Pointer
from stripe.emit.loops.tiles import distinct_vectors, vectors_of
from stripe.ir import Block, Refinement, Vector


def register_vectors(
    ref: Refinement, users: Sequence[Block], scope: CodeScope, *, threads: bool, reorder: bool
) -> tuple[list[Vector], frozenset[Vector]] | None:
    """The vectors by which `users` touch an allocation, and those that they read; None where tiles of vectors do not
    touch it, or not at constant elements."""
    scope.areas[ref.name] = replace(Pointer.of(ref.name, ref), registers={}).whole()
    for overlapping in (True, False):
        plans = [
            plan_block(user, scope, threads=threads, reorder=reorder, overlapping=overlapping)
            for user in users
        ]
        plans = [plan for plan in plans if not plan.empty]
        touched = [pair for plan in plans for pair in _touched(ref, plan)]
        if any(vectors is None for _, vectors in touched):
            return None
        sets = [(view, frozenset(vectors or ())) for view, vectors in touched]
        vectors = distinct_vectors([vector for _, each in sets for vector in each])
        if vectors is not None and all(_agree(vectors, each) for view, each in sets if view.dir.writes):
            return vectors, frozenset(vector for view, each in sets if view.dir.reads for vector in each)
    return None


def _touched(ref: Refinement, plan: BlockPlan) -> Iterator[tuple[Refinement, list[Vector] | None]]:
    """The views of an allocation in a block, and the vectors that its tile touches by each."""
    for view in plan.block.refinements:
        if view.source == ref.name:
            tile = None if plan.parallel else plan.tile
            yield view, None if tile is None else vectors_of(tile, plan.scope.areas[view.name])


def _agree(vectors: Sequence[Vector], written: AbstractSet[Vector]) -> bool:
    """Whether all vectors that hold an element of those `written` together are among them."""
    elements = {element for vector in written for element in range(vector.first, vector.end)}
    return all(
        vector in written or elements.isdisjoint(range(vector.first, vector.end)) for vector in vectors
    )
