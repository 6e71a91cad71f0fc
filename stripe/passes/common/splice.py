"""Replacing statements by several others, with the dependences kept right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stripe.ir import Block, Statement


def splice(block: Block, parts: Mapping[int, Sequence[Statement]]) -> Block:
    """`block` with statement n replaced by the statements `parts[n]`.

    The parts do not depend on each other and get the dependences of what they replace; what depended on that depends
    on all of them. The same object when every part is what stood there.
    """
    if all(len(new) == 1 and new[0] is block.statements[number] for number, new in parts.items()):
        return block
    places: list[range] = []
    result: list[Statement] = []
    for number, statement in enumerate(block.statements):
        deps = _moved(statement.deps, places)
        new = parts.get(number, (statement,))
        places.append(range(len(result), len(result) + len(new)))
        result += [part if part.deps == deps else replace(part, deps=deps) for part in new]
    return replace(block, statements=tuple(result))


def _moved(deps: Iterable[int], places: Sequence[range]) -> tuple[int, ...]:
    return tuple(sorted({place for dep in deps for place in places[dep]}))
