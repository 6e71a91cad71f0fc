"""The search for the cheapest mappings: complete over divisors, pruned by dominance and by bounds.

The price and all limits grow with each factor of each term. So of two choices for a group of indices, one of which has
no larger factor in any term, the other can be dropped: in every mapping that has it the first does as well. The same
holds for choices of several groups together. What is left is combined group by group; a combination is dropped when it
breaks a limit, or when the price that it reaches with the smallest factors of the other groups is no better than
mappings that are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappush, heapreplace
from itertools import product
from math import inf, nextafter, prod

import numpy as np
import numpy.typing as npt

from stripe.cost.mapping.problem import (
    Floats,
    Hierarchy,
    Integers,
    LoopNest,
    Node,
    interleavings,
    residencies,
)
from stripe.cost.mapping.splits import IndexSplit, IndexSplits, fewer
from stripe.cost.mapping.terms import PriceTerms, Skeleton, Slide
from stripe.cost.objective import Objective
from stripe.ir.frozen import replace

CHUNK = 1 << 14
"""Combinations that are priced at once: their tables stay in the cache, and products of them on one thread of BLAS."""
BEAM = 256
"""Combinations of some groups that the first search, which is inexact, keeps for the next group."""
SERIAL = 0.2
"""The part of moving and computing in which they do not overlap, an estimate: in one tile nothing does, in many all.
With this one 60 nests on six units are nearest to their simulation: the mean error is 17 %."""
TIE = 1e-15
"""Cycles for a pJ, where mappings take the same time."""
BLOCK = 256
"""Rows that are compared with as many others at once: their table of pairs stays in the cache."""
GROUP = 1 << 12
"""Choices for the indices of one group that are searched: windows may tie any number of indices together."""
WIDEST = 1 << 18
"""Combinations of some groups that are kept for the next one."""
MOST_PRICED = 200_000_000
"""Combinations that are priced in one search, some forty seconds; the most promising skeletons come first."""
DENSE = 4096
"""Combinations among which dominance is looked for; with more it takes longer than pricing them."""


@dataclass(frozen=True)
class LoopMapping:
    """A mapping: the nodes in order, and for each index its extent inside each of them and along each axis."""

    skeleton: Skeleton
    splits: dict[str, IndexSplit]
    energy_pJ: float
    cycles: float = 0.0
    """An estimate, see `SERIAL`; 0 where time does not count."""

    def of(self, nest: LoopNest) -> LoopMapping:
        """The mapping of a canonical nest, for a nest of which it is the canonical form."""
        old = self.skeleton.nodes
        nodes = tuple(Node(node.level, nest.operands[int(node.operand.name)]) for node in old)
        names = list(nest.numbers)
        slides = tuple(
            Slide(nodes[old.index(slide.node)], names[int(slide.index)]) for slide in self.skeleton.slides
        )
        splits = {names[int(index)]: split for index, split in self.splits.items()}
        ordered = {name: splits[name] for name in nest.ranges}
        return replace(self, skeleton=Skeleton(nodes, slides), splits=ordered)

    def loops(self, nest: LoopNest) -> list[list[tuple[str, int]]]:
        """The loops in time as (index, rounds), outermost first: for each node the loops between it and the one
        outside, then the loops inside of the last node. A loop that a window slides along is the last of its list.
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
    """The best mappings, cheapest first, the number of priced mappings, and the total number of mappings. No other
    mapping has a price below `bound`; 0 where some were left out because their group has too many."""

    best: tuple[LoopMapping, ...]
    priced: int
    total: int
    bound: float
    is_complete: bool


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

    def add(self, price: float, plan: LoopMapping) -> None:
        self._count += 1
        entry = (-price, -self._count, plan)
        if len(self._heap) < self._number:
            heappush(self._heap, entry)
        else:
            heapreplace(self._heap, entry)

    @property
    def least(self) -> float:
        """The best price."""
        return -max(self._heap)[0] if self._heap else inf

    def entries(self) -> tuple[tuple[float, LoopMapping], ...]:
        """The prices and plans, cheapest first."""
        return tuple((-price, plan) for price, _, plan in sorted(self._heap, key=lambda e: (-e[0], -e[1])))

    def plans(self) -> tuple[LoopMapping, ...]:
        return tuple(plan for _, plan in self.entries())


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


def search(
    nest: LoopNest,
    targets: Sequence[Hierarchy],
    *,
    plans: int = 1,
    objective: Objective = "energy",
    limit: int = 0,
) -> Found:
    """The mappings of a nest onto any of the targets that are best by `objective`; none when no mapping fits.

    An inexact search for good mappings of all skeletons comes first. The exact one behind it ends after `limit`
    combinations (0: `MOST_PRICED`), and `bound` tells the gap that stays.
    """
    limit = limit or MOST_PRICED
    combined = 0
    searches = [
        _SkeletonSearch(nest, target, skeleton, objective, shared)
        for number, target in enumerate(targets)
        if target not in targets[:number]
        for shared in [_Shared(IndexSplits(nest, target))]
        for skeleton in skeletons(nest, target)
    ]
    searches = [each for each in searches if each.mappings]
    searches.sort(key=lambda each: each.bound)
    total = sum(each.mappings for each in searches)
    # A beam finds good plans; the prices that they set prune most of the exact search.
    beam = _Best(plans)
    for each in searches:
        if each.bound < beam.bound:
            each.search(beam, BEAM)
    # (the order in which a product of matrices is summed may change its last digits; all may cost nothing)
    best = _Best(plans, ceiling=nextafter(beam.bound * (1 + 1e-9), inf))
    bound = inf
    for each in searches:
        if each.bound >= best.bound:
            continue
        if combined >= limit:
            bound = min(bound, each.bound)
            continue
        each.left_out = inf
        combined += each.search(best, WIDEST, limit - combined)
        bound = min(bound, each.left_out if each.is_complete else 0.0)
    bound = inf if bound >= best.bound else bound  # the mappings left out are no better
    if bound < inf:  # the beam may have found better plans than the part of the search that was made
        for price, plan in beam.entries():
            if price < best.bound and plan not in best.plans():
                best.add(price, plan)
    priced = sum(each.priced for each in searches)
    return Found(best.plans(), priced, total, min(bound, best.least), bound == inf)


@dataclass
class _Shared:
    """Tables that skeletons share: where their orders and slides differ, most groups of indices do not see it."""

    splits: IndexSplits
    _kept: dict[bytes, Integers] = field(default_factory=dict[bytes, Integers])

    def kept(self, factors: Floats) -> Integers:
        """The rows of a table that are not dominated."""
        key = blake2b(factors.tobytes()).digest()
        if key not in self._kept:
            self._kept[key] = undominated(factors)
        return self._kept[key]


class _SkeletonSearch:
    """The search of one skeleton."""

    def __init__(
        self,
        nest: LoopNest,
        target: Hierarchy,
        skeleton: Skeleton,
        objective: Objective,
        shared: _Shared,
    ) -> None:
        self.terms = PriceTerms(nest, target, skeleton)
        self.skeleton = skeleton
        self.objective: Objective = objective
        self.pJ = np.array([term.pJ for term in self.terms.terms])
        self.leakage_pJ = target.leakage_pJ
        self.paid = np.flatnonzero(self.pJ)
        self.needed = [
            (np.array(list(terms)), np.array(list(terms.values()))) for terms in self.terms.busiest
        ]
        self.serial = np.zeros(len(self.pJ))
        for term, cycles in self.terms.serial.items():
            self.serial[term] = SERIAL * cycles
        self.counted = np.flatnonzero(self.serial)
        self.mappings = 1
        self.priced = 0
        self.is_complete = True
        self.left_out = inf
        self.tables: list[tuple[tuple[str, ...], Floats, Integers]] = []
        self.splits = {name: shared.splits.of(skeleton.nodes, name) for name in nest.ranges}
        for group in nest.groups:
            tables = {name: self.splits[name] for name in group}
            self.mappings *= prod(len(within) for within, _ in tables.values())
            if not self.mappings:
                return
            if prod(len(within) for within, _ in tables.values()) > GROUP:
                tables = fewer(tables, GROUP)
                self.splits.update(tables)
                self.is_complete = False
            factors, choices = self.terms.factors(
                group,
                {name: within for name, (within, _) in tables.items()},
                {name: spatial for name, (_, spatial) in tables.items()},
            )
            if not len(factors):  # the unit runs none of the combinations of a window in space
                self.mappings = 0
                return
            kept = shared.kept(factors)
            self.tables.append((group, factors[kept], choices[kept]))
        self.tables.sort(key=lambda table: len(table[2]))
        lows = [table[1].min(axis=0) for table in self.tables]
        self.rests = [np.prod([np.ones(len(self.pJ)), *lows[n + 1 :]], axis=0) for n in range(len(lows))]
        least = np.prod(lows, axis=0)[None, :]
        self.bound = float(self._price(np.ones((1, len(self.pJ))), least)[0, 0])

    def _price(self, rows: Floats, factors: Floats) -> Floats:
        """The price of each row with each choice. Of mappings that are as fast the one of less energy is better, by a
        term too small to outweigh a cycle."""
        energy = (rows[:, self.paid] * self.pJ[self.paid]) @ factors[:, self.paid].T + self.terms.constant_pJ
        if not self.needed:
            return energy
        cycles = self._cycles(rows, factors)
        energy = energy + cycles * self.leakage_pJ
        if self.objective == "energy":
            return energy
        return cycles * energy if self.objective == "edp" else cycles + energy * TIE

    def _cycles(self, rows: Floats, factors: Floats) -> Floats:
        """The busiest resource, and a part of all work one after the other: it overlaps but for the first and last
        tiles."""
        busiest = np.zeros((len(rows), len(factors)))
        for terms, each in self.needed:
            np.maximum(busiest, (rows[:, terms] * each) @ factors[:, terms].T, out=busiest)
        busiest *= 1 - SERIAL
        busiest += (rows[:, self.counted] * self.serial[self.counted]) @ factors[:, self.counted].T
        return busiest

    def search(self, best: _Best, width: int, limit: float = inf) -> int:
        """Adds the plans of this skeleton that are among the best; the number of combinations that were priced.
        `priced` counts the whole mappings among them, which combine all groups.

        No more than `width` combinations of the first groups are kept, the most promising ones, and after `limit` no
        more are priced; `left_out` is the least price that these may have.
        """
        priced = 0
        rows = np.ones((1, len(self.pJ)))
        picks = np.zeros((1, 0), np.int64)
        for number, (_, factors, _) in enumerate(self.tables):
            is_last = number == len(self.tables) - 1
            found: list[tuple[Floats, Integers, Integers]] = []
            size = max(1, CHUNK // len(factors))
            for start in range(0, len(rows), size):
                if priced > limit:
                    self.left_out = self.bound
                    break
                block = rows[start : start + size] * self.rests[number]
                price = self._price(block, factors)
                priced += price.size
                self.priced += price.size if is_last else 0
                left, right = np.nonzero(price < best.bound)
                for capacity in self.terms.limits:
                    kept = capacity.holds(block[left], factors[right])
                    left, right = left[kept], right[kept]
                found.append((price[left, right], left + start, right))
            if not found:
                break
            prices, left, right = (np.concatenate(parts) for parts in zip(*found, strict=True))
            order = np.argsort(prices, kind="stable")
            if is_last:
                for n in order:
                    if prices[n] >= best.bound:
                        break
                    chosen: dict[str, IndexSplit] = {}
                    pick = [*picks[left[n]].tolist(), int(right[n])]
                    for (group, _, choices), at in zip(self.tables, pick, strict=True):
                        for name, way in zip(group, choices[at], strict=True):
                            inside, places = self.splits[name]
                            chosen[name] = IndexSplit(
                                tuple(inside[way].tolist()), tuple(places[way].tolist())
                            )
                    row = (rows[left[n]] * factors[right[n]])[None, :]
                    ones = np.ones((1, len(self.pJ)))
                    cycles = float(self._cycles(row, ones)[0, 0]) if self.needed else 0.0
                    energy = float((row @ self.pJ)[0]) + self.terms.constant_pJ + cycles * self.leakage_pJ
                    best.add(float(prices[n]), LoopMapping(self.skeleton, chosen, energy, cycles))
                break
            if len(order) > width:
                self.left_out = min(self.left_out, float(prices[order[width]]))
                order = order[:width]
            left, right = left[order], right[order]
            rows, picks = rows[left] * factors[right], np.column_stack([picks[left], right])
            if not len(rows):
                break
            if len(rows) <= DENSE:
                kept = undominated(rows)
                rows, picks = rows[kept], picks[kept]
        return priced


def undominated(rows: Floats) -> Integers:
    """The numbers of the rows that no other row undercuts or equals in every column; of equal rows one."""
    varied = rows[:, np.any(rows != rows[0], axis=0)]
    order = np.argsort(varied.sum(axis=1), kind="stable")  # a dominating row comes before
    columns = np.ascontiguousarray(varied[order].T)
    kept = columns[:, :0]
    numbers: list[Integers] = []
    for start in range(0, len(order), BLOCK):
        block, places = columns[:, start : start + BLOCK], order[start : start + BLOCK]
        for known in (kept[:, n : n + BLOCK] for n in range(0, kept.shape[1], BLOCK)):
            alive = ~np.any(_undercut(block, known), axis=1)
            block, places = block[:, alive], places[alive]
        undercut = _undercut(block, block)
        earlier = np.tri(len(places), k=-1, dtype=np.bool_)
        alive = ~np.any(undercut & (~undercut.T | earlier), axis=1)
        kept = np.concatenate([kept, block[:, alive]], axis=1)
        numbers.append(places[alive])
    return np.sort(np.concatenate(numbers))


def _undercut(rows: Floats, others: Floats) -> npt.NDArray[np.bool_]:
    """For each of the `rows` and each of the `others`, both given by columns, whether the latter is nowhere larger.

    Column by column: tables of three dimensions take several times as long.
    """
    found = np.ones((rows.shape[1], others.shape[1]), np.bool_)
    for own, other in zip(rows, others, strict=True):
        found &= other <= own[:, None]
    return found
