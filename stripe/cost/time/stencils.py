"""Matching a block against stencils: a search over its access matrix.

Row i of the access matrix holds, for each output and input, by how many elements one step of index i moves it. A
stencil demands rows; to match is to give each of its indices a row of its own. The rows that fit each stencil index
are found first, then a search over those lists takes the cheapest choice, so that the work follows the number of rows
that fit, not the number of permutations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import TypeAlias

from stripe.cost.counts.operations import widenings
from stripe.hw.engines import Stencil, StencilIndex
from stripe.ir import Block, Intrinsic, Load, Refinement, Store, element_offset, step


@dataclass(frozen=True, slots=True)
class Match:
    """A stencil with the index of the block for each of its indices ("" where it works on a single point)."""

    stencil: Stencil
    names: tuple[str, ...]
    tiles: tuple[int, ...]
    cost: float
    uses: int


@dataclass(frozen=True, slots=True)
class Body:
    """The computation of a leaf block at a point: one combination of its loads, each as it is or widened, stored by one
    aggregation."""

    combination: str
    inputs: tuple[Refinement, ...]
    output: Refinement


def body_of(block: Block) -> Body | str:
    """The body of a contraction; the reason where the block is none."""
    loads = {s.into: block.ref(s.ref) for s in block.statements if isinstance(s, Load)}
    stores = [s for s in block.statements if isinstance(s, Store)]
    others = [s for s in block.statements if not isinstance(s, Load | Store)]
    factors = dict(loads)
    for cast in widenings(block):
        factors[cast.into] = loads[cast.inputs[0]]
        others.remove(cast)
    if len(stores) != 1 or len(others) > 1 or not all(isinstance(s, Intrinsic) for s in others):
        return (
            f"its body is no contraction: {len(loads)} loads, {len(others)} operations, {len(stores)} stores"
        )
    operation = others[0] if others else None
    if operation is None:
        return Body("", tuple(loads.values()), block.ref(stores[0].ref))
    assert isinstance(operation, Intrinsic)
    if stores[0].value != operation.into or any(name not in factors for name in operation.inputs):
        return "its body is no contraction: what is stored is not the operation on the loads"
    return Body(operation.op, tuple(factors[name] for name in operation.inputs), block.ref(stores[0].ref))


def unfit(body: Body, stencil: Stencil) -> str:
    """The reason why the stencil cannot compute the body; empty when it can."""
    if stencil.combination is not None and stencil.combination != body.combination:
        return f"it combines by {stencil.combination}, the block by {body.combination or 'nothing'}"
    if stencil.aggregation is not None and stencil.aggregation is not body.output.agg:
        return f"it aggregates by {stencil.aggregation.value}, the block by {body.output.agg.value}"
    for ref in body.inputs:
        if stencil.dtypes and ref.dtype.name not in stencil.dtypes:
            return f"it takes {', '.join(stencil.dtypes)}, {ref.name} is {ref.dtype}"
        accumulator = stencil.accumulator or ref.dtype.name
        if body.output.dtype.name != accumulator:
            return f"it sums {ref.dtype} in {accumulator}, {body.output.name} is {body.output.dtype}"
    rules = stencil.idxs[0]
    if (len(rules.outs), len(rules.ins)) != (1, len(body.inputs)):
        return f"it has {len(rules.ins)} inputs and {len(rules.outs)} outputs, the block {len(body.inputs)} and 1"
    return ""


def find_matches(block: Block, body: Body, stencil: Stencil, *, strict: bool = False) -> list[Match]:
    """All matches over all orders of the inputs, the one of the least cost first.

    Cost: points computed, padding included, plus `startup_cost` for each use of the stencil (PlaidML 0.7's
    formula). With `strict` a tile divides its range, and an index that a constraint mentions is matched whole or not at
    all.
    """
    if unfit(body, stencil):
        return []
    place = element_offset(body.output)
    output = [step(place, index.name) for index in block.iterated]
    places = [element_offset(ref) for ref in body.inputs]
    inputs = [[step(place, index.name) for index in block.iterated] for place in places]
    ranges = {index.name: index.range for index in block.iterated}
    matches = (
        _costed(ranges, stencil, choice)
        for order in permutations(inputs)
        for choice in _choices(
            [_candidates(block, rules, (output, *order), strict) for rules in stencil.idxs]
        )
    )
    return sorted(dict.fromkeys(matches), key=lambda match: (match.cost, match.uses, match.names))


def _candidates(
    block: Block, rules: StencilIndex, steps: Sequence[Sequence[int | None]], strict: bool
) -> list[tuple[str, int]]:
    """Indices whose row fits, with the tile; a stencil index that need move no operand also fits no index at all.
    `steps` has for each operand the elements by which each iterated index moves it.
    """
    found: list[tuple[str, int]] = []
    wanted = (*rules.outs, *rules.ins)
    constrained = {name for constraint in block.constraints for name in constraint.affine.names()}
    for number, index in enumerate(block.iterated):
        row = [operand[number] for operand in steps]
        if any(
            s is None or (rule != -1 and rule != s) for rule, s in zip(wanted, row, strict=True)
        ) or not any(row):
            continue
        tile = index.range if rules.size == -1 else min(rules.size, index.range)
        uneven = tile != index.range and (index.range % tile or index.name in constrained)
        if strict and (uneven or tile < rules.size):
            continue
        found.append((index.name, tile))
    if all(rule in (-1, 0) for rule in wanted) and (rules.size in (-1, 1) or not strict):
        found.append(("", 1))
    return found


_Choice: TypeAlias = tuple[tuple[str, ...], tuple[int, ...]]
"""For each stencil index an index of the block, or "", and the tile."""


def _choices(candidates: Sequence[Sequence[tuple[str, int]]]) -> list[_Choice]:
    """All ways to give each stencil index a candidate of its own, at least one of them an index of the block."""
    found: list[_Choice] = [((), ())]
    for each in candidates:
        found = [
            ((*names, name), (*tiles, tile))
            for names, tiles in found
            for name, tile in each
            if not name or name not in names
        ]
    return [choice for choice in found if any(choice[0])]


def _costed(ranges: Mapping[str, int], stencil: Stencil, choice: _Choice) -> Match:
    names, tiles = choice
    points = uses = prod(ranges.values())
    for rules, name, tile in zip(stencil.idxs, names, tiles, strict=True):
        lanes = tile if rules.size == -1 else rules.size  # lanes without work count too
        if name:
            count = -(-ranges[name] // tile)
            uses = uses // ranges[name] * count
            points = points // ranges[name] * (count * lanes)
        elif rules.size != -1:
            points *= lanes
    return Match(stencil, names, tiles, points + stencil.startup_cost * uses, uses)
