"""The pass `reorder_blocks`."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import ClassVar

from stripe.ir import Agg, Block, Nest, Statement, keep_statements
from stripe.passes.base import NestPass, PassContext, PassExample, PassGroup, Reqs
from stripe.poly import statement_deps


class ReorderBlocks(NestPass):
    """Puts a producer directly before a consumer with the same output shape, where dependences allow.

        0: block [x:8] ( in I[x], out T[x] ) …         0: #init block [y:4] ( out P[y] ) …
        1: #init block [y:4] ( out P[y] ) …       =>   1: block [x:8] ( in I[x], out T[x] ) …
        2: block [y:3] ( in J[y], out P[y]:add ) …     2: block [x:8] ( in T[x], out O[x] ) …
        3: block [x:8] ( in T[x], out O[x] ) …         3: block [y:3] ( in J[y], out P[y]:add ) …

    List scheduling under exact dependences and those that the statements declare: blocks that fill untouched elements
    go first, as soon as they may; after each block comes, of those that may run, one that reads what it wrote and
    writes as large a shape; otherwise the first in program order. Fusion then finds neighbours.
    """

    pass_name: ClassVar[str] = "reorder_blocks"
    group: ClassVar[PassGroup] = PassGroup.CLEANING
    example: ClassVar[PassExample] = PassExample(programs=("reorder_blocks/neighbours.tile",))

    reqs: Reqs = ("main",)

    def rewrite(self, nest: Nest, context: PassContext) -> Block:
        order = self._ordered(nest)
        moved = sum(1 for place, number in enumerate(order) if place != number)
        if not moved:
            return nest.block
        before = _neighbours(nest.block, range(len(order)))
        after = _neighbours(nest.block, order)
        context.applied(
            nest.block,
            f"{moved} of {len(order)} statements moved: {after} consumers follow their producer, {before} did",
        )
        return keep_statements(nest.block, order)

    def _ordered(self, nest: Nest) -> list[int]:
        statements = nest.block.statements
        exact = statement_deps(nest)
        before = [{*own.deps, *found} for own, found in zip(statements, exact, strict=True)]
        after: list[list[int]] = [[] for _ in statements]
        for number, deps in enumerate(before):
            for dep in deps:
                after[dep].append(number)
        inits = ["init" in statement.tags for statement in statements]
        ready = [(not inits[n], n) for n, deps in enumerate(before) if not deps]
        heapify(ready)
        waiting = set(range(len(statements)))
        order: list[int] = []
        while waiting:
            number = self._next(order, ready, waiting, before, after, statements)
            order.append(number)
            waiting.remove(number)
            for later in after[number]:
                before[later].remove(number)
                if not before[later]:
                    heappush(ready, (not inits[later], later))
        return order

    @staticmethod
    def _next(
        order: list[int],
        ready: list[tuple[bool, int]],
        waiting: set[int],
        before: list[set[int]],
        after: list[list[int]],
        statements: tuple[Statement, ...],
    ) -> int:
        """A fill, else a consumer of the last statement with its shape, else the first that may run.

        `ready` may still hold blocks that a consumer's turn took already."""
        while ready[0][1] not in waiting:
            heappop(ready)
        if ready[0][0] and order:
            free = (n for n in after[order[-1]] if not before[n] and n in waiting)
            found = next((n for n in free if follows(statements[order[-1]], statements[n])), None)
            if found is not None:
                return found
        return heappop(ready)[1]


def follows(producer: Statement, consumer: Statement) -> bool:
    """Whether `consumer` reads or merges into an output of `producer`, and both write boxes of one shape."""
    if not isinstance(producer, Block) or not isinstance(consumer, Block):
        return False
    written = {ref.source for ref in producer.outputs}
    reads = any(
        ref.source in written
        for ref in consumer.refinements
        if ref.dir.reads or (ref.dir.writes and ref.agg is not Agg.ASSIGN)
    )
    return reads and bool(_output_shapes(producer) & _output_shapes(consumer))


def _output_shapes(block: Block) -> set[tuple[int, ...]]:
    """The boxes that a block writes, over all its points; dimensions of size 1 do not count. What is passed in moves
    a box and does not make it larger.
    """
    fixed = {name: (0, 0) for index in block.passed if index.affine for name in index.affine.names()}
    intervals = block.intervals(fixed)
    shapes: set[tuple[int, ...]] = set()
    for ref in block.outputs:
        bounds = [affine.bounds(intervals) for affine in ref.access]
        extents = [high - low + dim.size for (low, high), dim in zip(bounds, ref.dims, strict=True)]
        shapes.add(tuple(extent for extent in extents if extent > 1))
    return shapes


def _neighbours(block: Block, order: list[int] | range) -> int:
    """How many statements stand directly behind a producer of theirs with the same output shape."""
    pairs = pairwise(order)
    return sum(1 for a, b in pairs if follows(block.statements[a], block.statements[b]))
