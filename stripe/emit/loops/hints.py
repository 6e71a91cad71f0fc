"""Hints for loops from the tags `vector` and `unroll`: vector instructions, and copies of a loop's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stripe.emit.loops.bounds import ForLoop
from stripe.ir import Block, Index, Special, separates, walk

_MOST_COPIES = 65534
"""The largest count that gcc takes."""


@dataclass(frozen=True, slots=True)
class SimdHint:
    """Iterations may share vector instructions: they write different elements, so that no sum is reordered."""


@dataclass(frozen=True, slots=True)
class UnrollHint:
    """`count` copies of the body."""

    count: int


Hint: TypeAlias = SimdHint | UnrollHint


def hints_of(
    block: Block, loops: Sequence[tuple[Index, ForLoop]], buffers: Mapping[str, object]
) -> tuple[Hint | None, ...]:
    """A hint for each of the loops of `block`, from the outermost in. `buffers`: those of the sources it writes."""
    return (*(None for _ in loops[1:]), *(_inner_hint(block, index, buffers) for index, _ in loops[-1:]))


def _inner_hint(block: Block, index: Index, buffers: Mapping[str, object]) -> Hint | None:
    """The hint for the innermost loop. `unroll` says how far by its value, else the whole loop is unrolled."""
    inner = any(isinstance(statement, Block | Special) for statement in block.statements)
    if "vector" in block.tags and separates(block, (index.name,), buffers) and not inner:
        return SimdHint()
    if "unroll" not in block.tags:
        return None
    value = block.tags.get("unroll")
    wanted = value if isinstance(value, int) and not isinstance(value, bool) else index.range
    return UnrollHint(max(1, min(wanted, index.range, _MOST_COPIES)))


def widest_vector(entry: Block) -> int:
    """Bytes of the largest vector that a block is tagged with."""
    return max(
        block.tags.lanes("vector") * max((ref.dtype.bytes for ref in block.refinements), default=0)
        for _, block in walk(entry)
    )
