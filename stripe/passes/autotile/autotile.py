"""The pass `autotile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, prod
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from stripe.cost.counts.tiles import Ints
from stripe.cost.time.price import Price
from stripe.ir import (
    Block,
    Program,
    rename_refinements,
    rename_scalars,
    replace_at,
    rewrite_matching,
    scalar_defined,
    with_entry,
)
from stripe.passes.autotile.choice import CLOSE, Choice, Refused, choose, company
from stripe.passes.autotile.search import Ranked, TileSearch
from stripe.passes.autotile.tiling import Tiling, cost_text
from stripe.passes.base import (
    UNIT_NAME,
    Pass,
    PassContext,
    PassExample,
    PassGroup,
    Refusal,
    Reqs,
    TagReqs,
    TagSet,
    matching,
)
from stripe.rewrite.excerpt import excerpt
from stripe.rewrite.tile import tile_block

SHOWN = 10
"""Candidates in the table."""

MOST_SIZES = 1 << 24
"""The largest range of an index: the search looks at each of its sizes."""

MOST_POINTS = 1 << 62
"""Points of a block that 64 bits count."""

MOST_ROUNDS = 12
"""Searches of one block, each under a tighter limit, until a tile fits the rest of the list."""


class Autotile(Pass):
    """Splits a block into tiles of the sizes that cost least, of all that keep the limits.

    `{ "reqs": ["conv"], "max_total_size": 512, "outer_set": ["conv"], "inner_set": ["conv_inner"] }`:

        #conv block [k:3, x:1000] (                    #conv block [k:1, x:4] (
            in<DRAM[0]> I[k + x] i8(1:1)                   in<DRAM[0]> I[250*x] i8(252:1)
            in<DRAM[0]> K[k] i8(1:1)               =>      in<DRAM[0]> K[0] i8(3:1)
            out<DRAM[0]> O[x]:add i8(1:1)                  out<DRAM[0]> O[250*x]:add i8(250:1)
        ) { … }                                        ) {
                                                         0: #conv_inner block [k:3, x:250] (
                                                             in<DRAM[0]> I[k + x] i8(1:1)
                                                             in<DRAM[0]> K[k] i8(1:1)
                                                             out<DRAM[0]> O[x]:add i8(1:1)
                                                         ) { … } }

    The elements that a tile touches are counted exactly, halos and strides included. With `memory`, a tile has to fit
    into that memory of the hardware model, `pipeline_depth` times so that transfers overlap with computing. Its cost is
    the cycles of all tiles by the rules of the simulator: partial uses of stencils, folds, filling and draining of an
    array, and the traffic of operands on each bus; and a hundredth of the cycles of transfers, so that of equally quick
    tiles the one that moves less is best. The best few are priced exactly: the rest of the pass list runs on the block
    with its epilogues, and the result is simulated. A tile that the rest refuses, or that overfills a memory, is not
    taken. Without `memory` the cost is the cache lines that all tiles touch for each point, by PlaidML's formula.
    The search is complete, and the remarks list the best ten. Ties go to fewer tiles, then to smaller sizes of earlier
    indices.
    """

    pass_name: ClassVar[str] = "autotile"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[contraction],max_total_size=4096")
    refused: ClassVar[str] = "not tiled"

    reqs: Reqs = ("kernel",)
    exclude: TagReqs = Field(default=(), description="tags that a block may not have")
    outer_set: TagSet = Field(default=(), description="tags that the outer block gets")
    inner_set: TagSet = Field(default=(), description="tags that the inner block gets")

    memory: str = Field(default="", description="memory of the hardware model that a tile has to fit into")
    pipeline_depth: int | None = Field(
        default=None, ge=1,
        description="tiles that share the memory, 2 for double buffering; default: that of the execution unit",
    )  # fmt: skip
    unit: str = Field(
        default="", pattern=UNIT_NAME,
        description="execution unit of the tiles; that of the block's location, or the quickest, where empty",
    )  # fmt: skip
    units: int | Literal["all"] = Field(
        default=1,
        description="units of the kind that share the work of each tile, as `partition` behind it gives it to them",
    )
    cache_width: int = Field(
        default=0, ge=0, description="without memory: bytes of a cache line; 0: each element is one"
    )

    only_po2: bool = Field(default=False, description="only sizes that are powers of two, or the whole range")
    only_even: bool = Field(default=False, description="only sizes that divide the range")
    vector_bytes: int = Field(
        default=0,
        ge=0,
        description="an index along which the outputs are contiguous gets whole multiples of this many bytes, or its "
        "whole range; 0: any size",
    )
    acc_idxs: bool = Field(default=True, description="whether indices that no output uses may be tiled")
    fixed: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict[str, int], description="the size of an index, by its name, instead of a search"
    )

    ranks: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict[str, int],
        description="for a block, by its name: how many better tiles are passed over; `--tune` sets it",
    )

    max_per_input_size: int = Field(
        default=0, ge=0,
        description="most bytes that a tile reads of any view (inout counts too); 0: no limit, as in all that follow",
    )  # fmt: skip
    max_output_size: int = Field(
        default=0, ge=0, description="most bytes that a tile writes (inout counts too)"
    )
    max_per_output_size: int = Field(default=0, ge=0, description="the same, of any one view")
    max_total_size: int = Field(default=0, ge=0, description="most bytes of a tile, each view counted once")

    def run(self, program: Program, context: PassContext) -> Program:
        if self.memory:
            context.need_hardware(f"autotile into the memory '{self.memory}'")
        names = (index.name for block in matching(program, self.reqs) for index in block.iterated)
        context.unknown_names("fixed", "index", self.fixed, names)
        run = _Run(self, program, context)

        def tile(block: Block) -> Block:
            excluded = block.words.has_any(self.exclude)
            return block if excluded else self.settled(block, run.tiled(block), context)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, tile))

    @override
    def settings(self, program: Program, context: PassContext, count: int) -> Sequence[Sequence[Pass]]:
        """For each block the tiles of the first ranks."""
        blocks = matching(program, self.reqs)
        names = dict.fromkeys(block.name for block in blocks if not block.words.has_any(self.exclude))
        return [
            [self.model_copy(update={"ranks": self.ranks | {name: rank}}) for rank in range(count)]
            for name in names
        ]

    def candidates(self, tiling: Tiling, *, sums: bool) -> list[Ints]:
        """The sizes to try of each index, ascending; with or without parts of sums."""
        found: list[Ints] = []
        lanes = tiling.lanes(self.vector_bytes)
        for column, (name, size) in enumerate(zip(tiling.names, tiling.ranges, strict=True)):
            sizes = np.arange(1, size + 1, dtype=np.int64)
            if self.only_even:
                sizes = sizes[size % sizes == 0]
            if self.only_po2:
                sizes = sizes[(sizes & (sizes - 1) == 0) | (sizes == size)]
            if name in lanes:
                whole = (sizes % lanes[name] == 0) & (size > lanes[name])
                sizes = sizes[whole | (sizes == size)]
            if not sums and column not in tiling.out_columns:
                sizes = sizes[-1:]
            if name in self.fixed:
                sizes = np.array([min(self.fixed[name], size)], dtype=np.int64)
            found.append(sizes)
        return found


@dataclass(frozen=True, slots=True)
class _Searched:
    """A search with the best candidates of `tiles` in all, and the one that is cheapest when priced exactly."""

    tiling: Tiling
    search: TileSearch
    tiles: int
    found: list[Ranked]
    choice: Choice | Refused | None = None

    @property
    def price(self) -> float | None:
        """The cost of the choice."""
        return self.choice.cost if isinstance(self.choice, Choice) else None


class _Run:
    """One run of the pass on a program. Blocks that differ in names alone are searched once."""

    def __init__(self, options: Autotile, program: Program, context: PassContext) -> None:
        self.options, self.program, self.context = options, program, context
        try:
            statements = program.main.statements
        except ValueError:
            statements = ()
        self._numbers = {id(statement): number for number, statement in enumerate(statements)}
        self._known: dict[tuple[Block, ...], _Searched] = {}
        self._searches: dict[tuple[object, ...], _Searched] = {}

    def tiled(self, block: Block) -> Block | Refusal:
        """The block in the best tiles."""
        refusal = _unsearchable(block)
        if refusal is not None:
            return refusal
        number = self._numbers.get(id(block)) if self.options.memory else None
        group = company(self.program, number) if number is not None else ()
        statements = self.program.main.statements if group else ()
        partners = (s for n in group if isinstance(s := statements[n], Block))
        kind = (nameless(block), *map(nameless, partners))
        rank = self.options.ranks.get(block.name, 0)
        if kind not in self._known and not rank:
            self._known[kind] = self._priced(block, number, group) or self._searched(self._tiling(block))
        known = self._searched(self._tiling(block), wanted=rank + 1) if rank else self._known[kind]
        tiling, found = known.tiling, known.found
        if not found:
            smallest = [int(sizes[0]) for sizes in known.search.candidates]
            return tiling.refusal(smallest)
        self.context.analysis(block, tiling.table(known.search, known.tiles, found))
        choice = known.choice if isinstance(known.choice, Choice) else None
        best = found[min(rank, len(found) - 1)] if choice is None else choice.ranked
        exact = "" if choice is None else _exact_text(choice)
        self.context.applied(block, tiling.describe(best) + exact)
        return self._split(block, best.sizes)

    def _tiling(self, block: Block, *, stencils: bool = False) -> Tiling:
        return Tiling(self.options, block, self.context.hardware, stencils=stencils)

    def _searched(self, tiling: Tiling, *, sums: bool = True, wanted: int = SHOWN) -> _Searched:
        """Of sizes that make the same number of tiles the smallest is at least as good as the others: no tile has more
        points, touches more elements or takes more instructions. Blocks that differ in what runs with them share it.
        """
        wanted = max(SHOWN, wanted)
        key = (nameless(tiling.block), tiling.uses_stencils, tiling.beside, sums, wanted)
        if key in self._searches:
            return replace(self._searches[key], tiling=tiling)
        sizes = self.options.candidates(tiling, sums=sums and self.options.acc_idxs)
        counts = (-(-size // each) for size, each in zip(tiling.ranges, sizes, strict=True))
        firsts = (np.sort(np.unique(count, return_index=True)[1]) for count in counts)
        smallest = [each[first] for each, first in zip(sizes, firsts, strict=True)]
        search = TileSearch(smallest, tiling.ranges, tiling.price, wanted)
        self._searches[key] = _Searched(tiling, search, prod(map(len, sizes)), search.run())
        return self._searches[key]

    def _priced(self, block: Block, number: int | None, group: Sequence[int]) -> _Searched | None:
        """The search whose best candidates are priced by what the rest of the list makes of them; None where it makes
        nothing of them in the memory.
        """
        price = self.context.price
        if price is None or number is None:
            return None
        before = excerpt(self.program, group)
        path = (0, 0, group.index(number))

        @cache
        def price_of(sizes: tuple[int, ...]) -> Price:
            # The numbers of statements that it waits for are those of the excerpt.
            entry = replace_at(
                before.entry, path, lambda alone: replace(self._split(block, sizes), deps=alone.deps)
            )
            return price(replace(before, entry=entry))

        def priced(ranked: Ranked) -> Price:
            return price_of(ranked.sizes)

        tiling = self._tiling(block, stencils=True)
        for _ in range(MOST_ROUNDS):
            known = self._searched(tiling, sums=False)
            if not known.found or known.found[0].cost > tiling.bound() * (1 + CLOSE):
                known = self._best(known, self._searched(tiling), priced)
            else:
                known = replace(known, choice=choose(known.found, priced, tiling.move_weight))
            choice = known.choice
            if choice is None:
                return None
            if isinstance(choice, Refused):
                tiling.tighten(choice.ranked, choice.fullness)
            elif not choice.price.fullness.get(self.options.memory):
                return None
            elif tiling.uses_stencils and not any(rule.startswith("stencil") for rule in choice.price.rules):
                tiling = self._tiling(block)
            else:
                return known
        return None

    def _best(self, whole: _Searched, parts: _Searched, priced: Callable[[Ranked], Price]) -> _Searched:
        """The better of two searches, without and with tiles that are parts of sums. With parts come loops in loops,
        which the estimate knows less well, and some lists bring the operands of all parts at once.
        """
        best: _Searched | None = None
        refused: Refused | None = None
        for known in (whole, parts):
            limit = inf if best is None or best.price is None else best.price
            found = [ranked for ranked in known.found if ranked.cost < limit]
            answer = choose(found, priced, known.tiling.move_weight, limit) if found else None
            if isinstance(answer, Choice) and answer.cost < limit:
                best = replace(known, choice=answer)
            elif isinstance(answer, Refused):
                refused = answer
        return best or replace(parts, choice=refused)

    def _split(self, block: Block, sizes: Sequence[int]) -> Block:
        names = (index.name for index in block.iterated)
        tiled = tile_block(block, dict(zip(names, sizes, strict=True)))
        (inner,) = tiled.blocks
        inner = replace(inner, tags=inner.tags.add(*self.options.inner_set))
        return replace(tiled, statements=(inner,), tags=tiled.tags.add(*self.options.outer_set))


def _exact_text(choice: Choice) -> str:
    return (
        f"; {cost_text(choice.price.cycles)} cycles with what runs with it, of {choice.priced} priced exactly"
    )


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


def nameless(block: Block) -> Block:
    """`block` with canonical names, so that equal layers of a network compare equal and are searched once.

    Canonical are its own name, those of its refinements and their sources, and of its scalars. Names of indices and
    of blocks inside stay, as do tags, locations and all numbers.
    """
    refs = {ref.name: f"r{number}" for number, ref in enumerate(block.refinements)}
    scalars = (scalar_defined(statement) for statement in block.statements)
    defined = dict.fromkeys(name for name in scalars if name is not None)
    found = rename_refinements(block, refs)
    return replace(
        found,
        name="",
        refinements=tuple(replace(ref, source="s" if ref.source else "") for ref in found.refinements),
        statements=rename_scalars(found.statements, {name: f"v{n}" for n, name in enumerate(defined)}),
        comments=(),
        deps=(),
    )
