"""Searches of tiles for the blocks of a program, under the prices of the rest of the pass list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf, prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from stripe.cost.time.price import Price
from stripe.cost.time.tiles import ALL_STAYS, NONE_STAYS, Retention
from stripe.ir import Block, Program, Tags, content_key, replace_at
from stripe.ir.content import ContentKey
from stripe.ir.frozen import replace
from stripe.passes.autotile.choice import CLOSE, Choice, PriceOf, Refused, choose
from stripe.passes.autotile.search import Ranked, TileSearch
from stripe.passes.autotile.tiling import UNSURE, Tiling, candidate_sizes, cost_text
from stripe.passes.base import PassContext, Refusal
from stripe.rewrite.excerpt import Companies, excerpt, unnamed
from stripe.rewrite.tile import tile_block

if TYPE_CHECKING:
    from stripe.passes.autotile.autotile import Autotile

SHOWN = 10
"""Candidates in the table."""

MOST_SIZES = 1 << 24
"""The largest range of an index: the search looks at each of its sizes."""

MOST_POINTS = 1 << 62
"""Points of a block that 64 bits count."""

MOST_ROUNDS = 12
"""Searches of one block, each under a tighter limit, until a tile fits the rest of the list."""

ROOM = 0.97
"""Part of the bytes beside a tile that other blocks are taken to need at least."""

Kind: TypeAlias = tuple[ContentKey, ...]
"""The contents of a block and of the blocks that may come to run with it."""

PARTS_LAST = ((False, False), (False, True), (True, True))
PARTS_FIRST = PARTS_LAST[::-1]
"""Searches: whether parts of sums are candidates, and whether data stay in the memory."""


@dataclass(frozen=True)
class _Searched:
    """A search with the best candidates of `tiles` in all, and the choice among them by exact price."""

    tiling: Tiling
    search: TileSearch
    tiles: int
    found: list[Ranked]
    choice: Choice | None = None

    @property
    def best(self) -> Ranked:
        """The choice, or else the first candidate; there has to be a candidate."""
        return self.found[0] if self.choice is None else self.choice.ranked

    @cached_property
    def description(self) -> str:
        """`best` in words. (Equal blocks share it.)"""
        said = self.tiling.describe(self.best)
        if self.choice is None:
            return said
        price, cycles = self.choice.price, cost_text(self.choice.price.cycles)
        said = f"{said}; {cycles} cycles with what runs with it, of {self.choice.priced} priced exactly"
        if (other := self.choice.thrifty) is None:
            return said
        slower, saved = other.price.cycles / price.cycles - 1, 1 - other.price.energy_pJ / price.energy_pJ
        tile = self.tiling.tile_text(other.ranked.sizes)
        return f"{said}; {tile} takes {slower:.1%} more time and {saved:.0%} less energy"

    @cached_property
    def table(self) -> str:
        """The candidates as a table."""
        return self.tiling.table(self.search, self.tiles, self.found)


class BlockTiler:
    """The tiles of the blocks of a program. Blocks that differ in names alone are searched once."""

    def __init__(self, options: Autotile, program: Program, context: PassContext) -> None:
        self.options, self.program, self.context = options, program, context
        try:
            statements = program.main.statements
        except ValueError:
            statements = ()
        self._numbers = {id(statement): number for number, statement in enumerate(statements)}
        self._companies = Companies(statements)
        self._named = context.words_named()
        self._known: dict[Kind, _Searched] = {}
        self._searches: dict[tuple[object, ...], _Searched] = {}
        # By the tags of a block and of its company: the data that stay in the memory from tile to tile, and bytes
        # beside those of a tile.
        self._kept: dict[tuple[Tags, ...], Retention] = {}
        self._beside: dict[tuple[Tags, ...], float] = {}

    def tiled(self, block: Block) -> Block | Refusal:
        """The block in the best tiles."""
        refusal = _unsearchable(block)
        if refusal is not None:
            return refusal
        number = self._numbers.get(id(block)) if self.options.memory else None
        group = self._companies.of(number) if number is not None else ()
        statements = self.program.main.statements if group else ()
        partners = (s for n in group if isinstance(s := statements[n], Block))
        anonymous = [unnamed(each, self._named) for each in (block, *partners)]
        kind, tags = tuple(map(content_key, anonymous)), tuple([each.tags for each in anonymous])
        rank = self.options.ranks.get(block.name, 0)
        is_first = kind not in self._known
        if is_first and not rank:
            priced = self._priced(block, tags, number, group)
            self._known[kind] = priced or self._searched(self._tiling(block))
        known = self._searched(self._tiling(block), wanted=rank + 1) if rank else self._known[kind]
        tiling, found = known.tiling, known.found
        if not found:
            return tiling.refusal([int(sizes[0]) for sizes in known.search.candidates])
        for name, size in zip(tiling.names, tiling.ranges, strict=True):
            if (wanted := self.options.fixed.get(name, size)) > size:
                self.context.analysis(
                    block, f"index {name} gets its whole range {size}, fewer than the fixed {wanted}"
                )
        self.context.analysis(block, known.table)
        best = found[min(rank, len(found) - 1)] if rank else known.best
        # Of equal blocks the first has the names of the priced statements.
        cycles = tuple(known.choice.price.statements.items()) if known.choice is not None and is_first else ()
        self.context.applied(block, tiling.describe(best) if rank else known.description, cycles)
        return self._split(block, best.sizes)

    def _tiling(self, block: Block, *, stencils: bool = False) -> Tiling:
        return Tiling(self.options, block, self.context.hardware, stencils=stencils)

    def _searched(
        self, tiling: Tiling, *, sums: bool = True, wanted: int = SHOWN, below: float = inf
    ) -> _Searched:
        """The search of the `wanted` best candidates that cost less than `below`; blocks of equal content share it.

        Of sizes that make the same number of tiles the smallest is looked at: no tile has more points or touches more
        elements. In cycles another may be better: of 13 in two tiles, 8 and 5 fill vectors of 4 where 7 and 6 do not.
        """
        wanted = max(SHOWN, wanted)
        kept = tiling.times and tiling.times.kept
        content = content_key(unnamed(tiling.block, self._named))
        key = (content, tiling.uses_stencils, tiling.beside, sums, kept, wanted, below)
        if key in self._searches:
            return replace(self._searches[key], tiling=tiling)
        sizes = candidate_sizes(self.options, tiling, sums=sums)
        counts = (-(-size // each) for size, each in zip(tiling.ranges, sizes, strict=True))
        firsts = (np.sort(np.unique(count, return_index=True)[1]) for count in counts)
        smallest = [each[first] for each, first in zip(sizes, firsts, strict=True)]
        search = TileSearch(smallest, tiling.ranges, tiling.lower_bound, wanted, below)
        self._searches[key] = _Searched(tiling, search, prod(map(len, sizes)), search.run())
        return self._searches[key]

    def _priced(
        self, block: Block, tags: tuple[Tags, ...], number: int | None, group: Sequence[int]
    ) -> _Searched | None:
        """The search whose best candidates are priced exactly, as the rest of the list makes them; None where it
        refuses them, or leaves the memory empty."""
        ask = self.context.price
        if ask is None or number is None:
            return None
        before = excerpt(self.program, group)
        path = (0, 0, group.index(number))

        @cache
        def price_of(sizes: tuple[int, ...]) -> Price:
            # Its dependences are numbers of statements of the excerpt.
            entry = replace_at(
                before.entry, path, lambda alone: replace(self._split(block, sizes), deps=alone.deps)
            )
            return ask(replace(before, entry=entry))

        for stencils in (True, False):
            known = self._cheapest(block, tags, price_of, stencils=stencils)
            if known is None or known.choice is None:
                return None
            price = known.choice.price
            if not price.fullness.get(self.options.memory):
                return None
            if not known.tiling.uses_stencils or any(rule.startswith("stencil") for rule in price.rules):
                return known
        return None

    def _cheapest(
        self, block: Block, tags: tuple[Tags, ...], price: PriceOf, *, stencils: bool
    ) -> _Searched | None:
        """The cheapest of three searches: parts of sums and whole sums as if the memory kept the data that the rest of
        the list keeps there, and whole sums as if each tile brought all its data. A later search has to promise more
        than CLOSE. Each is made again under a tighter limit until a tile fits the rest of the list, and under another
        residency where a price refutes the assumed one. Limit and residency hold for blocks of the same tags, too.
        """
        best: _Searched | None = None
        whole = tiling = self._tiling(block, stencils=stencils)

        def refutes(ranked: Ranked, cost: float, excess: float) -> bool:
            assert tiling.times is not None
            explained = tiling.explained(ranked, cost, excess)
            if explained != tiling.times.kept:
                self._kept[tags] = explained
            return explained != tiling.times.kept

        wanted = self._cost_of_parts(whole, tags)
        for sums, resident in PARTS_LAST if wanted is None else PARTS_FIRST:
            beside = ROOM * self._beside.get(tags, 0.0)
            below = wanted if wanted is not None and sums else inf
            if best is not None and best.choice is not None:
                below = (best.found[0].cost if wanted is None else best.choice.cost) * (1 - CLOSE)
            for _ in range(MOST_ROUNDS):
                choice = best and best.choice
                kept = self._kept.get(tags, ALL_STAYS) if resident else NONE_STAYS
                if resident and not (sums or kept.shared):
                    break  # as if nothing stayed
                tiling = whole.assuming(kept, beside)
                if below < inf and tiling.bound() >= below:
                    break
                known = self._searched(tiling, sums=sums, below=below)
                if not known.found:
                    break
                answer = choose(known.found, price, tiling, refutes, choice)
                if wanted is not None and choice is None:
                    below = inf  # whole sums, too, may need more room than it seemed
                if isinstance(answer, Refused):
                    beside = tiling.tighten(answer.ranked, answer.fullness)
                    if answer.fullness:
                        self._beside[tags] = beside
                    continue
                now = self._kept.get(tags, ALL_STAYS) if resident else kept
                if answer is not None:
                    # A price that refutes an assumption says nothing of the excess of others.
                    cost = tiling.assuming(now, beside).estimate(answer.ranked.sizes)
                    answer = replace(answer, ranked=replace(answer.ranked, cost=cost))
                    best = replace(known, choice=answer)
                if now == kept:
                    break
        return best

    def _cost_of_parts(self, whole: Tiling, tags: tuple[Tags, ...]) -> float | None:
        """The cost that parts of sums have to fall below to be better than whole sums; None unless their estimates
        promise so much that whole sums need no price."""
        beside = ROOM * self._beside.get(tags, 0.0)
        sums = self._searched(whole.assuming(NONE_STAYS, beside), sums=False).found
        if not sums:
            return None
        below = sums[0].cost * (1 - CLOSE)
        kept = self._kept.get(tags, ALL_STAYS)
        parts = self._searched(whole.assuming(kept, beside), sums=True, below=below).found
        return below if parts and parts[0].cost < (1 - UNSURE) * below else None

    def _split(self, block: Block, sizes: Sequence[int]) -> Block:
        names = (index.name for index in block.iterated)
        inner_set, outer_set = self.options.inner_set, self.options.outer_set
        tiled = tile_block(block, dict(zip(names, sizes, strict=True)), inner_set=inner_set)
        return replace(tiled, tags=tiled.tags.add(*outer_set))


def _unsearchable(block: Block) -> Refusal | None:
    """The reason why the search cannot look at the block; None where it can."""
    if not block.iterated:
        return Refusal("it has no index")
    if prod(index.range for index in block.iterated) > MOST_POINTS:
        return Refusal(f"more than {MOST_POINTS} points, which costs are not counted for")
    largest = max(block.iterated, key=lambda index: index.range)
    if largest.range > MOST_SIZES:
        return Refusal(f"index {largest.name} has range {largest.range}, the search goes up to {MOST_SIZES}")
    return None
