"""Hints to the C compiler from the tags `vector` and `unroll`: how wide vectors are, and what to do with a loop."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from stripe.emit.loops.nest import Loop
from stripe.ir import Block, Index, Special, separates, walk

_MOST = 65534
"""The largest count that gcc takes."""


_WIDE = 64
"""Bytes of vectors that gcc avoids by itself on most processors that have them."""


_REGISTERS = 32
"""Vectors that the registers of the largest machines hold."""


def width_lines(entry: Block) -> list[str]:
    """Preprocessor lines for the file: where a block is tagged with vectors of 64 bytes, vectors of that width.

    Accumulators of a tile that fits the registers of that width fit none of half of it.
    """
    if not any(_vector_bytes(block) >= _WIDE for _, block in walk(entry)):
        return []
    return [
        "#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)",
        f'#pragma GCC target("prefer-vector-width={8 * _WIDE}")',
        "#endif",
        "",
    ]


def _vector_bytes(block: Block) -> int:
    return _lanes(block) * max((ref.dtype.bytes for ref in block.refinements), default=0)


def _lanes(block: Block) -> int:
    """Elements of a vector of the block, as a pass has tagged it; 0 where none has."""
    lanes = block.tags.get("vector")
    return lanes if isinstance(lanes, int) and not isinstance(lanes, bool) and lanes > 0 else 0


def pragma_lines(block: Block, index: Index) -> list[str]:
    """Preprocessor lines for the loop over `index`, the innermost of `block`.

    `vector` allows vector instructions where iterations write different elements, so that no sum is reordered;
    `unroll` (by its value, else whole) unrolls.
    """
    if "vector" in block.tags and separates(block, (index.name,)) and not _has_inner(block):
        return ["#ifdef _OPENMP", "#pragma omp simd", "#endif"]
    if "unroll" in block.tags:
        value = block.tags.get("unroll")
        wanted = value if isinstance(value, int) and not isinstance(value, bool) else index.range
        return _unrolled(max(1, min(wanted, index.range, _MOST)))
    return []


def tile_lines(block: Block, loops: Sequence[tuple[Index, Loop]], level: int) -> list[str]:
    """Preprocessor lines for number `level` of `loops`, which is not the innermost of a block of vectors: it is written
    out where it and those inside walk a tile of few results, within a loop that sums, so that registers hold the tile.

    Otherwise gcc keeps the tile in memory: at -O2 always, at -O3 where it takes another order of the loops for better.
    """
    if not _lanes(block) or _has_inner(block):
        return []
    moving = {name for ref in block.outputs for access in ref.access for name in access.names()}
    outside, inside = loops[:level], loops[level:]
    is_tile = all(loop.is_plain and index.name in moving for index, loop in inside)
    if not is_tile or all(index.name in moving for index, _ in outside):
        return []
    vectors = -(-inside[-1][0].range // _lanes(block))
    copies = vectors * prod(index.range for index, _ in inside[:-1])
    return _unrolled(inside[0][0].range) if copies <= _REGISTERS else []


def _unrolled(count: int) -> list[str]:
    return [
        "#if defined(__clang__)",
        f"#pragma clang loop unroll_count({count})",
        "#elif defined(__GNUC__)",
        f"#pragma GCC unroll {count}",
        "#endif",
    ]


def _has_inner(block: Block) -> bool:
    return any(isinstance(statement, Block | Special) for statement in block.statements)
