"""The pass `reorder_indexes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from stripe.ir import (
    Block,
    Index,
    Program,
    Refinement,
    element_offset,
    rewrite_blocks,
    step,
    walk,
)
from stripe.ir.frozen import replace
from stripe.ir.tags import DOT_TILE
from stripe.passes.base import BlockPass, DependsOn, PassContext, PassGroup, Reqs, matching


class ReorderIndexes(BlockPass):
    """Orders the indices of a block so that the inner loops of emitted code walk memory with small strides.

        block [ci:32, x:64] ( in I[x, ci] i8(1:32, 1:1) )    =>    block [x:64, ci:32] ( … )

    With `order`, the named indices go last, in that order. Otherwise indices sort by `by`, largest first; an index that
    nothing uses goes first.

    - `step`: the bytes by which one step moves all views together.
    - `tile`: the bytes of the views that it moves at all, so that the innermost loop keeps the largest tiles in the
      cache and fetches the smallest anew.
    - `runs`: as `tile`, but the index goes last with which blocks touch the fewest runs of memory: a view that it does
      not move is in the nearest cache already, and one whose runs it continues is read ahead. Not so an index whose
      blocks together touch more than `cache_bytes`, and would be fetched from further away again and again.
    - `vector`: as `step`, but an index goes last that moves each output by one element and each input by one or none,
      and those that no output moves with go first: the results stay in registers, in vectors. Where no index is like
      that, those that no output moves with go last: a register holds the sum. In a block with the tag `dot_tile` they
      go first, the one with the smallest steps behind the others: the results are straight code inside.

    The points of a block have no order, so that the meaning stays.
    """

    pass_name: ClassVar[str] = "reorder_indexes"
    group: ClassVar[PassGroup] = PassGroup.CLEANING

    reqs: Reqs = ("all",)
    order: tuple[str, ...] = Field(default=(), description="indices to put last, innermost at the end")
    by: Annotated[Literal["step", "tile", "runs", "vector"], DependsOn("order", absent=True)] = Field(
        default="step",
        description="without `order`: the sort key, by bytes that a step moves, by bytes of views, by runs of memory, "
        "or for vectors",
    )
    cache_bytes: int = Field(
        default=0,
        ge=0,
        description="for `runs`: the cache that holds the elements of the innermost loop; 0: no limit",
    )
    recursive: bool = Field(default=True, description="also in the blocks inside a match")

    def run(self, program: Program, context: PassContext) -> Program:
        blocks = [inner for block in matching(program, self.reqs) for _, inner in walk(block)]
        names = (index.name for block in blocks for index in block.iterated)
        context.unknown_names("order", "index", self.order, names)
        return super().run(program, context)

    def rewrite(self, block: Block, context: PassContext) -> Block:
        def reorder(inner: Block) -> Block:
            ordered = self._sorted(inner)
            if self.by == "runs" and not self.order:
                ordered = _longest_runs_last(inner, ordered, self.cache_bytes)
            indices = (*ordered, *inner.passed)
            if indices == inner.indices:
                return inner
            context.applied(inner, f"loops run {', '.join(i.name for i in indices if not i.is_passed)}")
            return replace(inner, indices=indices)

        return rewrite_blocks(block, reorder) if self.recursive else reorder(block)

    def _sorted(self, block: Block) -> list[Index]:
        if self.order:
            return sorted(
                block.iterated, key=lambda i: self.order.index(i.name) if i.name in self.order else -1
            )
        views = [ref for ref in block.refinements if not ref.is_alloc]
        places = [(ref, element_offset(ref)) for ref in views]
        moved: dict[str, int] = {}
        for index in block.iterated:
            if self.by in ("tile", "runs"):
                with_index = (r for r in views if any(index.name in a.names() for a in r.access))
                sizes = [ref.elements * ref.dtype.bytes for ref in with_index]
            else:
                sizes = [ref.dtype.bytes * abs(by) for ref, at in places if (by := step(at, index.name))]
            moved[index.name] = sum(sizes) if sizes else 1 << 62  # an unused index should be outside
        ordered = sorted(block.iterated, key=lambda index: -moved[index.name])
        if self.by != "vector":
            return ordered
        results = [at for ref, at in places if ref.dir.writes]
        summed = [index for index in ordered if all(step(at, index.name) == 0 for at in results)]
        free = [index for index in ordered if index not in summed]
        if DOT_TILE in block.tags:
            return [*summed, *free]
        inputs = [at for ref, at in places if not ref.dir.writes]
        for lane in reversed(free):
            moves_results = all(step(at, lane.name) == 1 for at in results)
            if lane.range > 1 and moves_results and all(step(at, lane.name) in (0, 1) for at in inputs):
                return [*summed, *(index for index in free if index is not lane), lane]
        return [*free, *summed]


def _longest_runs_last(block: Block, ordered: Sequence[Index], cache_bytes: int) -> Sequence[Index]:
    """The indices with that one last with which the block touches the fewest runs; of equal ones the last stays."""
    views = [(ref, _run(ref)) for ref in block.refinements if not ref.is_alloc]
    best, least = None, 0.0
    for index in reversed(ordered):
        runs, touched = 0.0, 0
        for ref, run in views:
            moved = any(index.name in affine.names() for affine in ref.access)
            by = step(ref, index.name)
            continues = not moved or (by is not None and abs(by) <= run)
            runs += ref.elements / run / (index.range if continues else 1)
            touched += ref.elements * ref.dtype.bytes * (index.range if moved else 1)
        if (not cache_bytes or touched <= cache_bytes) and (best is None or runs < least):
            best, least = index, runs
    return ordered if best is None else [*(index for index in ordered if index is not best), best]


def _run(ref: Refinement) -> int:
    """The elements of a view that lie behind one another."""
    run = 1
    for dim in sorted(ref.dims, key=lambda dim: abs(dim.stride)):
        if dim.size > 1:
            if abs(dim.stride) != run:
                break
            run *= dim.size
    return run
