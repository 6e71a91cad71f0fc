"""The pass `tensorize`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from stripe.hw.schema import Stencil
from stripe.ir import Block, ConfigError, Program, closest, rewrite_blocks, with_entry, with_statements
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs, TagSet
from stripe.passes.tensorize.match import Match, body_of, find_match, is_leaf, unmatched, why_unfit
from stripe.rewrite.tile import tile_block


class Tensorize(Pass):
    """Splits off the blocks of work that a unit computes as one instruction (the original's `stencil`).

    With the stencil `{ "idxs": [ { "name": "i1", "size": 32, "outs": [-1], "ins": [-1, 0] },
    { "name": "c", "size": -1, "outs": [0], "ins": [-1, -1] } ] }`:

        #conv block [ci:32, co:64, x:100] (            #conv #CONV block [ci:1, co:2, x:100] (
            in I[x, ci] …                        =>        in I[x, 0] …
            in K[ci, co] …                             ) {
            out O[x, co]:add …                           0: #CONV_inner #stencil block [#stencil_c ci:32,
                                                                #stencil_i1 co:32, x:1] ( …

    A rule is the number of elements by which one step of the index moves that operand: 0 not at all, 1 contiguous,
    -1 any; size -1 is the whole range. Inputs may match in any order. Of several stencils and matches the one with
    the least points, padding and start-up included, is taken; among equals the one with the fewest uses.
    """

    pass_name: ClassVar[str] = "tensorize"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        'reqs=[contraction],stencils=[{"name":"dot","idxs":[{"name":"r","size":4,"outs":[-1],'
        '"ins":[-1,0]},{"name":"c","size":-1,"outs":[0],"ins":[-1,-1]}]}]'
    )

    reqs: Reqs
    outer_set: TagSet = Field(default=(), description="tags added to the outer block")
    inner_set: TagSet = Field(default=(), description="tags added to the inner block")
    stencils: tuple[Stencil, ...] = Field(
        default=(), description="stencils to try; those of the unit in the hardware model where empty"
    )
    unit: str = Field(
        default="", description="execution unit whose stencils are taken; the block's location where empty"
    )
    is_strict_dims: bool = Field(default=False, description="only whole tiles, without a test inside")
    unmatched: Literal["outside", "inside"] = Field(
        default="outside", description="where the indices go that no stencil index takes"
    )
    inputs_set: tuple[TagSet, ...] = Field(
        default=(), description="tags for the inputs, by position in the stencil"
    )
    outputs_set: tuple[TagSet, ...] = Field(default=(), description="tags for the outputs, by position")
    copy_tags: bool = Field(default=False, description="the inner block also gets the tags of the block")

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError without stencils, or for a unit that the hardware model lacks."""
        if not self.stencils:
            self._check_unit(context)

        def visit(block: Block) -> Block:
            if not block.tags.has_all(self.reqs) or not is_leaf(block) or "stencil" in block.tags:
                return block
            return self._tensorized(block, context)

        return with_entry(program, rewrite_blocks(program.entry, visit))

    def _check_unit(self, context: PassContext) -> None:
        hardware = context.need_hardware("tensorize without stencils")
        if self.unit and self.unit not in hardware.exec_units:
            near = closest(self.unit, hardware.exec_units)
            hint = (
                f"did you mean '{near}'?"
                if near
                else f"its execution units are {', '.join(hardware.exec_units)}"
            )
            raise ConfigError(f"the hardware model has no execution unit '{self.unit}'", hint=hint)

    def _stencils_for(self, block: Block, context: PassContext) -> Iterable[Stencil]:
        if self.stencils or context.hardware is None:
            return self.stencils
        unit = context.hardware.exec_units.get(self.unit or block.location.name)
        return unit.stencils if unit is not None else ()

    def _tensorized(self, block: Block, context: PassContext) -> Block:
        body = body_of(block)
        if isinstance(body, str):
            context.missed(block, f"not tensorized: {body}")
            return block
        best: Match | None = None
        reasons: list[str] = []
        for stencil in self._stencils_for(block, context):
            unfit = why_unfit(body, stencil)
            found = None if unfit else find_match(block, body, stencil, strict=self.is_strict_dims)
            if found is None:
                reasons.append(f"{_name(stencil)}: {unfit or _why_no_match(block, stencil)}")
            elif (
                best is None or found.cost < best.cost or (found.cost == best.cost and found.uses < best.uses)
            ):
                best = found
        if best is None:
            context.missed(block, f"not tensorized: {'; '.join(reasons) or 'no stencil is given for it'}")
            return block
        context.applied(block, _applied_text(block, best))
        return self._apply(block, best)

    def _apply(self, block: Block, match: Match) -> Block:
        sizes = match.sizes()
        for index in unmatched(block, match):
            sizes[index.name] = index.range if self.unmatched == "inside" else 1
        tiled = tile_block(block, sizes)
        (inner,) = tiled.blocks
        tags = inner.tags.add("stencil", *self.inner_set)
        inner = replace(inner, tags=tags | block.tags if self.copy_tags else tags)
        inner, tiled = _tag_indices(inner, match), _tag_indices(tiled, match)
        inner = self._tag_operands(inner, match)
        return replace(with_statements(tiled, [inner]), tags=tiled.tags.add(*self.outer_set))

    def _tag_operands(self, inner: Block, match: Match) -> Block:
        tags = dict(zip(match.inputs, self.inputs_set, strict=False))
        tags |= dict(zip(match.outputs, self.outputs_set, strict=False))
        refs = tuple(
            replace(r, tags=r.tags.add(*tags[r.name])) if r.name in tags else r for r in inner.refinements
        )
        return replace(inner, refinements=refs)


def _tag_indices(block: Block, match: Match) -> Block:
    """Tags the matched indices, on both levels, with the stencil index that they play."""
    roles = {name: rules.name for rules, name in zip(match.stencil.idxs, match.names, strict=True) if name}
    indices = tuple(
        replace(index, tags=index.tags.add("stencil", f"stencil_{roles[index.name]}"))
        if index.name in roles
        else index
        for index in block.indices
    )
    return replace(block, indices=indices)


def _name(stencil: Stencil) -> str:
    return stencil.name or "x".join(
        str(rules.size) if rules.size != -1 else rules.name for rules in stencil.idxs
    )


def _why_no_match(block: Block, stencil: Stencil) -> str:
    ranges = ", ".join(f"{index.name}:{index.range}" for index in block.iterated)
    needs = ", ".join(f"{rules.name}:{rules.size if rules.size != -1 else 'all'}" for rules in stencil.idxs)
    return f"no indices move the operands as it needs ({needs}) among {ranges}"


def _applied_text(block: Block, match: Match) -> str:
    pairs = zip(match.stencil.idxs, match.names, match.tiles, strict=True)
    roles = ", ".join(f"{rules.name} = {name or 'one point'}:{tile}" for rules, name, tile in pairs)
    useful = block.points / match.cost * 100 if match.cost else 100.0
    return f"tensorized by {_name(match.stencil)}: {roles}; {match.uses} uses, {useful:.1f} % of the points useful"
