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
from math import inf, nextafter, prod

import numpy as np

from stripe.cost.mapping.dominance import undominated
from stripe.cost.mapping.loop_mapping import LoopMapping
from stripe.cost.mapping.price import MappingPrices
from stripe.cost.mapping.problem import Floats, Hierarchy, Integers, LoopNest
from stripe.cost.mapping.skeletons import skeletons
from stripe.cost.mapping.splits import IndexSplit, IndexSplits, Table, fewer
from stripe.cost.mapping.terms import PriceTerms
from stripe.cost.objective import Objective

CHUNK = 1 << 14
"""Combinations that are priced at once: their tables stay in the cache, and products of them on one thread of BLAS."""
BEAM = 256
"""Combinations of some groups that the first search, which is inexact, keeps for the next group."""
GROUP = 1 << 12
"""Choices for the indices of one group that are searched: windows may tie any number of indices together."""
WIDEST = 1 << 18
"""Combinations of some groups that are kept for the next one."""
MOST_PRICED = 200_000_000
"""Combinations that are priced in one search, some forty seconds; the most promising skeletons come first."""
DENSE = 4096
"""Combinations among which dominance is looked for; with more it takes longer than pricing them."""


@dataclass(frozen=True)
class Found:
    """The best mappings, cheapest first, the number of priced mappings, and the total number of mappings. No other
    mapping has a price below `bound`; 0 where some were left out because their group has too many. `is_complete`: the
    search left out no better mapping."""

    best: tuple[LoopMapping, ...]
    priced: int
    total: int
    bound: float
    is_complete: bool


class _Best:
    """The cheapest mappings so far, no more than `number`, all with prices below `ceiling`."""

    def __init__(self, number: int, ceiling: float = inf) -> None:
        self._number = number
        self._ceiling = ceiling
        self._heap: list[tuple[float, int, LoopMapping]] = []
        self._count = 0

    @property
    def bound(self) -> float:
        """The price that a mapping has to be below to be among the best."""
        return -self._heap[0][0] if len(self._heap) == self._number else self._ceiling

    def add(self, price: float, mapping: LoopMapping) -> None:
        self._count += 1
        entry = (-price, -self._count, mapping)
        if len(self._heap) < self._number:
            heappush(self._heap, entry)
        else:
            heapreplace(self._heap, entry)

    @property
    def least(self) -> float:
        """The best price."""
        return -max(self._heap)[0] if self._heap else inf

    def entries(self) -> tuple[tuple[float, LoopMapping], ...]:
        """The prices and mappings, cheapest first."""
        return tuple(
            (-price, mapping) for price, _, mapping in sorted(self._heap, key=lambda e: (-e[0], -e[1]))
        )

    def mappings(self) -> tuple[LoopMapping, ...]:
        return tuple(mapping for _, mapping in self.entries())


def search(
    nest: LoopNest,
    hierarchies: Sequence[Hierarchy],
    *,
    count: int = 1,
    objective: Objective = "energy",
    limit: int = 0,
) -> Found:
    """The `count` mappings of a nest onto any of the hierarchies that are best by `objective`; fewer when no more fit.

    An inexact search for good mappings of all skeletons comes first. The exact one behind it ends after `limit`
    combinations (0: `MOST_PRICED`), and `bound` tells the gap that stays.
    """
    limit = limit or MOST_PRICED
    combined = 0
    searches = [
        each
        for number, hierarchy in enumerate(hierarchies)
        if hierarchy not in hierarchies[:number]
        for each in _searches(nest, hierarchy, objective)
    ]
    searches.sort(key=lambda each: each.bound)
    total = sum(each.mappings for each in searches)
    # A beam finds good mappings; the prices that they set prune most of the exact search.
    beam = _Best(count)
    for each in searches:
        if each.bound < beam.bound:
            each.search(beam, BEAM)
    # (the order in which a product of matrices is summed may change its last digits; all may cost nothing)
    best = _Best(count, ceiling=nextafter(beam.bound * (1 + 1e-9), inf))
    bound = inf
    for each in searches:
        if each.bound >= best.bound:
            continue
        if combined >= limit:
            bound = min(bound, each.bound)
            continue
        combined += each.search(best, WIDEST, limit - combined)
        bound = min(bound, each.left_out if each.is_whole else 0.0)
    bound = inf if bound >= best.bound else bound  # the mappings left out are no better
    if bound < inf:  # the beam may have found better mappings than the part of the search that was made
        for price, mapping in beam.entries():
            if price < best.bound and mapping not in best.mappings():
                best.add(price, mapping)
    priced = sum(each.priced for each in searches)
    return Found(best.mappings(), priced, total, min(bound, best.least), bound == inf)


@dataclass
class _Group:
    """The choices for a group of indices that no other undercuts: one row of factors for each, and the numbers of its
    splits in the tables of the indices. `mappings` counts all choices; not `is_whole`: some were left out."""

    splits: dict[str, Table]
    factors: Floats
    choices: Integers
    mappings: int
    is_whole: bool

    def split(self, choice: int) -> dict[str, IndexSplit]:
        """The splits of the indices by one choice."""
        found: dict[str, IndexSplit] = {}
        for (name, (within, spatial)), way in zip(self.splits.items(), self.choices[choice], strict=True):
            found[name] = IndexSplit(tuple(within[way].tolist()), tuple(spatial[way].tolist()))
        return found


def _searches(nest: LoopNest, hierarchy: Hierarchy, objective: Objective) -> Iterator[_SkeletonSearch]:
    """A search for each skeleton that has mappings."""
    tables = _Tables(IndexSplits(nest, hierarchy))
    for skeleton in skeletons(nest, hierarchy):
        terms = PriceTerms(nest, hierarchy, skeleton)
        groups: list[_Group] = []
        for names in nest.groups:
            if (group := tables.group(names, terms)) is None:
                break
            groups.append(group)
        else:
            yield _SkeletonSearch(terms, groups, objective)


@dataclass
class _Tables:
    """Tables that skeletons share: where their orders and slides differ, most groups of indices do not see it."""

    _splits: IndexSplits
    _kept: dict[bytes, Integers] = field(default_factory=dict[bytes, Integers])

    def group(self, names: Sequence[str], terms: PriceTerms) -> _Group | None:
        """The choices for a group of indices; None where there is none: an index has no split, or the unit runs none of
        the combinations of a window in space."""
        splits = {name: self._splits.of(terms.skeleton.nodes, name) for name in names}
        mappings = prod(len(within) for within, _ in splits.values())
        if mappings > GROUP:
            splits = fewer(splits, GROUP)
        factors, choices = terms.factors(splits)
        if not len(factors):
            return None
        kept = self._undominated(factors)
        return _Group(splits, factors[kept], choices[kept], mappings, mappings <= GROUP)

    def _undominated(self, factors: Floats) -> Integers:
        key = blake2b(factors.tobytes()).digest()
        if key not in self._kept:
            self._kept[key] = undominated(factors)
        return self._kept[key]


class _SkeletonSearch:
    """The search of one skeleton. No mapping of it has a price below `bound`; `priced` of its `mappings` were priced.
    Not `is_whole`: some choices are left out."""

    def __init__(self, terms: PriceTerms, groups: Sequence[_Group], objective: Objective) -> None:
        self.priced = 0
        self.left_out = inf
        """The least price that mappings may have which the latest search has not seen."""
        self.mappings = prod(group.mappings for group in groups)
        self.is_whole = all(group.is_whole for group in groups)
        self._skeleton = terms.skeleton
        self._limits = terms.limits
        self._groups = sorted(groups, key=lambda group: len(group.choices))
        self._price = MappingPrices(terms, objective)
        self._one = np.ones((1, len(terms.terms)))
        lows = [group.factors.min(axis=0) for group in self._groups]
        self._rests = [np.prod([self._one[0], *lows[n + 1 :]], axis=0) for n in range(len(lows))]
        self.bound = float(self._price.of(self._one, np.prod(lows, axis=0)[None, :])[0, 0])

    def search(self, best: _Best, width: int, limit: float = inf) -> int:
        """Adds the mappings of this skeleton that are among the best; the number of combinations that were priced.
        `priced` counts the whole mappings among them, which combine all groups.

        No more than `width` combinations of the first groups are kept, the most promising ones, and after `limit` no
        more are priced; `left_out` is the least price that these may have.
        """
        priced = 0
        self.left_out = inf
        rows = self._one
        picks = np.zeros((1, 0), np.int64)
        for number, group in enumerate(self._groups):
            factors = group.factors
            is_last = number == len(self._groups) - 1
            found: list[tuple[Floats, Integers, Integers]] = []
            size = max(1, CHUNK // len(factors))
            for start in range(0, len(rows), size):
                if priced > limit:
                    self.left_out = self.bound
                    break
                block = rows[start : start + size] * self._rests[number]
                price = self._price.of(block, factors)
                priced += price.size
                self.priced += price.size if is_last else 0
                left, right = np.nonzero(price < best.bound)
                for capacity in self._limits:
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
                    row = (rows[left[n]] * factors[right[n]])[None, :]
                    best.add(float(prices[n]), self._mapping([*picks[left[n]].tolist(), int(right[n])], row))
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

    def _mapping(self, picks: Sequence[int], row: Floats) -> LoopMapping:
        """The mapping that picks a choice for each group; `row` has the factors of its terms."""
        splits: dict[str, IndexSplit] = {}
        for group, choice in zip(self._groups, picks, strict=True):
            splits |= group.split(choice)
        energy, cycles = self._price.energy_and_cycles(row, self._one)
        return LoopMapping(self._skeleton, splits, energy.item(), cycles.item())
