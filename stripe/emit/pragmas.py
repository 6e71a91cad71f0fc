"""Hints to the C compiler before the innermost loop of a block, from the tags `vector` and `unroll`."""

from __future__ import annotations

from stripe.emit.parallel import separates
from stripe.ir import Block, Index, Special

_MOST = 65534
"""The largest count that gcc takes."""


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
