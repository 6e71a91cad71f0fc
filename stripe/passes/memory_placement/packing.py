"""Addresses for buffers some of which may not overlap: dynamic storage allocation.

The problem is NP-hard. Several greedy orders with best fit come first; where none reaches the lower bound, a
branch-and-bound search over the order in which buffers are put down, limited by a number of steps so that the result
does not depend on the machine's speed, tries to improve on them. (An optimal placement always exists among those that
put each buffer, in some order, at the lowest address that its neighbours leave.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

SEARCH_STEPS = 20_000
"""Buffers put down by the search before it gives up: well under a second."""


@dataclass(frozen=True, slots=True)
class Item:
    """A buffer to put down: its size, and what its address is a multiple of, in bytes."""

    bytes: int
    alignment: int


def pack(
    items: Sequence[Item], conflicts: Sequence[Sequence[int]], fixed: Mapping[int, int], bound: int
) -> list[int]:
    """Addresses such that no two items in conflict overlap, with a small highest end.

    `fixed` holds the addresses that are given already. `bound` is a lower bound of the highest end: the search stops
    when it is reached.
    """
    orders: list[Callable[[int], tuple[int, ...]]] = [
        lambda n: (-items[n].bytes, n),
        lambda n: (-len(conflicts[n]), -items[n].bytes, n),
        lambda n: (-items[n].bytes * (1 + len(conflicts[n])), n),
        lambda n: (n,),
    ]
    free = [n for n in range(len(items)) if n not in fixed]
    best: list[int] = []
    for order in orders:
        found = _greedy(items, conflicts, fixed, sorted(free, key=order))
        if not best or _end(items, found) < _end(items, best):
            best = found
        if _end(items, best) <= bound:
            return best
    return _search(items, conflicts, fixed, free, best, bound)


def _end(items: Sequence[Item], offsets: Sequence[int]) -> int:
    return max((offset + item.bytes for offset, item in zip(offsets, items, strict=True)), default=0)


def _greedy(
    items: Sequence[Item], conflicts: Sequence[Sequence[int]], fixed: Mapping[int, int], order: Sequence[int]
) -> list[int]:
    placed = dict(fixed)
    for number in order:
        placed[number] = _best_fit(items, conflicts[number], placed, items[number])
    return [placed[number] for number in range(len(items))]


def _gaps(
    items: Sequence[Item], neighbours: Sequence[int], placed: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Free ranges between the neighbours that have an address, as start and end; the last has no end."""
    taken = sorted((placed[n], placed[n] + items[n].bytes) for n in neighbours if n in placed)
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in taken:
        if low > start:
            gaps.append((start, low))
        start = max(start, high)
    gaps.append((start, 1 << 80))
    return gaps


def _best_fit(items: Sequence[Item], neighbours: Sequence[int], placed: Mapping[int, int], item: Item) -> int:
    """The start of the smallest gap that holds the item."""
    fits: list[tuple[int, int]] = []
    for start, end in _gaps(items, neighbours, placed):
        address = -(-start // item.alignment) * item.alignment
        if address + item.bytes <= end:
            fits.append((end - address, address))
    return min(fits)[1]


def _search(
    items: Sequence[Item],
    conflicts: Sequence[Sequence[int]],
    fixed: Mapping[int, int],
    free: Sequence[int],
    best: list[int],
    bound: int,
) -> list[int]:
    """Depth-first over the item to put down next, always at its lowest address; cut where the best cannot be beaten."""
    steps = 0
    limit = _end(items, best)
    placed = dict(fixed)

    def visit(left: list[int], end: int) -> bool:
        """True when the search is over."""
        nonlocal steps, limit, best
        if not left:
            best, limit = [placed[n] for n in range(len(items))], end
            return end <= bound
        options = sorted((_lowest(items, conflicts[n], placed, items[n]), -items[n].bytes, n) for n in left)
        for address, _, number in options:
            steps += 1
            if steps > SEARCH_STEPS:
                return True
            reached = max(end, address + items[number].bytes)
            if reached >= limit:
                continue
            placed[number] = address
            rest = [n for n in left if n != number]
            if visit(rest, reached):
                return True
            del placed[number]
        return False

    if len(free) <= _DEEPEST:
        visit(list(free), max((fixed[n] + items[n].bytes for n in fixed), default=0))
    return best


_DEEPEST = 400
"""The recursion goes as deep as there are buffers."""


def _lowest(items: Sequence[Item], neighbours: Sequence[int], placed: Mapping[int, int], item: Item) -> int:
    for start, end in _gaps(items, neighbours, placed):
        address = -(-start // item.alignment) * item.alignment
        if address + item.bytes <= end:
            return address
    raise AssertionError("the last gap has no end")
