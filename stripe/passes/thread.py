"""The pass `thread`."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Index, unfolded
from stripe.ir.frozen import replace
from stripe.passes.base import BlockPass, PassContext, PassExample, PassGroup, Refusal, Reqs
from stripe.rewrite.tile import tile_block


class Thread(BlockPass):
    """Splits a block over threads: an outer block with at most `threads` points, each the work of one thread.

    `{ "reqs": ["conv"], "threads": 4 }`:

        #conv block [x:64, y:6] (         #conv #thread block [x:4, y:1] (
            out O[x, y]             =>        out O[16*x, 0] (16:6, 6:1)
        ) { … }                           ) {
                                            0: #thread_inner block [x:16, y:6] (
                                                out O[x, y]

    Only indices that every output moves with are split, so that no two threads meet in an element. Work goes first to
    the index whose range loses least by rounding up; among equals to the largest range, then to the first.
    """

    pass_name: ClassVar[str] = "thread"
    refused: ClassVar[str] = "not threaded"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[kernel],threads=4")
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs
    threads: int = Field(ge=1, description="threads to use at most")
    exclude: tuple[str, ...] = Field(default=(), description="leave blocks alone that have one of these tags")
    interleave: bool = Field(
        default=False, description="a thread takes every n-th element, not a contiguous part"
    )

    def rewrite(self, block: Block, context: PassContext) -> Block | Refusal:
        if block.words.has_any((*self.exclude, "thread")):
            return block
        block = max(unfolded(block), block, key=lambda b: prod(self._distribute(b, context).values()))
        counts = self._distribute(block, context)
        if all(count == 1 for count in counts.values()):
            names = ", ".join(f"{i.name}:{i.range}" for i in block.iterated) or "none"
            return Refusal(f"no index moves all outputs (indices {names})")
        tiles = {i.name: -(-i.range // counts.get(i.name, 1)) for i in block.iterated}
        tiled = tile_block(block, tiles, interleave=self.interleave, inner_set=["thread_inner"])
        split = ", ".join(f"{index.name}:{index.range}" for index in tiled.iterated if index.range > 1)
        context.applied(block, f"{tiled.points} of {self.threads} threads: {split}")
        return replace(tiled, tags=tiled.tags.add("thread"))

    def _distribute(self, block: Block, context: PassContext) -> dict[str, int]:
        """Threads per index: greedy, the split that wastes least first."""
        left = self.threads
        counts: dict[str, int] = {}
        free = [block.index(name) for name in context.separating(block)]
        while left > 1 and free:
            best = max(free, key=lambda index: _gain(index, left))
            counts[best.name] = _tiles(best, left)
            left //= counts[best.name]
            free.remove(best)
        return counts


def _tiles(index: Index, threads: int) -> int:
    """The number of tiles of an index over at most `threads`: fewer where rounding up leaves the last without work."""
    return -(-index.range // -(-index.range // min(index.range, threads)))


def _gain(index: Index, threads: int) -> tuple[float, int]:
    count = _tiles(index, threads)
    tile = -(-index.range // count)
    return (index.range / (tile * count) * count, index.range)
