"""The pass `reorder_blocks`."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from pydantic import Field

from stripe.ir import Agg, Block, Program, Statement, keep_statements
from stripe.passes.base import Pass, PassContext, Reqs
from stripe.passes.nests import rewrite_nests
from stripe.poly import Nest, statement_deps


class ReorderBlocks(Pass):
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

    reqs: Reqs = ("main",)
    init_tags: tuple[str, ...] = Field(
        default=("init",), description="blocks with one of these tags go first; none do where empty"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        def reorder(nest: Nest) -> Block:
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

        return rewrite_nests(program, self.reqs, reorder)

    def _ordered(self, nest: Nest) -> list[int]:
        statements = nest.block.statements
        exact = statement_deps(nest, reduced=False)
        before = [{*own, *found} for own, found in zip((s.deps for s in statements), exact, strict=True)]
        waiting = list(range(len(statements)))
        done: set[int] = set()
        order: list[int] = []
        while waiting:
            ready = [number for number in waiting if before[number] <= done]
            chosen = self._first_init(ready, statements)
            if chosen is None and order:
                last = statements[order[-1]]
                chosen = next((n for n in ready if follows(last, statements[n])), None)
            number = ready[0] if chosen is None else chosen
            order.append(number)
            done.add(number)
            waiting.remove(number)
        return order

    def _first_init(self, ready: list[int], statements: tuple[Statement, ...]) -> int | None:
        return next((n for n in ready if statements[n].tags.has_any(self.init_tags)), None)


def follows(producer: Statement, consumer: Statement) -> bool:
    """Whether `consumer` reads or merges into what `producer` writes, and both write boxes of one shape."""
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
    """The boxes that a block writes, over all its points; dimensions of size 1 do not count."""
    intervals = block.intervals()
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
