"""Addresses for buffers some of which may not overlap: dynamic storage allocation.

The problem is NP-hard. Several greedy orders with best fit come first; where none reaches the lower bound, a
branch-and-bound search over the order in which buffers are put down, limited by a number of steps so that the result
does not depend on the machine's speed, tries to improve on them. (An optimal placement always exists among those that
put each buffer, in some order, at the lowest address that its neighbours leave.)
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

SEARCH_STEPS = 20_000
"""Buffers put down by the search before it gives up: two seconds at most, of a hard problem with 400 buffers."""


@dataclass(frozen=True, slots=True)
class Item:
    """A buffer to put down: its size and the alignment of its address, in bytes."""

    bytes: int
    alignment: int


def pack(
    items: Sequence[Item],
    conflicts: Sequence[Sequence[int]],
    always: AbstractSet[int],
    fixed: Mapping[int, int],
    bound: int,
) -> list[int]:
    """Addresses such that no two items in conflict overlap, with a small highest end.

    `fixed` holds given addresses. `bound` is a lower bound of the highest end: the search stops when it is reached.
    Items in `always` are in conflict with all others and missing in `conflicts`.
    """
    degrees = [len(items) - 1 if n in always else len(conflicts[n]) + len(always) for n in range(len(items))]
    orders: list[Callable[[int], tuple[int, ...]]] = [
        lambda n: (-items[n].bytes, n),
        lambda n: (-degrees[n], -items[n].bytes, n),
        lambda n: (-items[n].bytes * (1 + degrees[n]), n),
        lambda n: (n,),
    ]
    free = [n for n in range(len(items)) if n not in fixed]
    best: list[int] = []
    for order in orders:
        found = _greedy(items, conflicts, fixed, sorted(free, key=order), always)
        if not best or _end(items, found) < _end(items, best):
            best = found
        if _end(items, best) <= bound:
            return best
    if len(free) > _DEEPEST:
        return best
    full = tuple(map(tuple, all_conflicts(conflicts, always)))
    return list(_search(tuple(items), full, tuple(fixed.items()), tuple(free), tuple(best), bound))


def all_conflicts(conflicts: Sequence[Sequence[int]], always: AbstractSet[int]) -> list[list[int]]:
    """For each item all others that it may not overlap; items in `always` are in conflict with all."""
    numbers = range(len(conflicts))
    return [
        [m for m in numbers if m != n] if n in always else sorted({*conflicts[n], *always} - {n})
        for n in numbers
    ]


def _end(items: Sequence[Item], offsets: Sequence[int]) -> int:
    return max((offset + item.bytes for offset, item in zip(offsets, items, strict=True)), default=0)


class _Occupied:
    """Occupied ranges of addresses, merged: their starts and ends, in order.

    `grain` divides every address, so that bytes between an end and its next multiple belong to the range before.
    """

    def __init__(self, grain: int) -> None:
        self._grain = grain
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, start: int, size: int) -> None:
        end = -(-(start + size) // self._grain) * self._grain
        first = bisect_left(self.ends, start)
        after = bisect_right(self.starts, end)
        if first < after:
            start, end = min(start, self.starts[first]), max(end, self.ends[after - 1])
        self.starts[first:after] = [start]
        self.ends[first:after] = [end]

    def ranges(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts, self.ends, strict=True)


def _greedy(
    items: Sequence[Item],
    conflicts: Sequence[Sequence[int]],
    fixed: Mapping[int, int],
    order: Sequence[int],
    always: AbstractSet[int],
) -> list[int]:
    grain = math.gcd(*(item.alignment for item in items))
    by_all, by_always = _Occupied(grain), _Occupied(grain)
    placed: dict[int, int] = {}

    def put(number: int, address: int) -> None:
        placed[number] = address
        by_all.add(address, items[number].bytes)
        if number in always:
            by_always.add(address, items[number].bytes)

    for number, address in fixed.items():
        put(number, address)
    for number in order:
        if number in always:
            taken = by_all.ranges()
        else:
            neighbours = conflicts[number]
            near = sorted((placed[n], placed[n] + items[n].bytes) for n in neighbours if n in placed)
            taken = heapq.merge(by_always.ranges(), near)
        # The smallest gap that holds the item.
        put(number, min((end - address, address) for address, end in _fits(taken, items[number]))[1])
    return [placed[number] for number in range(len(items))]


def _fits(taken: Iterable[tuple[int, int]], item: Item) -> Iterator[tuple[int, int]]:
    """The gaps that hold the item: the first aligned address in each, and its end. The ranges `taken` come in order;
    the last gap has no end."""
    start = 0
    for low, high in chain(taken, [(_NO_END, _NO_END)]):
        address = -(-start // item.alignment) * item.alignment
        if start < low and address + item.bytes <= low:
            yield address, low
        start = max(start, high)


_NO_END = 1 << 80


@lru_cache(maxsize=32)
def _search(
    items: tuple[Item, ...],
    conflicts: tuple[tuple[int, ...], ...],
    given: tuple[tuple[int, int], ...],
    free: tuple[int, ...],
    best: tuple[int, ...],
    bound: int,
) -> tuple[int, ...]:
    """Depth-first over the item to put down next, always at its lowest address; cut where the best cannot be beaten.

    The buffers of a network are the same on many machines of a sweep, so that searches are kept.
    """
    steps = 0
    limit = _end(items, best)
    fixed = dict(given)
    placed = dict(fixed)

    def visit(lowest: Mapping[int, int], end: int) -> bool:
        """True when the search is over. `lowest` holds the items that are left, with the lowest address of each."""
        nonlocal steps, limit, best
        if not lowest:
            best, limit = tuple(placed[n] for n in range(len(items))), end
            return end <= bound
        for address, _, number in sorted((at, -items[n].bytes, n) for n, at in lowest.items()):
            steps += 1
            if steps > SEARCH_STEPS:
                return True
            reached = max(end, address + items[number].bytes)
            if reached >= limit:
                continue
            placed[number] = address
            rest = dict(lowest)
            del rest[number]
            for n in conflicts[number]:
                if (
                    n in rest
                    and rest[n] < address + items[number].bytes
                    and address <= rest[n] + items[n].bytes
                ):
                    rest[n] = _lowest(items, conflicts[n], placed, items[n])
            if visit(rest, reached):
                return True
            del placed[number]
        return False

    start = {n: _lowest(items, conflicts[n], placed, items[n]) for n in free}
    visit(start, max((fixed[n] + items[n].bytes for n in fixed), default=0))
    return best


_DEEPEST = 400
"""The recursion goes as deep as there are buffers."""


def _lowest(items: Sequence[Item], neighbours: Sequence[int], placed: Mapping[int, int], item: Item) -> int:
    """The lowest aligned address at which the item fits between the neighbours that have one."""
    size, alignment = item.bytes, item.alignment
    start = address = 0
    for low, high in sorted([(placed[n], placed[n] + items[n].bytes) for n in neighbours if n in placed]):
        if start < low and address + size <= low:
            break
        if high > start:
            start = high
            address = -(-start // alignment) * alignment
    return address
