"""Buffers that several tiles in flight use at one time, because transfers fill or empty them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from stripe.ir import Block, Constant, LiveRange, Load, Path, Statement, Store, walk
from stripe.ir.frozen import replace


def pipelined_blocks(entry: Block) -> dict[Path, Block]:
    """The blocks that have several tiles in flight, by path."""
    return {path: block for path, block in walk(entry) if _in_flight(block) > 1}


def with_copies(live: LiveRange, pipelined: Mapping[Path, Block]) -> LiveRange:
    """The live range with a copy for each tile in flight, where a transfer uses the buffer; one with an address has its
    copies."""
    block = pipelined.get(live.path)
    if block is None or live.ref.offset is not None or not _is_moved(live, live.path, block):
        return live
    copies = max(live.ref.copies, _in_flight(block))
    return live if copies == live.ref.copies else replace(live, ref=replace(live.ref, copies=copies))


def pairs_in_flight(
    members: Sequence[LiveRange], pipelined: Mapping[Path, Block]
) -> Iterator[tuple[int, int]]:
    """The numbers of buffers of which one tile may use the first while another one uses the second."""
    for path, block in pipelined.items():
        inside = [
            (number, _is_moved(live, path, block))
            for number, live in enumerate(members)
            if live.path[: len(path)] == path
        ]
        for (first, filled), (second, emptied) in combinations(inside, 2):
            if filled or emptied:
                yield first, second


def _in_flight(block: Block) -> int:
    return min(block.pipeline_depth or 1, block.points)


def _is_moved(live: LiveRange, path: Path, block: Block) -> bool:
    """Whether a statement of the block at `path` that may be a transfer uses the buffer."""
    return any(_may_move(block.statements[number]) for number in live.uses[len(path) - 1])


def _may_move(statement: Statement) -> bool:
    """Whether a block computes nothing and names a unit."""
    if not isinstance(statement, Block):
        return False
    parts = [part for _, part in walk(statement)]
    moves = (Load, Store, Constant, Block)
    return any(part.location for part in parts) and all(
        isinstance(inner, moves) for part in parts for inner in part.statements
    )
