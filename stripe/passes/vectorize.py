"""The pass `vectorize`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import Field

from stripe.hw.schema import ExecUnit
from stripe.ir import (
    Block,
    ConfigError,
    Index,
    Nest,
    Program,
    Refinement,
    Special,
    address,
    step,
    with_statements,
)
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs, TagSet
from stripe.rewrite.nests import rewrite_below, rewrite_nests
from stripe.rewrite.tile import tile_block


class Vectorize(Pass):
    """Splits off vectors along an index that walks memory element by element.

    With vectors of 32 bytes, `{ "reqs": ["conv"], "read_align_bytes": 32 }`:

        #conv block [k:3, x:64, c:24] (          #conv block [k:3, x:64, c:3] ( … ) {
            in I[x + k, c] fp32(1:24, 1:1)   =>    0: #vector=8 block [k:1, x:1, c:8] (
            in K[k] fp32(1:1)                          #vector_tx in I[0, c] fp32(1:24, 1:1)
            out O[x, c]:add fp32(1:24, 1:1)            in K[0] fp32(1:1)
                                                       #vector_tx out O[0, c]:add fp32(1:24, 1:1)

    Such an index moves every output by one element and every input by one or none, so that the points of the inner
    block write different elements and no sum is reordered. The index with the fewest vectors is taken. Views that a
    vector reads or writes as a whole, at addresses that are multiples of `read_align_bytes` or `write_align_bytes`,
    are tagged `vector_tx`; allocations that no pass has placed count as aligned.
    """

    pass_name: ClassVar[str] = "vectorize"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[kernel],vector_bytes=16")

    reqs: Reqs
    unit: str = Field(
        default="",
        description="execution unit whose vectors count; the block's location, else the first with vectors",
    )
    vector_bytes: int | None = Field(
        default=None, gt=0, description="width of a vector in bytes, instead of the hardware model's"
    )
    read_align_bytes: int = Field(
        default=1, ge=1, description="multiple of which a vector read begins, bytes"
    )
    write_align_bytes: int = Field(
        default=1, ge=1, description="multiple of which a vector write begins, bytes"
    )
    index: str = Field(default="", description="the index to take, by name; the best where empty")
    only_whole: bool = Field(default=False, description="refuse a last vector that is partly empty")
    gather: bool = Field(default=False, description="also where an input moves by more than one element")
    only_tag: bool = Field(default=False, description="tag views and block as they are, without tiling")
    outer_set: TagSet = Field(default=(), description="tags added to the block of vectors")
    inner_set: TagSet = Field(default=(), description="tags of the block of one vector, beside `vector`")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError without a width of vectors."""

        def visit(nest: Nest) -> Block:
            return rewrite_below(nest, lambda inner: self._vectorized(inner, context)) or nest.block

        if self.vector_bytes is None:
            self._unit(context)
        return rewrite_nests(program, self.reqs, visit)

    def _unit(self, context: PassContext, block: Block | None = None) -> ExecUnit:
        hardware = context.need_hardware("vectorize without vector_bytes")
        if self.unit:
            found = hardware.exec_unit(self.unit)
        else:
            named = hardware.exec_units.get(block.location.name) if block is not None else None
            wide = [unit for unit in hardware.exec_units.values() if unit.vector_bytes]
            found = named if named is not None and named.vector_bytes else next(iter(wide), None)
        if found is None or not found.vector_bytes:
            raise ConfigError(
                "the hardware model gives no width of vectors",
                hint="give its unit vector_bytes, or the pass",
            )
        return found

    def _vectorized(self, nest: Nest, context: PassContext) -> Block:
        block = nest.block
        if "vector" in block.tags or not block.outputs or _has_inner(block):
            return block
        width = self.vector_bytes or self._unit(context, block).vector_bytes
        assert width is not None
        lanes = width // max(ref.dtype.bytes for ref in block.refinements)
        if lanes < 2:
            context.missed(block, f"not vectorized: {width} bytes hold {lanes} elements")
            return block
        found = [
            self._candidate(nest, index, lanes) for index in block.iterated if self.index in ("", index.name)
        ]
        usable = [candidate for candidate in found if isinstance(candidate, _Candidate)]
        if not usable:
            reasons = "; ".join(str(candidate) for candidate in found) or f"no index '{self.index}'"
            context.missed(block, f"not vectorized: {reasons}")
            return block
        return self._apply(nest, min(usable, key=lambda candidate: candidate.cost), context)

    def _candidate(self, nest: Nest, index: Index, lanes: int) -> _Candidate | str:
        """What the index would give, or why it cannot be taken."""
        if index.range < 2:
            return f"{index.name} has range {index.range}"
        for ref in nest.block.outputs:
            moved = step(ref, index.name)
            if moved != 1:
                return f"{index.name} moves {ref.name} by {_amount(moved)}"
        steps = {ref.name: step(ref, index.name) for ref in nest.block.inputs}
        gathered = [name for name, moved in steps.items() if moved not in (0, 1)]
        if gathered and not self.gather:
            return f"{index.name} moves {gathered[0]} by {_amount(steps[gathered[0]])}"
        if self.only_whole and index.range % lanes:
            return f"{index.name} has range {index.range}, no multiple of {lanes}"
        return _Candidate(index.name, index.range, min(lanes, index.range), len(gathered))

    def _apply(self, nest: Nest, chosen: _Candidate, context: PassContext) -> Block:
        block = nest.block
        moved = ("vector", chosen.lanes)
        if self.only_tag:
            outer, leaf = None, nest
        else:
            sizes = {index.name: 1 for index in block.iterated} | {chosen.name: chosen.lanes}
            outer = nest.with_block(tile_block(block, sizes))
            leaf = outer.enter(0)
        tags = [self._transfer_tags(leaf, ref, chosen) for ref in leaf.block.refinements]
        refs = tuple(
            replace(ref, tags=ref.tags.add(*words)) if words else ref
            for ref, words in zip(leaf.block.refinements, tags, strict=True)
        )
        inner = leaf.block
        inner = replace(inner, refinements=refs, tags=inner.tags.add(*self.inner_set).set(*moved))
        used = chosen.range / (chosen.vectors * chosen.lanes) * 100
        aligned = ", ".join(ref.name for ref, words in zip(refs, tags, strict=True) if words) or "none"
        context.applied(
            block,
            f"{chosen.name}: {chosen.vectors} vectors of {chosen.lanes}, {used:.1f} % of the lanes used; "
            f"whole and aligned: {aligned}",
        )
        if outer is None:
            return inner
        return with_statements(replace(outer.block, tags=outer.block.tags.add(*self.outer_set)), [inner])

    def _transfer_tags(self, nest: Nest, ref: Refinement, chosen: _Candidate) -> tuple[str, ...]:
        """`vector_tx` for a view that is moved as a whole vector, at an aligned address for every point."""
        index = nest.block.index(chosen.name)
        own = nest.local[index.name]
        tested = any(own.names() & affine.names() for affine in nest.domain.constraints)
        if ref.is_alloc or tested or index.range % chosen.lanes or step(ref, index.name) != 1:
            return ()
        needed = max(
            self.read_align_bytes if ref.dir.reads else 1, self.write_align_bytes if ref.dir.writes else 1
        )
        if needed == 1:
            return ("vector_tx",)
        place = address(nest.views[ref.name]) - own
        steps = [place.offset, *(coefficient for _, coefficient in place.terms)]
        if index.range > chosen.lanes:
            steps.append(chosen.lanes)
        places = [moved * ref.dtype.bytes for moved in steps]
        return ("vector_tx",) if all(place % needed == 0 for place in (*places, _base(nest, ref))) else ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An index that vectors may run along."""

    name: str
    range: int
    lanes: int
    gathered: int

    @property
    def vectors(self) -> int:
        return -(-self.range // self.lanes)

    @property
    def cost(self) -> tuple[int, float]:
        """Inputs that have to be gathered, then vectors for each element."""
        return self.gathered, self.vectors / self.range


def _has_inner(block: Block) -> bool:
    return any(isinstance(statement, Block | Special) for statement in block.statements)


def _base(nest: Nest, ref: Refinement) -> int:
    """The byte address of the allocation behind a view, as far as a pass has chosen it."""
    buffer = nest.views[ref.name].buffer
    return nest.blocks[len(buffer.path) - 1].ref(buffer.name).offset if buffer.path else 0


def _amount(step: int | None) -> str:
    return "different amounts" if step is None else f"{step} elements"
