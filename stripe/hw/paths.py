"""Searches for paths in small directed graphs. (A library of graphs takes longer to load than all searches take.)"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias, TypeVar

Node: TypeAlias = tuple[str, str] | int
"""A port of a unit, `(name, "out")` or `(name, "in")`, or the number of a bus."""

Steps: TypeAlias = Mapping[Node, Sequence[tuple[Node, float]]]
"""The edges from each node, with their latencies."""

_Place = TypeVar("_Place")


@dataclass(frozen=True, slots=True)
class Quickest:
    """All paths of least latency from one node: that latency by node, and the nodes before and behind each node."""

    latency: Mapping[Node, float]
    before: Mapping[Node, Sequence[Node]]
    behind: Mapping[Node, Sequence[Node]]

    @staticmethod
    def of(steps: Steps, start: Node) -> Quickest:
        """By Dijkstra's algorithm."""
        latency: dict[Node, float] = {start: 0.0}
        before: dict[Node, list[Node]] = {start: []}
        done: set[Node] = set()
        numbers = count()  # nodes do not compare
        waiting = [(0.0, next(numbers), start)]
        while waiting:
            least, _, node = heappop(waiting)
            if node in done:
                continue
            done.add(node)
            for near, cycles in steps.get(node, ()):
                total = least + cycles
                if near not in latency or total < latency[near]:
                    latency[near], before[near] = total, [node]
                    heappush(waiting, (total, next(numbers), near))
                elif total == latency[near]:
                    before[near].append(node)
        behind: dict[Node, list[Node]] = {}
        for node, earlier in before.items():
            for each in earlier:
                behind.setdefault(each, []).append(node)
        return Quickest(latency, before, behind)

    def distances(self, end: Node) -> dict[Node, int]:
        """The fewest edges to `end` on these paths, from each node that one of them leads through."""
        return distances(end, lambda node: self.before.get(node, ()))


def spread(start: _Place, near: Callable[[_Place], Iterable[_Place]]) -> Iterator[tuple[_Place, _Place]]:
    """All places that `near` leads to from `start` on, each with the place before it: the fewest steps away first."""
    seen, line = {start}, deque([start])
    while line:
        here = line.popleft()
        for there in near(here):
            if there not in seen:
                seen.add(there)
                yield there, here
                line.append(there)


def distances(start: _Place, near: Callable[[_Place], Iterable[_Place]]) -> dict[_Place, int]:
    """The fewest steps from `start` to itself and to all places that `near` leads to."""
    found = {start: 0}
    for there, here in spread(start, near):
        found[there] = found[here] + 1
    return found
