"""Hints to the C compiler from the tags `vector` and `unroll`: how wide vectors are, and what to do with a loop."""

from __future__ import annotations

from stripe.emit.parallel import separates
from stripe.ir import Block, Index, Special, walk

_MOST = 65534
"""The largest count that gcc takes."""


_WIDE = 64
"""Bytes of vectors that gcc avoids by itself on most processors that have them."""


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
    lanes = block.tags.get("vector")
    if not isinstance(lanes, int) or isinstance(lanes, bool):
        return 0
    return lanes * max((ref.dtype.bytes for ref in block.refinements), default=0)


def pragma_lines(block: Block, index: Index) -> list[str]:
    """Preprocessor lines for the loop over `index`, the innermost of `block`.

    `vector` allows vector instructions where iterations write different elements, so that no sum is reordered;
    `unroll` (by its value, else whole) unrolls.
    """
    if "vector" in block.tags and separates(block, index.name) and not _has_inner(block):
        return ["#ifdef _OPENMP", "#pragma omp simd", "#endif"]
    if "unroll" in block.tags:
        value = block.tags.get("unroll")
        wanted = value if isinstance(value, int) and not isinstance(value, bool) else index.range
        count = max(1, min(wanted, index.range, _MOST))
        return [
            "#if defined(__clang__)",
            f"#pragma clang loop unroll_count({count})",
            "#elif defined(__GNUC__)",
            f"#pragma GCC unroll {count}",
            "#endif",
        ]
    return []


def _has_inner(block: Block) -> bool:
    return any(isinstance(statement, Block | Special) for statement in block.statements)
