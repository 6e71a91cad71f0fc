"""The complete search for the best tile sizes: branch and bound over boxes of candidates, vectorised.

A *box* is a run of consecutive candidates for each index. A model gives the exact cost of sizes, and for a box
a lower bound of the cost of all its members and whether any member can keep the limits. The search keeps a set
of boxes that together hold every candidate that may still be among the wanted best ones.

**The optimum survives.** It starts with the box of all candidates. A step replaces a box by its two halves,
which hold the same candidates, or by the exact costs of all its members; it drops a box only when (1) no
member keeps the limits, or (2) the bound of its members' rank (cost, number of tiles, sizes) comes after the
rank of the last of the wanted ones that are known. For (1) the model tests the smallest sizes against limits
on footprints, which grow with every tile size, and the largest sizes against limits on the number of tiles,
which fall with every tile size: if these corners fail, all members do. For (2) the model adds up parts that
are each monotonic in every size, each taken at the corner where it is least, so that the bound is at most the
cost of any member; the number of tiles is least at the largest sizes, and the first sizes are the smallest. So
a dropped member either breaks a limit or ranks after `wanted` others, and the first `wanted` of the ranking
are found. The search ends when no box is left, which it must since halving ends at single candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stripe.passes.autotile.footprint import Ints

    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]

BATCH = 4096
"""Boxes that are split at once: enough to hide Python's cost."""
LEAF = 64
"""Members of a box that are rather costed than bounded again."""


class TileModel(Protocol):
    """What the search asks. Arrays have a row per candidate or box and a column per index."""

    def cost(self, sizes: Ints) -> Floats:
        """The cost of each candidate; infinite where it breaks a limit."""
        ...

    def bound(self, low: Ints, high: Ints) -> Floats:
        """A lower bound of the cost of all candidates between `low` and `high`; infinite where none keeps the
        limits.
        """
        ...


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate with its cost."""

    sizes: tuple[int, ...]
    cost: float


@dataclass(slots=True)
class Search:
    """One search: `candidates` has the ascending sizes of each index, `ranges` the ranges of the indices."""

    candidates: Sequence[Ints]
    ranges: Sequence[int]
    model: TileModel
    wanted: int = 10
    costed: int = 0
    bounded: int = 0
    _best_cost: Floats = field(init=False)
    _best_sizes: Ints = field(init=False)

    @property
    def size(self) -> int:
        """The number of candidates."""
        return prod(len(sizes) for sizes in self.candidates)

    def run(self) -> list[Ranked]:
        """The best candidates that keep the limits, best first: by cost, then fewer tiles, then smaller sizes."""
        import numpy as np

        width = len(self.candidates)
        self._best_cost = np.empty(0, dtype=np.float64)
        self._best_sizes = np.empty((0, width), dtype=np.int64)
        low = np.zeros((1, width), dtype=np.int64)
        high = np.array([[len(sizes) - 1 for sizes in self.candidates]], dtype=np.int64)
        low, high, bound = self._promising(low, high)
        while len(low):
            if len(low) > BATCH:
                order = np.argsort(bound, kind="stable")
                low, high, bound = low[order], high[order], bound[order]
            new_low, new_high, new_bound = self._expand(low[:BATCH], high[:BATCH])
            low = np.concatenate([new_low, low[BATCH:]])
            high = np.concatenate([new_high, high[BATCH:]])
            bound = np.concatenate([new_bound, bound[BATCH:]])
            kept = self._may_rank(bound, low, high)
            low, high, bound = low[kept], high[kept], bound[kept]
        pairs = zip(self._best_sizes.tolist(), self._best_cost.tolist(), strict=True)
        return [Ranked(tuple(sizes), cost) for sizes, cost in pairs]

    def _expand(self, low: Ints, high: Ints) -> tuple[Ints, Ints, Floats]:
        """Costs the small boxes and halves the others."""
        import numpy as np

        members = np.prod((high - low + 1).astype(np.float64), axis=1)
        small = members <= LEAF
        if small.any():
            self._cost(self._members(low[small], high[small]))
        low, high = low[~small], high[~small]
        if not len(low):
            return low, high, np.empty(0, dtype=np.float64)
        least, most = self._sizes(low), self._sizes(high)
        widest = np.argmax(np.where(high > low, most / least, 0.0), axis=1)
        rows = np.arange(len(low))
        middle = self._middle(low, high, widest)
        left_high, right_low = high.copy(), low.copy()
        left_high[rows, widest] = middle
        right_low[rows, widest] = middle + 1
        return self._promising(np.concatenate([low, right_low]), np.concatenate([left_high, high]))

    def _middle(self, low: Ints, high: Ints, widest: Ints) -> Ints:
        """The last candidate of the lower half: halves are equal in ratio, since costs go with ratios of
        sizes.
        """
        import numpy as np

        middle = np.empty(len(low), dtype=np.int64)
        for column, sizes in enumerate(self.candidates):
            here = widest == column
            if here.any():
                first, last = low[here, column], high[here, column]
                target = np.sqrt(sizes[first].astype(np.float64) * sizes[last])
                middle[here] = np.clip(np.searchsorted(sizes, target, side="right") - 1, first, last - 1)
        return middle

    def _promising(self, low: Ints, high: Ints) -> tuple[Ints, Ints, Floats]:
        """The boxes that may hold one of the best, with their bounds."""
        self.bounded += len(low)
        bound = _rounded(self.model.bound(self._sizes(low), self._sizes(high)), down=True)
        kept = self._may_rank(bound, low, high)
        return low[kept], high[kept], bound[kept]

    def _may_rank(self, bound: Floats, low: Ints, high: Ints) -> Bools:
        """Whether a box may hold a candidate that ranks before the last of the wanted ones."""
        import numpy as np

        possible = np.isfinite(bound)
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
            possible[rows] = _comes_before(least, wall)
        return possible

    def _members(self, low: Ints, high: Ints) -> Ints:
        """All members of the boxes, as places in the candidate lists."""
        import numpy as np

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
        """Costs candidates and keeps the best of them and those known."""
        import numpy as np

        sizes = self._sizes(places)
        self.costed += len(sizes)
        cost = _rounded(self.model.cost(sizes), down=False)
        good = np.isfinite(cost)
        if len(self._best_cost) >= self.wanted:
            good &= cost <= self._best_cost[-1]
        cost = np.concatenate([self._best_cost, cost[good]])
        sizes = np.concatenate([self._best_sizes, sizes[good]])
        order = np.lexsort((*sizes.T[::-1], self._tiles(sizes), cost))[: self.wanted]
        self._best_cost, self._best_sizes = cost[order], sizes[order]

    def _sizes(self, places: Ints) -> Ints:
        import numpy as np

        return np.column_stack([sizes[places[:, c]] for c, sizes in enumerate(self.candidates)])

    def _tiles(self, sizes: Ints) -> Floats:
        import numpy as np

        counts = -(-np.asarray(self.ranges, dtype=np.int64) // sizes)
        return np.prod(counts.astype(np.float64), axis=1)


def _comes_before(rows: Floats, wall: Floats) -> Bools:
    """Which rows come before `wall` in lexicographic order."""
    import numpy as np

    before = np.zeros(len(rows), dtype=np.bool_)
    equal = np.ones(len(rows), dtype=np.bool_)
    for column in range(rows.shape[1]):
        before |= equal & (rows[:, column] < wall[column])
        equal &= rows[:, column] == wall[column]
    return before


def _rounded(values: Floats, *, down: bool) -> Floats:
    """To 40 bits, so that rounding errors of bounds make no difference: a bound is lowered by more than they
    can be and then rounds to at most what the cost rounds to.
    """
    import numpy as np

    mantissa, exponent = np.frexp(values)
    grid = 2.0**40
    lowered = mantissa - 2.0**-46 if down else mantissa
    finite = np.isfinite(values)
    return np.where(
        finite, np.ldexp(np.round(np.where(finite, lowered, 0.0) * grid) / grid, exponent), values
    )


def hill_climb(search: Search) -> list[Ranked]:
    """The quick search: from the smallest sizes, always growing the cheapest open candidate by one step of one
    index, until the cheapest open one is worse than the best found. What breaks a limit that larger sizes may
    keep is grown first.
    """
    import heapq

    import numpy as np

    candidates, model = search.candidates, search.model
    largest = np.array([[sizes[-1] for sizes in candidates]], dtype=np.int64)
    open_ones: list[tuple[float, tuple[int, ...]]] = []
    best: list[tuple[float, tuple[int, ...]]] = []
    fresh = [(0,) * len(candidates)]
    known = set(fresh)
    while True:
        if fresh:
            search.costed += len(fresh)
            places = np.array(fresh, dtype=np.int64)
            sizes = np.column_stack([column[places[:, c]] for c, column in enumerate(candidates)])
            costs = model.cost(sizes)
            hopeful = np.isfinite(model.bound(sizes, np.repeat(largest, len(sizes), axis=0)))
            for place, cost, hope in zip(fresh, costs.tolist(), hopeful.tolist(), strict=True):
                if np.isfinite(cost):
                    best.append((cost, place))
                if hope:
                    heapq.heappush(open_ones, (cost if np.isfinite(cost) else -np.inf, place))
            best = heapq.nsmallest(search.wanted, best)
        if not open_ones or (best and open_ones[0][0] > best[0][0]):
            break
        _, place = heapq.heappop(open_ones)
        steps = [
            (*place[:c], place[c] + 1, *place[c + 1 :])
            for c in range(len(place))
            if place[c] + 1 < len(candidates[c])
        ]
        fresh = [step for step in steps if step not in known]
        known.update(fresh)
    return [
        Ranked(tuple(int(column[p]) for column, p in zip(candidates, place, strict=True)), cost)
        for cost, place in best
    ]
