"""The order of the statements of a block by their dependences."""

from __future__ import annotations

from stripe.ir import Block


def closure(block: Block) -> list[int]:
    """For each statement the statements that run before it by dependences, as a bit mask: bit n is statement n."""
    before: list[int] = []
    for statement in block.statements:
        mask = 0
        for dep in statement.deps:
            mask |= before[dep] | 1 << dep
        before.append(mask)
    return before


def is_in(statement: int, mask: int) -> bool:
    """Whether a bit mask of statements has one."""
    return bool(mask >> statement & 1)
