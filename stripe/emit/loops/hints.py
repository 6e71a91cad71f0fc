"""Hints for loops from the tags `vector` and `unroll`: vector instructions, and copies of a loop's body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from stripe.emit.loops.bounds import ForLoop
from stripe.ir import Block, Index, Special, separates, walk

_MOST_COPIES = 65534
"""The largest count that gcc takes."""
_REGISTERS = 32
"""Vectors that the registers of the largest machines hold."""


@dataclass(frozen=True, slots=True)
class SimdHint:
    """Iterations may share vector instructions: they write different elements, so that no sum is reordered."""


@dataclass(frozen=True, slots=True)
class UnrollHint:
    """`count` copies of the body."""

    count: int


Hint: TypeAlias = SimdHint | UnrollHint


def hints_of(block: Block, loops: Sequence[tuple[Index, ForLoop]]) -> tuple[Hint | None, ...]:
    """A hint for each of the loops of `block`, from the outermost in."""
    if not loops:
        return ()
    outer = [_tile_hint(block, loops, level) for level in range(len(loops) - 1)]
    return (*outer, _inner_hint(block, loops[-1][0]))


def _inner_hint(block: Block, index: Index) -> Hint | None:
    """The hint for the innermost loop. `unroll` says how far by its value, else the whole loop is unrolled."""
    if "vector" in block.tags and separates(block, (index.name,)) and not _has_inner(block):
        return SimdHint()
    if "unroll" not in block.tags:
        return None
    value = block.tags.get("unroll")
    wanted = value if isinstance(value, int) and not isinstance(value, bool) else index.range
    return UnrollHint(max(1, min(wanted, index.range, _MOST_COPIES)))


def _tile_hint(block: Block, loops: Sequence[tuple[Index, ForLoop]], level: int) -> Hint | None:
    """Unrolls a loop of a block of vectors that, with those inside, walks a tile of few results within a loop that
    sums, so that registers hold the tile.

    Otherwise gcc keeps the tile in memory: at -O2 always, at -O3 where it takes another order of the loops for better.
    """
    lanes = _lanes(block)
    if not lanes or _has_inner(block):
        return None
    moving = {name for ref in block.outputs for access in ref.access for name in access.names()}
    outside, inside = loops[:level], loops[level:]
    is_tile = all(loop.is_plain and index.name in moving for index, loop in inside)
    if not is_tile or all(index.name in moving for index, _ in outside):
        return None
    copies = -(-inside[-1][0].range // lanes) * prod(index.range for index, _ in inside[:-1])
    return UnrollHint(inside[0][0].range) if copies <= _REGISTERS else None


def widest_vector(entry: Block) -> int:
    """Bytes of the largest vector that a block is tagged with."""
    return max(
        _lanes(block) * max((ref.dtype.bytes for ref in block.refinements), default=0)
        for _, block in walk(entry)
    )


def _lanes(block: Block) -> int:
    """Elements of a vector of the block, as a pass has tagged it; 0 where none has."""
    lanes = block.tags.get("vector")
    return lanes if isinstance(lanes, int) and not isinstance(lanes, bool) and lanes > 0 else 0


def _has_inner(block: Block) -> bool:
    return any(isinstance(statement, Block | Special) for statement in block.statements)
