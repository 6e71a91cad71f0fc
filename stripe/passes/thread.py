"""The pass `thread`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import Block, Index, Program, rewrite_matching, separating, with_entry, with_statements
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs, TagSet
from stripe.rewrite.tile import tile_block


class Thread(Pass):
    """Splits a block over threads: an outer block with at most `threads` points, each the work of one thread.

    `{ "reqs": ["conv"], "threads": 4 }`:

        #conv block [x:64, y:6] ( … )    =>    #conv #thread block [x:4, y:1] ( … ) {
                                                 0: #thread_inner block [x:16, y:6] ( … ) }

    Only indices that every output moves with are split, so that no two threads meet in an element. Work goes first to
    the index whose range loses least by rounding up; among equals to the largest range, then to the first.
    """

    pass_name: ClassVar[str] = "thread"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[kernel],threads=4")
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs
    threads: int = Field(ge=1, description="threads to use at most")
    outer_set: TagSet = Field(default=("thread",), description="tags of the block over threads")
    inner_set: TagSet = Field(default=("thread_inner",), description="tags of the block of one thread")
    exclude: tuple[str, ...] = Field(default=(), description="leave blocks alone that have one of these tags")
    interleave: bool = Field(
        default=False, description="a thread takes every n-th element, not a contiguous part"
    )
    only_po2: bool = Field(default=False, description="threads per index are powers of two")

    def run(self, program: Program, context: PassContext) -> Program:
        def split(block: Block) -> Block:
            if block.tags.has_any((*self.exclude, *self.outer_set)):
                return block
            counts = self._distribute(block)
            if all(count == 1 for count in counts.values()):
                names = ", ".join(f"{i.name}:{i.range}" for i in block.iterated) or "none"
                context.missed(block, f"not threaded: no index moves all outputs (indices {names})")
                return block
            tiles = {i.name: -(-i.range // counts.get(i.name, 1)) for i in block.iterated}
            tiled = tile_block(block, tiles, interleave=self.interleave)
            inner = next(iter(tiled.blocks))
            inner = replace(inner, tags=inner.tags.add(*self.inner_set))
            total = 1
            for index in tiled.iterated:
                total *= index.range
            context.applied(block, f"{total} of {self.threads} threads: {_counts_text(tiled)}")
            return replace(with_statements(tiled, [inner]), tags=tiled.tags.add(*self.outer_set))

        return with_entry(program, rewrite_matching(program.entry, self.reqs, split))

    def _distribute(self, block: Block) -> dict[str, int]:
        """Threads per index: greedy, the split that wastes least first."""
        left = self.threads
        counts: dict[str, int] = {}
        free = [block.index(name) for name in separating(block)]
        while left > 1 and free:
            best = max(free, key=lambda index: _gain(index, self._count(index, left)))
            counts[best.name] = self._count(best, left)
            left //= counts[best.name]
            free.remove(best)
        return counts

    def _count(self, index: Index, left: int) -> int:
        count = min(index.range, left)
        if self.only_po2:
            count = 1 << (count.bit_length() - 1)
        return -(-index.range // -(-index.range // count))


def _gain(index: Index, count: int) -> tuple[float, int]:
    tile = -(-index.range // count)
    return (index.range / (tile * count) * count, index.range)


def _counts_text(tiled: Block) -> str:
    return ", ".join(f"{index.name}:{index.range}" for index in tiled.iterated if index.range > 1)
