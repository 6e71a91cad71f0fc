"""The choice among the best tiles by their exact price: the simulated time of the block after the rest of the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import TypeAlias

from stripe.cost.time.price import Price
from stripe.ir import StripeError
from stripe.ir.frozen import replace
from stripe.passes.autotile.search import Ranked
from stripe.passes.autotile.tiling import UNSURE, Tiling

MOST_PRICED = 4
"""Candidates that fit and are priced exactly."""
MOST_REFUSED = 4
"""Candidates that the rest of the list may refuse before the search is made again under a tighter limit."""
CLOSE = 0.005
"""Part of a price below which a difference is not looked for."""
GAP = 0.8
"""Part of the difference between price and estimate that further candidates are taken to have, too: statements that
run with the block cause it, which the estimate does not know."""


SLOWER, THRIFTIER = 0.05, 0.1
"""A candidate is worth a remark that takes at most so much longer and so much less energy than the choice."""

PriceOf: TypeAlias = Callable[[tuple[int, ...]], Price]
"""The exact price of a tile by its sizes; StripeError where the rest of the list refuses it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate with its price, its cost by it, and the number of candidates priced; and one that takes hardly more
    time and far less energy, if any."""

    ranked: Ranked
    price: Price
    cost: float
    priced: int
    thrifty: Choice | None = None

    def beside(self, others: Sequence[Choice]) -> Choice:
        """The choice with the thriftiest of the others that are not much slower."""
        near = [
            other
            for other in others
            if other.price.cycles <= (1 + SLOWER) * self.price.cycles
            and other.price.energy_pJ < (1 - THRIFTIER) * self.price.energy_pJ
        ]
        return replace(self, thrifty=min(near, key=lambda other: other.price.energy_pJ, default=None))


@dataclass(frozen=True, slots=True)
class Refused:
    """The last of all candidates refused, with the reason; `fullness` is how full the memory was with it, if too
    full."""

    ranked: Ranked
    reason: str
    fullness: float = 0.0


def choose(
    found: Sequence[Ranked],
    price: PriceOf,
    tiling: Tiling,
    refutes: Callable[[Ranked, float, float], bool],
    known: Choice | None,
) -> Choice | Refused | None:
    """The cheapest candidate by price, of candidates in the order of their estimates by `tiling`; None where no
    candidate is cheaper than the tile `known` from another search. The choice ends early where a cost `refutes` the
    estimates, given the excess of others.

    It ends when no later candidate can be cheaper by more than CLOSE if its price exceeds its estimate by GAP of the
    least excess seen, by all of it for the same tile of results; or after MOST_PRICED that fit. A large excess tells
    nothing of candidates that split other indices or make another number of results.
    """
    best = known
    refused: Refused | None = None
    fitting, tried = list[Choice](), 0
    excess = known.cost - known.ranked.cost if known is not None else 0.0
    before: Ranked | None = None
    seen = _PricedTiles(tiling)
    for ranked in found:
        limit = inf if best is None else best.cost * (1 - CLOSE)
        if ranked.cost >= limit:
            break
        if seen.expected(ranked, excess) >= limit:
            continue
        if before is not None and before.cost == ranked.cost and sorted(before.sizes) == sorted(ranked.sizes):
            continue  # the same tile with two indices exchanged
        tried += 1
        try:
            priced = price(ranked.sizes)
        except StripeError as error:
            refused = Refused(ranked, error.reason)
            if not fitting and tried == MOST_REFUSED:
                break
            continue
        full, memory = max(((share, name) for name, share in priced.fullness.items()), default=(0.0, ""))
        if full > 1:
            refused = Refused(ranked, f"it takes {full:.3g} times the memory {memory}", full)
            if not fitting:
                break
            continue
        before = ranked
        cost = priced.cycles + tiling.move_weight(ranked)
        is_refuted = refutes(ranked, cost, excess)
        excess = min(excess, cost - ranked.cost) if fitting else cost - ranked.cost
        seen.add(ranked, cost - ranked.cost)
        fitting.append(Choice(ranked, priced, cost, tried))
        if best is None or cost < best.cost:
            best = fitting[-1]
        if is_refuted or len(fitting) == MOST_PRICED:
            break
    if refused is not None and not fitting:
        return refused
    if best is None or best is known:
        return None
    return replace(best, priced=tried).beside(fitting)


@dataclass(frozen=True, slots=True)
class _PricedTiles:
    """The excesses of prices over their estimates, least first, by the tile of results; and the shapes of tiles."""

    tiling: Tiling
    shapes: set[tuple[int, tuple[bool, ...]]] = field(default_factory=set[tuple[int, tuple[bool, ...]]])
    excesses: dict[tuple[int, ...], float] = field(default_factory=dict[tuple[int, ...], float])

    def expected(self, tile: Ranked, excess: float) -> float:
        """A price that a tile hardly falls below, given the least `excess` of all."""
        is_telling = self._shape(tile) in self.shapes or excess <= UNSURE * tile.cost
        least = GAP * excess if is_telling else 0.0
        return tile.cost + max(least, self.excesses.get(self._results(tile), least))

    def add(self, tile: Ranked, excess: float) -> None:
        self.shapes.add(self._shape(tile))
        results = self._results(tile)
        self.excesses[results] = min(excess, self.excesses.get(results, inf))

    def _results(self, tile: Ranked) -> tuple[int, ...]:
        return tuple(tile.sizes[column] for column in sorted(self.tiling.out_columns))

    def _shape(self, tile: Ranked) -> tuple[int, tuple[bool, ...]]:
        """The number of tiles of results, and the indices that are split."""
        pairs = list(zip(tile.sizes, self.tiling.ranges, strict=True))
        count = prod(
            -(-whole // size) for n, (size, whole) in enumerate(pairs) if n in self.tiling.out_columns
        )
        return count, tuple(size < whole for size, whole in pairs)
