"""The pass `vectorize`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Block,
    Index,
    Location,
    Nest,
    Program,
    Refinement,
    Special,
    step,
    unfolded_nest,
    with_statements,
)
from stripe.ir.frozen import replace
from stripe.passes.base import NestPass, PassContext, PassExample, PassGroup, Refusal, Reqs
from stripe.rewrite.nests import rewrite_below
from stripe.rewrite.tile import tile_block


class Vectorize(NestPass):
    """Splits off vectors along an index that walks memory element by element.

    `{ "reqs": ["conv"], "vector_bytes": 32 }`:

        #conv block [k:3, x:64, c:24] (          #conv block [k:3, x:64, c:3] ( … ) {
            in I[x + k, c] fp32(1:24, 1:1)   =>    0: #vector=8 block [k:1, x:1, c:8] (
            in K[k] fp32(1:1)                          #vector_tx in I[0, c] fp32(1:24, 1:1)
            out O[x, c]:add fp32(1:24, 1:1)            in K[0] fp32(1:1)
                                                       #vector_tx out O[0, c]:add fp32(1:24, 1:1)

    Such an index moves every output by one element and every input by one or none, so that the points of the inner
    block write different elements and no sum is reordered. The index with the fewest vectors is taken. Views that
    vectors read or write as a whole are tagged `vector_tx`. With `only_tag`, a copy that reads along one index and
    writes along another gets the tag `transpose`, with the rows of a square of vectors that transposes it.
    """

    pass_name: ClassVar[str] = "vectorize"
    refused: ClassVar[str] = "not vectorized"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[kernel],vector_bytes=16")

    reqs: Reqs
    vector_bytes: int | None = Field(
        default=None, gt=0, description="width of a vector in bytes, instead of the hardware model's"
    )
    only_tag: bool = Field(default=False, description="tag views and block as they are, without tiling")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError without a width of vectors."""
        if self.vector_bytes is None:
            _vector_bytes(context)
        return super().run(program, context)

    def rewrite(self, nest: Nest, context: PassContext) -> Block:
        def visit(inner: Nest) -> Block:
            return self.settled(inner.block, self._vectorized(inner, context), context)

        return rewrite_below(nest, visit) or nest.block

    def _vectorized(self, nest: Nest, context: PassContext) -> Block | Refusal:
        block = nest.block
        is_leaf = not any(isinstance(statement, Block | Special) for statement in block.statements)
        if "vector" in block.tags or not block.outputs or not is_leaf:
            return block
        nest = unfolded_nest(nest)
        block = nest.block
        width = self.vector_bytes or _vector_bytes(context, block.location)
        lanes = width // max(ref.dtype.bytes for ref in block.refinements)
        if lanes < 2:
            return Refusal(f"{width} bytes hold {lanes} elements")
        against = {index.name: _unfit(block, index) for index in block.iterated}
        usable = [index for index in block.iterated if against[index.name] is None]
        if not usable and self.only_tag and _transposes(block):
            # the rows of a square of vectors, a power of two; larger ones leave no registers
            lanes = 1 << (min(lanes, 16).bit_length() - 1)
            context.applied(block, f"copied in squares of {lanes} by {lanes}")
            return replace(block, tags=block.tags.set("transpose", lanes))
        if not usable:
            return Refusal("; ".join(refusal.reason for refusal in against.values() if refusal))
        # The fewest vectors for each element.
        return self._apply(nest, min(usable, key=lambda i: -(-i.range // lanes) / i.range), lanes, context)

    def _apply(self, nest: Nest, chosen: Index, width: int, context: PassContext) -> Block:
        block = nest.block
        lanes = min(width, chosen.range)
        vectors = -(-chosen.range // lanes)
        outer = None
        if not self.only_tag:
            sizes = {index.name: 1 for index in block.iterated} | {chosen.name: lanes}
            outer = nest.with_block(tile_block(block, sizes))
            nest = outer.enter(0)
        whole = [ref.name for ref in nest.block.refinements if _is_whole(nest, ref, chosen.name, lanes)]
        refs = tuple(
            replace(ref, tags=ref.tags.add("vector_tx")) if ref.name in whole else ref
            for ref in nest.block.refinements
        )
        inner = replace(nest.block, refinements=refs, tags=nest.block.tags.set("vector", lanes))
        used = chosen.range / (vectors * lanes) * 100
        context.applied(
            block,
            f"{chosen.name}: {vectors} vectors of {lanes}, {used:.1f} % of the lanes used; "
            f"moved whole: {', '.join(whole) or 'none'}",
        )
        return inner if outer is None else with_statements(outer.block, [inner])


def _transposes(block: Block) -> bool:
    """Whether a block copies elements that lie along one index in its source and along another in its target."""
    if len(block.inputs) != 1 or len(block.outputs) != 1 or len(block.statements) != 2 or block.constraints:
        return False
    (source,), (target,) = block.inputs, block.outputs
    moved = [(step(source, index.name), step(target, index.name)) for index in block.iterated]
    return any(a == 1 != b for a, b in moved) and any(b == 1 != a for a, b in moved)


def _vector_bytes(context: PassContext, location: Location = Location()) -> int:
    """The width of the vectors of the unit at `location`, or of the first unit with vectors."""
    hardware = context.need_hardware("vectorize without vector_bytes")
    return hardware.exec_unit_with("vectors", location).vector_bytes or 0


def _unfit(block: Block, index: Index) -> Refusal | None:
    """The reason why vectors cannot run along an index."""
    if index.range < 2:
        return Refusal(f"{index.name} has range {index.range}")
    for ref in (*block.outputs, *block.inputs):
        moved = step(ref, index.name)
        if moved != 1 and (moved != 0 or ref.dir.writes):
            amount = "different amounts" if moved is None else f"{moved} elements"
            return Refusal(f"{index.name} moves {ref.name} by {amount}")
    return None


def _is_whole(nest: Nest, ref: Refinement, name: str, lanes: int) -> bool:
    """Whether each vector along the index `name` reads or writes a whole vector through a view."""
    own = nest.local[name].names()
    tested = any(own & affine.names() for affine in nest.domain.constraints)
    return (
        not ref.is_alloc and not tested and nest.block.index(name).range % lanes == 0 and step(ref, name) == 1
    )
