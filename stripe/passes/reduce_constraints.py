"""The pass `reduce_constraints`."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from stripe.ir import Affine, Block, Index, Nest, Program, substitute
from stripe.passes.base import Pass, PassContext, Reqs
from stripe.passes.common.nests import rewrite_below, rewrite_nests
from stripe.poly import simplify_block, tighten


class ReduceConstraints(Pass):
    """Drops constraints that others imply, shrinks index ranges to the points that there are, and drops empty blocks.

        block [x:10] (                             block [x:7] (
            -2 + x >= 0                     =>         in<[0]> I[2 + x] …
            8 - x >= 0
            in<[0]> I[x] …

    Exact: by integer sets under all that the blocks outside imply. Floors and remainders that are constant
    there vanish.
    """

    pass_name: ClassVar[str] = "reduce_constraints"
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("main",)
    skip_idxs: tuple[str, ...] = Field(
        default=(), description="keep the range of indices that have one of these tags"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        def reduce(nest: Nest) -> Block | None:
            reduced = _reduced(nest, self.skip_idxs)
            if reduced is None:
                context.applied(nest.block, "dropped: it has no point")
            elif reduced is not nest.block:
                counts = f"{len(nest.block.constraints)} constraints become {len(reduced.constraints)}"
                context.applied(reduced, f"{counts}, {nest.block.points} points {reduced.points}")
            return reduced

        def below(nest: Nest) -> Block:
            return rewrite_below(nest, reduce) or replace(nest.block, statements=())

        return rewrite_nests(program, self.reqs, below)


def reduce_nest(nest: Nest) -> Block | None:
    """The innermost block of `nest` and all inside it, reduced; None when it has no point."""
    return rewrite_below(nest, lambda inner: _reduced(inner, ()))


def _reduced(nest: Nest, skip: tuple[str, ...]) -> Block | None:
    """One block reduced, those inside left; the same object when nothing changed."""
    shrunk = _shrunk(nest, skip)
    return None if shrunk is None else simplify_block(nest.with_block(shrunk))


def _shrunk(nest: Nest, skip: tuple[str, ...]) -> Block | None:
    """The block with each iterated index cut to its exact interval and starting at 0; None without points."""
    block = nest.block
    if not block.constraints:
        return block
    intervals = tighten(nest.domain)
    if intervals is None:
        return None
    starts: dict[str, Affine] = {}
    indices: list[Index] = []
    for index in block.indices:
        low, high = (0, 0) if index.is_passed else intervals[_own_name(nest, index)]
        if index.is_passed or index.tags.has_any(skip) or (low, high) == (0, index.range - 1):
            indices.append(index)
            continue
        indices.append(replace(index, range=high - low + 1))
        if low:
            starts[index.name] = Affine.var(index.name) + low
    return (
        block
        if tuple(indices) == block.indices
        else replace(substitute(block, starts), indices=tuple(indices))
    )


def _own_name(nest: Nest, index: Index) -> str:
    name = nest.local[index.name].single_name
    assert name is not None
    return name
