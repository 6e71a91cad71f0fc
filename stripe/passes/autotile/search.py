"""The complete search for the best tile sizes: branch and bound over boxes of candidates, vectorised.

A *box* is a run of consecutive candidates for each index. The bound of a box is a lower bound of the cost of all
its members, infinite where none keeps the limits; the bound of a single candidate is its cost. The search keeps a
set of boxes that together hold every candidate that may still be among the wanted best.

**The optimum survives.** It starts with the box of all candidates. A step replaces a box by its two halves,
which hold the same candidates, or by the exact costs of all its members; it drops a box only when (1) no
member keeps the limits, or (2) the bound of its members' rank (cost, number of tiles, sizes) comes after the
rank of the last of the wanted that are known. For (1) the smallest sizes are tested against limits on
footprints, which grow with every tile size: if this corner fails, all members do. For (2) the bound adds up
parts that are each monotonic in every size, each taken at the corner where it is least, so that it is at most
the cost of any member; the number of tiles is least at the largest sizes, and the first sizes are the smallest.
So a dropped member either breaks a limit or ranks after `wanted` others, and the first `wanted` of the ranking
are found. The search ends when no box is left, which it must since halving ends at single candidates.

Boxes are taken by their bounds, least first. A search without an end after MOST_STEPS costs the
first sizes of the boxes that are left and stops: the least of their bounds is what the best of them may cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import TypeAlias

import numpy as np

from stripe.cost.counts.tiles import Bools, Floats, Ints, product

BATCH = 4096
"""Boxes that are split at once: enough to hide Python's cost."""
FIRST = 64
"""Boxes of the first step: bounds of fewer tell little and take as long."""
LEAF = 128
"""Most members of a box that are costed instead of bounded again."""
MOST_COSTED = 1 << 12
"""Candidates that are costed at once."""
MOST_STEPS = 1 << 22
"""Boxes bounded and candidates costed after which a search stops: a minute or two."""


LowerBound: TypeAlias = Callable[[Ints, Ints], Floats]
"""Lower bound of the cost of all sizes between two corners; their cost where both corners are the same array. A row
per box and a column per index."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its cost."""

    sizes: tuple[int, ...]
    cost: float


@dataclass(slots=True)
class TileSearch:
    """`candidates` has the ascending sizes of each index, `ranges` the ranges of the indices."""

    candidates: Sequence[Ints]
    ranges: Sequence[int]
    lower_bound: LowerBound
    wanted: int = 10
    below: float = inf
    """Candidates that cost as much are not looked for."""
    most_steps: int = MOST_STEPS
    costed: int = 0
    bounded: int = 0
    unseen: float = inf
    """A lower bound of the cost of all candidates that a stopped search has not looked at."""
    _best_cost: Floats = field(init=False)
    _best_sizes: Ints = field(init=False)

    @property
    def size(self) -> int:
        """The number of candidates."""
        return prod(len(sizes) for sizes in self.candidates)

    def run(self) -> list[Ranked]:
        """The best candidates that keep the limits, best first: by cost, then fewer tiles, then smaller sizes."""
        width = len(self.candidates)
        self._best_cost = np.empty(0, dtype=np.float64)
        self._best_sizes = np.empty((0, width), dtype=np.int64)
        low = np.zeros((1, width), dtype=np.int64)
        high = np.array([[len(sizes) - 1 for sizes in self.candidates]], dtype=np.int64)
        while len(low) < FIRST and self._is_large(low, high).any():
            large = self._is_large(low, high)
            low, high = (
                np.concatenate([whole[~large], halves])
                for whole, halves in zip((low, high), self._halves(low[large], high[large]), strict=True)
            )
        low, high, bound = self._promising(low, high)
        while len(low):
            if self.bounded + self.costed > self.most_steps:
                self.unseen = float(bound.min())
                self._cost(low[np.argsort(bound, kind="stable")[:MOST_COSTED]])
                break
            order = np.argsort(bound, kind="stable")
            low, high, bound = low[order], high[order], bound[order]
            taken = self._batch(low, high)
            new_low, new_high, new_bound = self._expand(low[:taken], high[:taken])
            low = np.concatenate([new_low, low[taken:]])
            high = np.concatenate([new_high, high[taken:]])
            bound = np.concatenate([new_bound, bound[taken:]])
            kept = self._may_rank(bound, low, high)
            low, high, bound = low[kept], high[kept], bound[kept]
        pairs = zip(self._best_sizes.tolist(), self._best_cost.tolist(), strict=True)
        return [Ranked(tuple(sizes), cost) for sizes, cost in pairs]

    def _batch(self, low: Ints, high: Ints) -> int:
        """The number of boxes to take at once: at most BATCH, with at most MOST_COSTED members in small boxes."""
        members = np.prod((high - low + 1).astype(np.float64), axis=1)
        costed = np.cumsum(np.where(members <= LEAF, members, 0.0))
        return int(min(BATCH, max(1, np.searchsorted(costed, MOST_COSTED, side="right"))))

    def _expand(self, low: Ints, high: Ints) -> tuple[Ints, Ints, Floats]:
        """Costs the small boxes and halves the others."""
        large = self._is_large(low, high)
        if not large.all():
            self._cost(self._members(low[~large], high[~large]))
        low, high = low[large], high[large]
        if not len(low):
            return low, high, np.empty(0, dtype=np.float64)
        return self._promising(*self._halves(low, high))

    def _is_large(self, low: Ints, high: Ints) -> Bools:
        """Whether a box has too many members to be costed."""
        return np.prod((high - low + 1).astype(np.float64), axis=1) > LEAF

    def _halves(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """The halves of each box along the index whose sizes differ most."""
        least, most = self._sizes(low), self._sizes(high)
        widest = np.argmax(np.where(high > low, most / least, 0.0), axis=1)
        rows = np.arange(len(low))
        # the last candidate of the lower half: halves are equal in ratio, since costs go with ratios of
        # sizes
        middle = np.empty(len(low), dtype=np.int64)
        for column, sizes in enumerate(self.candidates):
            here = widest == column
            if here.any():
                first, last = low[here, column], high[here, column]
                target = np.sqrt(sizes[first].astype(np.float64) * sizes[last])
                middle[here] = np.clip(np.searchsorted(sizes, target, side="right") - 1, first, last - 1)
        left_high, right_low = high.copy(), low.copy()
        left_high[rows, widest] = middle
        right_low[rows, widest] = middle + 1
        return np.concatenate([low, right_low]), np.concatenate([left_high, high])

    def _promising(self, low: Ints, high: Ints) -> tuple[Ints, Ints, Floats]:
        """The boxes that may hold a wanted candidate, with their bounds."""
        self.bounded += len(low)
        bound = _rounded(self.lower_bound(self._sizes(low), self._sizes(high)), down=True)
        kept = self._may_rank(bound, low, high)
        return low[kept], high[kept], bound[kept]

    def _may_rank(self, bound: Floats, low: Ints, high: Ints) -> Bools:
        """Whether a box may hold a candidate that ranks before the last wanted candidate."""
        possible = bound < self.below
        if len(self._best_cost) < self.wanted:
            return possible
        last = self._best_cost[-1]
        ties = possible & (bound == last)
        possible &= bound < last
        if ties.any():
            rows = np.flatnonzero(ties)
            tiles = self._tiles(self._sizes(high[rows]))
            least = np.column_stack([tiles, self._sizes(low[rows]).astype(np.float64)])
            wall = np.concatenate([self._tiles(self._best_sizes[-1:]), self._best_sizes[-1]])
            before, equal = np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)
            for column in range(len(wall)):  # lexicographic order
                before |= equal & (least[:, column] < wall[column])
                equal &= least[:, column] == wall[column]
            possible[rows] = before
        return possible

    def _members(self, low: Ints, high: Ints) -> Ints:
        """All members of the boxes, as places in the candidate lists."""
        widths = high - low + 1
        counts = np.prod(widths, axis=1)
        owner = np.repeat(np.arange(len(low)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = low[owner]
        for column in range(low.shape[1] - 1, -1, -1):
            width = widths[owner, column]
            places[:, column] += number % width
            number //= width
        return places

    def _cost(self, places: Ints) -> None:
        """Costs candidates and keeps the best of new and known ones."""
        sizes = self._sizes(places)
        self.costed += len(sizes)
        cost = _rounded(self.lower_bound(sizes, sizes), down=False)
        good = cost < self.below
        if len(self._best_cost) >= self.wanted:
            good &= cost <= self._best_cost[-1]
        cost = np.concatenate([self._best_cost, cost[good]])
        sizes = np.concatenate([self._best_sizes, sizes[good]])
        order = np.lexsort((*sizes.T[::-1], self._tiles(sizes), cost))[: self.wanted]
        self._best_cost, self._best_sizes = cost[order], sizes[order]

    def _sizes(self, places: Ints) -> Ints:
        return np.column_stack([sizes[places[:, c]] for c, sizes in enumerate(self.candidates)])

    def _tiles(self, sizes: Ints) -> Floats:
        return product(-(-np.asarray(self.ranges, dtype=np.int64) // sizes))


def _rounded(values: Floats, *, down: bool) -> Floats:
    """`values` to 40 bits, so that rounding errors of bounds make no difference: a bound is lowered by more than they
    can be, and then rounds to the rounded cost at most."""
    mantissa, exponent = np.frexp(values)
    grid = 2.0**40
    lowered = mantissa - 2.0**-46 if down else mantissa
    finite = np.isfinite(values)
    return np.where(
        finite, np.ldexp(np.round(np.where(finite, lowered, 0.0) * grid) / grid, exponent), values
    )
