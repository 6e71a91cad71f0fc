"""The search for the cheapest mappings: complete over divisors, pruned by dominance and by bounds.

The price and all limits grow with each factor of each term. So of two choices for a group of indices, one of which has
no larger factor in any term, the other can be dropped: in every mapping that has it the first does as well. The same
holds for choices of several groups together. What is left is combined group by group; a combination is dropped when it
breaks a limit, or when the price that it reaches with the smallest factors of the other groups is no better than
mappings that are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace
from itertools import product
from math import inf, nextafter, prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.cost.mapping.problem import Hierarchy, LoopNest, Node, interleavings, residencies
from stripe.cost.mapping.terms import Floats, IndexSplit, PriceTerms, Skeleton, Slide, splits

Integers: TypeAlias = npt.NDArray[np.int64]

CHUNK = 1 << 18
"""Combinations that are priced at once."""
BEAM = 256
BLOCK = 256
WIDEST = 1 << 18
"""Combinations of some groups that are kept for the next one."""
MOST_PRICED = 100_000_000
"""Combinations that are priced in one search, some twenty seconds; the most promising skeletons come first."""
GROUP = 1 << 12
"""Choices for the indices of one group that are searched: windows may tie any number of indices together."""
DENSE = 4096
"""Combinations among which dominance is looked for; with more it takes longer than pricing them."""


@dataclass(frozen=True)
class LoopMapping:
    """A mapping: the nodes in order, and for each index its extent inside each of them and along each axis."""

    skeleton: Skeleton
    splits: dict[str, IndexSplit]
    energy_pJ: float

    def loops(self, nest: LoopNest) -> list[list[tuple[str, int]]]:
        """The loops in time as (index, rounds), outermost first: for each node those between it and the node outside,
        then those inside of the last node. A loop that a window slides along is the last of its list.
        """
        found: list[list[tuple[str, int]]] = []
        last = dict(nest.ranges)
        for n, node in enumerate(self.skeleton.nodes):
            sliding = next((slide.index for slide in self.skeleton.slides if slide.node is node), None)
            order = sorted(nest.ranges, key=lambda name: name == sliding)
            inside = {name: self.splits[name].within[n] for name in order}
            found.append([(name, last[name] // inside[name]) for name in order if inside[name] < last[name]])
            last = inside
        found.append([
            (name, rounds)
            for name, extent in last.items()
            if (rounds := extent // prod(self.splits[name].spatial)) > 1
        ])  # fmt: skip
        return found


@dataclass(frozen=True)
class Found:
    """The best plans, cheapest first, the number of priced mappings, and the number of all mappings. `is_complete`:
    none was left out because its group has too many."""

    plans: tuple[LoopMapping, ...]
    priced: int
    mappings: int
    is_complete: bool = True


class _Best:
    """The cheapest plans so far."""

    def __init__(self, number: int, ceiling: float = inf) -> None:
        self._number = number
        self._ceiling = ceiling
        self._heap: list[tuple[float, int, LoopMapping]] = []
        self._count = 0

    @property
    def bound(self) -> float:
        """The price that a plan has to be below to be among the best."""
        return -self._heap[0][0] if len(self._heap) == self._number else self._ceiling

    def add(self, plan: LoopMapping) -> None:
        self._count += 1
        entry = (-plan.energy_pJ, -self._count, plan)
        if len(self._heap) < self._number:
            heappush(self._heap, entry)
        else:
            heapreplace(self._heap, entry)

    def plans(self) -> tuple[LoopMapping, ...]:
        return tuple(plan for _, _, plan in sorted(self._heap, key=lambda e: (-e[0], -e[1])))


def skeletons(nest: LoopNest, target: Hierarchy) -> Iterator[Skeleton]:
    """All orders of the nodes for each choice of bypasses and slides."""
    for chains in residencies(nest, target):
        for nodes in interleavings(chains):
            slides = [_slides(node) if node.level.keeps_halo else [None] for node in nodes]
            for chosen in product(*slides):
                yield Skeleton(nodes, tuple(slide for slide in chosen if slide is not None))


def _slides(node: Node) -> list[Slide | None]:
    """A window slides along one of its indices, over one value at least."""
    shared = [name for form in node.operand.index if sum(map(bool, form.values())) > 1 for name in form]
    return [Slide(node, name) for name in dict.fromkeys(shared)] or [None]


def search(nest: LoopNest, targets: Sequence[Hierarchy], *, plans: int = 1) -> Found:
    """The cheapest mappings of a nest onto any of the targets by energy; none when no mapping fits."""
    priced = 0
    problems = [
        _Combination(nest, target, skeleton) for target in targets for skeleton in skeletons(nest, target)
    ]
    problems = [problem for problem in problems if problem.mappings]
    problems.sort(key=lambda problem: problem.bound)
    mappings = sum(problem.mappings for problem in problems)
    # A beam finds good plans within milliseconds; the prices that they set prune most of the exact search.
    beam = _Best(plans)
    for problem in problems:
        if problem.bound < beam.bound:
            priced += problem.search(beam, BEAM)
    best = _Best(plans, ceiling=nextafter(beam.bound, inf))
    for problem in problems:
        if problem.bound < best.bound:
            priced += problem.search(best, WIDEST, MOST_PRICED - priced)
    is_complete = all(problem.is_complete for problem in problems)
    if not is_complete:  # what the beam found may have been left out
        for plan in beam.plans():
            if plan.energy_pJ < best.bound and plan not in best.plans():
                best.add(plan)
    return Found(best.plans(), priced, mappings, is_complete)


class _Combination:
    """The search of one skeleton."""

    def __init__(self, nest: LoopNest, target: Hierarchy, skeleton: Skeleton) -> None:
        self.terms = PriceTerms(nest, target, skeleton)
        self.skeleton = skeleton
        self.pJ = np.array(self.terms.pJ)
        self.mappings = 1
        self.is_complete = True
        self.tables: list[tuple[tuple[str, ...], Floats, list[tuple[IndexSplit, ...]]]] = []
        for group in nest.groups:
            ways = {name: splits(nest, target, skeleton, name) for name in group}
            self.mappings *= prod(map(len, ways.values()))
            if not self.mappings:
                return
            if prod(map(len, ways.values())) > GROUP:
                self.is_complete = False
                ways = _fewer(ways)
            factors, choices = self.terms.factors(group, ways)
            kept = undominated(factors)
            self.tables.append((group, factors[kept], [choices[n] for n in kept]))
        self.tables.sort(key=lambda table: len(table[2]))
        lows = [table[1].min(axis=0) for table in self.tables]
        self.rests = [np.prod([np.ones(len(self.pJ)), *lows[n + 1 :]], axis=0) for n in range(len(lows))]
        self.bound = float(np.prod(lows, axis=0) @ self.pJ) + self.terms.constant_pJ

    def search(self, best: _Best, width: int, most: float = inf) -> int:
        """Adds the plans of this skeleton that are among the best; the number of combinations that were priced.

        No more than `width` combinations of the first groups are kept, the most promising ones, and after `most` no
        more are priced.
        """
        priced = 0
        rows = np.ones((1, len(self.pJ)))
        picks = np.zeros((1, 0), np.int64)
        for number, (_, factors, _) in enumerate(self.tables):
            found: list[tuple[Floats, Integers, Integers]] = []
            size = max(1, CHUNK // len(factors))
            for start in range(0, len(rows), size):
                if priced > most:
                    self.is_complete = False
                    break
                block = rows[start : start + size] * self.rests[number]
                price = (block * self.pJ) @ factors.T + self.terms.constant_pJ
                priced += price.size
                keep = price < best.bound
                for numbers, limit in self.terms.limits:
                    keep &= block[:, numbers] @ factors[:, numbers].T <= limit
                left, right = np.nonzero(keep)
                found.append((price[left, right], left + start, right))
            if not found:
                break
            prices, left, right = (np.concatenate(parts) for parts in zip(*found, strict=True))
            order = np.argsort(prices, kind="stable")
            if number == len(self.tables) - 1:
                for n in order:
                    if prices[n] >= best.bound:
                        break
                    chosen: dict[str, IndexSplit] = {}
                    pick = [*picks[left[n]].tolist(), int(right[n])]
                    for (group, _, choices), at in zip(self.tables, pick, strict=True):
                        chosen.update(zip(group, choices[at], strict=True))
                    best.add(LoopMapping(self.skeleton, chosen, float(prices[n])))
                break
            if len(order) > width:
                order = order[:width]
                self.is_complete = self.is_complete and width == BEAM
            left, right = left[order], right[order]
            rows, picks = rows[left] * factors[right], np.column_stack([picks[left], right])
            if not len(rows):
                break
            if len(rows) <= DENSE:
                kept = undominated(rows)
                rows, picks = rows[kept], picks[kept]
        return priced


def _fewer(ways: dict[str, list[IndexSplit]]) -> dict[str, list[IndexSplit]]:
    """The splits of a group's indices without those that cut an index into the most loops, so that no more than `GROUP`
    combinations are left."""
    fewer = {
        name: sorted(of_index, key=lambda split: len(set(split.within)) + sum(n > 1 for n in split.spatial))
        for name, of_index in ways.items()
    }
    while prod(map(len, fewer.values())) > GROUP:
        longest = max(fewer, key=lambda name: len(fewer[name]))
        fewer[longest] = fewer[longest][: -(-len(fewer[longest]) * 3 // 4)]
    return fewer


def undominated(rows: Floats) -> Integers:
    """The numbers of the rows that no other row undercuts or equals in every column; of equal rows one."""
    _, first = np.unique(rows, axis=0, return_index=True)
    varied = rows[first][:, np.any(rows != rows[0], axis=0)]
    order = np.argsort(varied.sum(axis=1), kind="stable")  # a dominating row comes before
    first, varied = first[order], varied[order]
    kept = np.empty((0, varied.shape[1]))
    numbers: list[Integers] = []
    for start in range(0, len(varied), BLOCK):
        block = varied[start : start + BLOCK]
        alive = np.ones(len(block), np.bool_)
        for known in (kept[n : n + BLOCK] for n in range(0, len(kept), BLOCK)):
            alive[alive] = ~np.any(np.all(known[None, :, :] <= block[alive][:, None, :], axis=2), axis=1)
        rest = block[alive]
        earlier = np.tri(len(rest), k=-1, dtype=np.bool_)
        alive[alive] = ~np.any(np.all(rest[None, :, :] <= rest[:, None, :], axis=2) & earlier, axis=1)
        kept = np.concatenate([kept, block[alive]])
        numbers.append(first[start : start + BLOCK][alive])
    return np.sort(np.concatenate(numbers))
