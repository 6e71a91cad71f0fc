"""The pass `peel`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Affine,
    Block,
    Index,
    Interval,
    Nest,
    Program,
    Statement,
    splice,
    substitute,
    with_entry,
    with_statements,
)
from stripe.ir.frozen import replace
from stripe.passes.base import TILES, Pass, PassContext, PassExample, PassGroup, Reqs, TagSet
from stripe.poly import Points, pieces
from stripe.rewrite.constraints import reduced_block
from stripe.rewrite.copy import with_beginnings
from stripe.rewrite.nests import rewrite_below


class Peel(Pass):
    """Splits a block into an interior, where no constraint needs testing, and blocks for the edges.

    `{ "reqs": ["conv"] }`:

        #conv block [k:3, x:100] (                   #conv #interior block [k:3, x:98] (
            -1 + k + x >= 0                              in I[k + x]
            100 - k - x >= 0                 =>      #conv #edge block [k:2, x:1] (
            in I[-1 + k + x]                             in I[k + x]
            out O[x]:add                             #conv #edge block [k:2, x:1] (
        ) { … }                                          in I[98 + k + x]

    For each index that constraints of the block or of blocks inside mention, the longest run of values for which they
    all hold whatever the others are is the interior; the rest is split off, one index after the other, those first
    that lose least, so that n indices make at most 2n edges, or 2^n - 1 with `corners`. Ranges and constraints of each
    part are then reduced exactly.
    """

    pass_name: ClassVar[str] = "peel"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[tile]", after=(TILES,))

    reqs: Reqs
    interior_set: TagSet = Field(default=("interior",), description="tags added to the interior")
    edge_set: TagSet = Field(default=("edge",), description="tags added to the edges")
    max_blocks: int = Field(
        default=16, ge=1, description="split off no further edges beyond this many blocks"
    )
    corners: bool = Field(
        default=False,
        description="split edges along the other indices too, where each index has an edge at one end alone, as the "
        "rests of tiles are: each part then has ranges without tests",
    )

    def run(self, program: Program, context: PassContext) -> Program:
        def visit(nest: Nest) -> Block:
            block = nest.block
            statements: list[Statement] = list(block.statements)
            parts: dict[int, list[Block]] = {}
            for number, child in nest.children():
                if child.block.is_main or not child.block.words.has_all(self.reqs):
                    statements[number] = visit(child)
                elif not child.block.words.has_any((*self.interior_set, *self.edge_set)):
                    parts[number] = self._peeled(child, context)
            return splice(with_statements(block, statements), parts)

        return with_beginnings(program, with_entry(program, visit(Nest.root(program.entry))))

    def _peeled(self, nest: Nest, context: PassContext) -> list[Block]:
        block = nest.block
        interior: dict[str, Interval] = {}
        edges: list[dict[str, Interval]] = []
        cuts: dict[str, list[Interval]] = {}
        tests = _tests(nest)
        # Indices that lose the smallest share of their values go first: later ones may then need no split any more.
        lost: dict[str, float] = {}
        for index in block.iterated:
            good = _interior(nest, tests, index)
            lost[index.name] = 1.0 if good is None else 1 - (good[1] - good[0] + 1) / index.range
        for index in sorted(block.iterated, key=lambda index: lost[index.name]):
            good = _interior(nest, tests, index)
            if good == (0, index.range - 1):
                continue
            if good is None:
                reason = f"constraints matter for each of its {index.range} values"
                context.missed(block, f"{index.name} is not peeled: {reason}")
                continue
            below, above = (0, good[0] - 1), (good[1] + 1, index.range - 1)
            outside = [part for part in (below, above) if part[0] <= part[1]]
            if len(edges) + len(outside) + 1 > self.max_blocks:
                reason = f"that makes more than {self.max_blocks} blocks"
                context.missed(block, f"{index.name} is not peeled: {reason}")
                continue
            edges += [interior | {index.name: part} for part in outside]
            interior[index.name] = good
            cuts[index.name] = [good, *outside]
            tests = _tests(nest.with_block(_restricted(block, interior)))
        if not interior:
            return [block]
        one_end = all(len(parts) == 2 for parts in cuts.values())
        if self.corners and one_end and prod(map(len, cuts.values())) <= self.max_blocks:
            edges = [dict(zip(cuts, parts, strict=True)) for parts in product(*cuts.values())][1:]
        inner = _restricted(block, interior)
        kept = [replace(inner, tags=inner.tags.add(*self.interior_set))]
        for part in edges:
            edge = _restricted(block, part)
            kept.append(replace(edge, tags=edge.tags.add(*self.edge_set)))
        below = (rewrite_below(nest.with_block(part), reduced_block) for part in kept)
        reduced = [part for part in below if part is not None]
        text = ", ".join(f"{name} in {low}..{high}" for name, (low, high) in interior.items())
        share = inner.points / block.points * 100
        count = len(reduced) - 1
        said = f"{count} edge{'s' * (count != 1)}"
        context.applied(block, f"interior {text}: {share:.1f} % of the points; {said}")
        return reduced


@dataclass(frozen=True, slots=True)
class _Test:
    """A constraint on indices in these intervals."""

    affine: Affine
    names: frozenset[str]
    ranges: Mapping[str, Interval]


def _tests(nest: Nest) -> list[_Test]:
    """The constraints of the innermost block of `nest` and of all inside."""
    found: list[_Test] = []
    for inner in nest.walk():
        affines = (constraint.affine.subs(inner.local) for constraint in inner.block.constraints)
        found += [_Test(affine, affine.names(), inner.domain.ranges) for affine in affines]
    return found


def _interior(nest: Nest, tests: Iterable[_Test], index: Index) -> Interval | None:
    """The longest run of values of an index at which every constraint on it holds; None when there is none."""
    name = nest.local[index.name].single_name
    assert name is not None
    low, high = 0, index.range - 1
    others: list[_Test] = []
    for test in tests:
        if name not in test.names:
            continue
        if not test.affine.is_linear:
            others.append(test)
            continue
        step = test.affine.coeff(name)
        least = (test.affine - Affine.var(name) * step).bounds(test.ranges)[0]
        if step > 0:  # step * value + least >= 0
            low = max(low, -(least // step))
        else:
            high = min(high, least // -step)
    if low > high or not others:
        return (low, high) if low <= high else None
    good = Points.build((name,), {name: (low, high)})
    for test in others:
        box = Points.build(tuple(test.ranges), test.ranges)
        good = good - box.where([-1 - test.affine]).onto((name,))
    runs = [run for piece in pieces(good.coalesced()) if (run := piece.bounds(name)) is not None]
    return max(runs, key=lambda run: (run[1] - run[0], -run[0]), default=None)


def _restricted(block: Block, intervals: Mapping[str, Interval]) -> Block:
    """The points of `block` with these indices in these intervals; the indices count from 0 again."""
    shifts = {name: Affine.var(name) + low for name, (low, _) in intervals.items() if low}
    indices = tuple(
        replace(index, range=intervals[index.name][1] - intervals[index.name][0] + 1)
        if index.name in intervals
        else index
        for index in block.indices
    )
    return replace(substitute(block, shifts), indices=indices)
