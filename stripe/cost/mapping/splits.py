"""All ways to split an index by divisors over nodes and axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from stripe.cost.mapping.problem import Hierarchy, Integers, LoopNest
from stripe.cost.mapping.skeletons import Node
from stripe.ir.factors import divisors

Table: TypeAlias = tuple[Integers, Integers]
"""For each split of an index its extents inside the nodes, and its positions along the axes."""


@dataclass(frozen=True)
class IndexSplit:
    """The parts of one index: its extent inside each node (space included), and along each axis of the grid."""

    within: tuple[int, ...]
    spatial: tuple[int, ...]


class IndexSplits:
    """The splits of the indices of a nest within the limits of each level and axis on its own.

    Only nodes whose operand depends on an index split it, so orders of the nodes that agree on these share a table.
    """

    def __init__(self, nest: LoopNest, hierarchy: Hierarchy) -> None:
        self._nest = nest
        self._hierarchy = hierarchy
        self._tables: dict[tuple[str, ...], Table] = {}

    def of(self, nodes: Sequence[Node], index: str) -> Table:
        """The splits of an index over the nodes and axes."""
        dependent = [n for n, node in enumerate(nodes) if index in node.operand.indices]
        key = (index, *(str(nodes[n]) for n in dependent))
        if key not in self._tables:
            self._tables[key] = self._table([nodes[n] for n in dependent], index)
        chains, spatial = self._tables[key]
        # a node that does not depend on the index is inside the same values as the dependent node around it
        last = [sum(other <= n for other in dependent) for n in range(len(nodes))]
        return chains[:, last], spatial

    def _table(self, nodes: Sequence[Node], index: str) -> Table:
        """The whole range and the extents inside `nodes`, and the positions along the axes."""
        size = self._nest.ranges[index]
        extents = divisors(size)
        chains: list[tuple[int, ...]] = []
        places: list[tuple[int, ...]] = []
        for spatial in self._spatial(index, size, 0):
            across = prod(spatial)
            below: list[tuple[int, ...]] = [(size,)]
            for node in nodes:
                limit = self._limit(node, index, spatial) * across
                fixed = size if node.operand.name in node.level.whole else node.level.sizes.get(index)
                parts = [
                    part for part in extents if part <= limit and part % across == 0 and fixed in (None, part)
                ]
                below = [(*chain, part) for chain in below for part in parts if chain[-1] % part == 0]
            chains += below
            places += [spatial] * len(below)
        positions = np.array(places, np.int64).reshape(len(places), len(self._hierarchy.axes))
        return np.array(chains, np.int64).reshape(-1, len(nodes) + 1), positions

    def _limit(self, node: Node, index: str, spatial: Sequence[int]) -> float:
        """The largest temporal extent inside a node that its capacity allows."""
        if node.level.capacity is None:
            return float("inf")
        step = max(abs(form.get(index, 0)) for form in node.operand.index)
        axes = zip(spatial, self._hierarchy.axes, strict=True)
        held = prod(size for size, axis in axes if axis.name not in node.level.along)
        return ((node.level.capacity // node.operand.element_bytes - 1) / step + 1) / held

    def _spatial(self, index: str, size: int, axis: int) -> Iterator[tuple[int, ...]]:
        if axis == len(self._hierarchy.axes):
            yield ()
            return
        one = self._hierarchy.axes[axis]
        for part in range(1, min(size, one.size) + 1 if index in one.indices else 2):
            if size % part == 0:
                for rest in self._spatial(index, size // part, axis + 1):
                    yield (part, *rest)


def fewer(tables: dict[str, Table], most: int) -> dict[str, Table]:
    """The splits of a group's indices without those that cut an index into the most loops, so that no more than `most`
    combinations are left."""
    found: dict[str, Table] = {}
    for name, (within, spatial) in tables.items():
        loops = np.count_nonzero(np.diff(within, axis=1), axis=1) + np.count_nonzero(spatial > 1, axis=1)
        order = np.argsort(loops, kind="stable")
        found[name] = within[order], spatial[order]
    while prod(len(within) for within, _ in found.values()) > most:
        longest = max(found, key=lambda name: len(found[name][0]))
        within, spatial = found[longest]
        kept = -(-len(within) * 3 // 4)
        found[longest] = within[:kept], spatial[:kept]
    return found
