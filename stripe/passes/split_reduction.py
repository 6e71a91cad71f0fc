"""The pass `split_reduction`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Dim,
    Direction,
    Index,
    Refinement,
    Special,
    Tags,
    fresh,
    indices_of,
    step,
    substitute,
)
from stripe.ir.factors import divisors
from stripe.ir.frozen import replace
from stripe.passes.base import BlockPass, PassContext, PassExample, PassGroup, Refusal, Reqs, TagReqs, TagSet
from stripe.rewrite.copy import Element, copy_block
from stripe.rewrite.sharing import sharing
from stripe.rewrite.tile import tile_block


class SplitReduction(BlockPass):
    """Gives each lane of vectors a partial result of its own where a block reduces along contiguous memory.

    `{ "reqs": ["dot"], "vectors": 2, "vector_bytes": 32 }`:

        #dot block [k:100, x:10] (               #dot block [k:1, x:10] (
            in I[x, k] (1:100, 1:1)         =>       none new O_parts[0] (16:1)
            out O[x]:add                         ) {
        ) { … }                                    0: #part block [x:1, k.o:6, k:16] (
                                                       out O = O_parts[k]:add
                                                   1: #part block [x:1, k:4] (
                                                       out O = O_parts[k]:add
                                                   2: #total block [k:16] (
                                                       in O_parts[k]
                                                       out O[0]:add

    The same contributions reach the same elements, by way of partial results of their monoid: a float sum is rounded
    otherwise. Blocks that `vectorize` takes without that are left alone.
    """

    pass_name: ClassVar[str] = "split_reduction"
    refused: ClassVar[str] = "not split"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[contraction],vector_bytes=16,vectors=1")

    reqs: Reqs
    exclude: TagReqs = Field(default=(), description="tags that a block may not have")
    vectors: int = Field(default=4, ge=1, description="vectors of partial results of an element, at most")
    vector_bytes: int = Field(gt=0, description="width of a vector in bytes")
    shared: int = Field(
        default=0,
        ge=0,
        description="leave blocks alone that `vectorize` would take if elements that this many points share lay "
        "otherwise: a copy of these elements is better; 0: none",
    )
    rows: int = Field(
        default=1,
        ge=1,
        description="results that are reduced together, along an index with which an operand does not move: it is "
        "loaded once for them, and the others are read in so many streams. Above 1 blocks without such an operand are "
        "left alone",
    )
    outer_set: TagSet = Field(default=(), description="tags added to the block of elements")

    def rewrite(self, block: Block, context: PassContext) -> Block | Refusal:
        if block.words.has_any(self.exclude):
            return block
        lanes = self.vector_bytes // max((ref.dtype.bytes for ref in block.refinements), default=1)
        refusal = _unfit(block) or self._covered(block, lanes)
        if refusal is not None:
            return refusal
        # an index that moves no output, and inputs by one element or none, far enough for vectors
        found = [
            index
            for index in block.iterated
            if lanes > 1
            and index.range >= 2 * lanes
            and _is_summed(block, index)
            and {step(ref, index.name) for ref in block.inputs} in ({1}, {0, 1})
        ]
        if not found:
            return Refusal(f"no reduction runs along {2 * lanes} elements of memory or more")
        along = max(found, key=lambda index: index.range)
        shared = [index for index in block.iterated if _is_shared(block, index)]
        if self.rows > 1 and not shared:
            return Refusal("no index moves results and not all operands")
        sizes: dict[str, int] = {}
        if self.rows > 1:
            row = max(shared, key=lambda index: index.range)
            sizes[row.name] = _together(row.range, self.rows)
        vectors = min(self.vectors, along.range // (2 * lanes))
        results = "".join(f", of {size} results along {name}" for name, size in sizes.items())
        context.applied(
            block,
            f"{along.name}: partial results in {vectors} vector{'s' * (vectors > 1)} of {lanes}{results}",
        )
        nest = _split(block, along.name, vectors * lanes, sizes)
        return replace(nest, tags=nest.tags.add(*self.outer_set))

    def _covered(self, block: Block, lanes: int) -> Refusal | None:
        """A refusal where vectors along results are better."""
        for index in block.iterated:
            if index.range < min(lanes, 2) or any(step(ref, index.name) != 1 for ref in block.outputs):
                continue
            far = [ref for ref in block.inputs if step(ref, index.name) not in (0, 1)]
            if not far:
                return Refusal(f"results lie along {index.name}")
            if self.shared and all(_points(block, ref) >= self.shared for ref in far):
                count = _points(block, far[0])
                return Refusal(f"results lie along {index.name}, and {count} points share {far[0].name}")
        return None


def _points(block: Block, ref: Refinement) -> int:
    """The number of points that read the same elements of a view."""
    return prod(index.range for index in sharing(block, ref))


def _unfit(block: Block) -> Refusal | None:
    """A refusal where a block cannot be split whatever its indices are."""
    if any(isinstance(statement, Block | Special) for statement in block.statements):
        return Refusal("it holds more than scalars")
    if block.constraints or block.allocs or any(ref.dir is Direction.INOUT for ref in block.refinements):
        return Refusal("it has constraints, allocations or outputs that it reads")
    if not block.outputs or any(ref.agg is Agg.ASSIGN for ref in block.outputs):
        return Refusal("it assigns")
    return None


def _is_summed(block: Block, index: Index) -> bool:
    return all(step(ref, index.name) == 0 for ref in block.outputs)


def _is_shared(block: Block, index: Index) -> bool:
    """Whether an index moves all results, and some of the operands but not all."""
    operands, results = (
        [index.name in indices_of(ref.access) for ref in refs] for refs in (block.inputs, block.outputs)
    )
    return index.range > 1 and any(operands) and not all(operands) and all(results)


def _together(results: int, most: int) -> int:
    """The number of results that are reduced together: a divisor, so that no group is partial, where there is one."""
    return max((size for size in divisors(results) if 1 < size <= most), default=min(most, results))


def _split(block: Block, along: str, lanes: int, sizes: Mapping[str, int]) -> Block:
    """`block` with `lanes` partial results for each element, of which `sizes` are computed together."""
    elements = (index.name for index in block.iterated if not _is_summed(block, index))
    nest = tile_block(block, {name: sizes.get(name, 1) for name in elements})
    (inner,) = nest.blocks
    rows = tuple(index for index in inner.indices if index.name in sizes)
    place = tuple(Affine.var(row.name) for row in rows)
    names = {ref.name for ref in nest.refinements}
    partial: dict[str, Refinement] = {}
    for ref in inner.outputs:
        # The partial results of an element lie in the memory of the element.
        location = nest.ref(ref.name).location
        name = fresh(f"{ref.name}_parts", names)
        shape = (*(row.range for row in rows), lanes)
        partial[ref.name] = Refinement.alloc(name, ref.dtype, shape, location=location)
        names.add(name)
    inner = replace(inner, tags=inner.tags.add("part"))
    parts = [_part(inner, along, lanes, partial, place, whole=whole) for whole in (True, False)]
    bounded = indices_of(constraint.affine for constraint in inner.constraints) - sizes.keys()
    outside = tuple(index for index in inner.indices if index.name in bounded)
    totals: list[Block] = []
    for name, part in partial.items():
        lane = Element(part, (*place, Affine.var(along)))
        total = Element(inner.ref(name), inner.ref(name).access)
        totals.append(
            copy_block(
                f"sum_{name}",
                (*outside, *rows, Index(along, lanes)),
                lane,
                total,
                Tags.of("total"),
                agg=total.ref.agg,
                constraints=inner.constraints,
                scalar=name,
            )
        )
    return replace(
        nest,
        refinements=(*nest.refinements, *partial.values()),
        statements=(*(part for part in parts if part is not None), *totals),
    )


def _part(
    inner: Block,
    along: str,
    lanes: int,
    partial: Mapping[str, Refinement],
    row: tuple[Affine, ...],
    *,
    whole: bool,
) -> Block | None:
    """The contributions to the partial results of a `row`: of all whole groups of lanes, or of those that are left."""
    range_ = inner.index(along).range
    groups, rest = divmod(range_, lanes)
    if not (groups if whole else rest):
        return None
    lane = Affine.var(along)
    group = fresh(f"{along}.o", {index.name for index in inner.indices})
    place = lane + lanes * (Affine.var(group) if whole else Affine(groups))
    moved = substitute(inner, {along: place})
    refs = tuple(
        replace(
            ref,
            source=partial[ref.name].name,
            access=(*row, lane),
            dims=tuple(Dim(1, dim.stride) for dim in partial[ref.name].dims),
            location=partial[ref.name].location,
            tags=Tags(),
        )
        if ref.name in partial
        else ref
        for ref in moved.refinements
    )
    others = tuple(index for index in inner.indices if index.name != along)
    own = replace(inner.index(along), range=lanes if whole else rest)
    groups_index = (Index(group, groups),) if whole else ()
    return replace(moved, indices=(*others, *groups_index, own), refinements=refs)
