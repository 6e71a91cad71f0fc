"""The pass `tensorize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from stripe.cost.time.stencils import Match, body_of, find_matches, unfit
from stripe.hw.engines import Stencil
from stripe.ir import Block, Program, content_key, rewrite_blocks, unfolded, with_entry, with_statements
from stripe.ir.frozen import replace
from stripe.passes.base import DependsOn, Pass, PassContext, PassExample, PassGroup, Refusal, Reqs, TagSet
from stripe.rewrite.tile import tile_block


class Tensorize(Pass):
    """Splits off the blocks of work that a unit computes as one instruction (the original's `stencil`).

    `{ "reqs": ["conv"], "outer_set": ["CONV"], "inner_set": ["inner"], "stencils": [ { "idxs": [
    { "name": "i1", "size": 32, "outs": [-1], "ins": [-1, 0] },
    { "name": "c", "size": -1, "outs": [0], "ins": [-1, -1] } ] } ] }`:

        #conv block [ci:32, co:64, x:100] (        #CONV #conv block [#stencil #stencil_c ci:1, …, x:100] (
            in I[x, ci]                                in I[x, 0] (1:32, 32:1)
            in K[ci, co]                     =>        in K[0, 32*co] (32:64, 32:1)
            out O[x, co]:add                           out O[x, 32*co]:add (1:64, 32:1)
        ) { … }                                      0: #inner #stencil block [#stencil #stencil_c ci:32, …, x:1] (

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

    refused: ClassVar[str] = "not tensorized"

    reqs: Reqs
    outer_set: TagSet = Field(default=(), description="tags added to the outer block")
    inner_set: TagSet = Field(default=(), description="tags added to the inner block")
    stencils: tuple[Stencil, ...] = Field(
        default=(), description="stencils to try; those of the unit in the hardware model where empty"
    )
    unit: str = Field(
        default="", description="execution unit whose stencils are taken; the block's location where empty"
    )
    memory: str = Field(
        default="",
        description="memory that operands come from: of the matches the one is taken that takes the least time, by the "
        "rules of the simulator for computing and for the traffic of operands",
    )
    units: Annotated[Annotated[int, Field(ge=1)] | Literal["all"], DependsOn("memory")] = Field(
        default=1,
        description="with memory: units of the kind that share the operands' buses, as `partition` gives them",
    )
    is_strict_dims: bool = Field(default=False, description="only whole tiles, without a test inside")
    unmatched: Literal["outside", "inside"] = Field(
        default="outside", description="where the indices go that no stencil index takes"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError without stencils, or for a unit that the hardware model lacks."""
        if not self.stencils:
            hardware = context.need_hardware("tensorize without stencils")
            if self.unit:
                hardware.exec_unit(self.unit)

        def visit(block: Block) -> Block:
            leaf = not any(True for _ in block.blocks)
            if not block.words.has_all(self.reqs) or not leaf or "stencil" in block.tags:
                return block
            return self.settled(block, self._tensorized(block, context), context)

        return with_entry(program, rewrite_blocks(program.entry, visit))

    def _tensorized(self, block: Block, context: PassContext) -> Block | Refusal:
        block = unfolded(block)
        hardware = context.hardware
        best: Match | Refusal = Refusal("")
        if hardware is not None and self.memory:
            from stripe.cost.time.machine import Machine  # networkx takes long to load

            best = Machine.of(hardware).once((self, content_key(block)), lambda: self._best(block, context))
        if isinstance(best, Refusal):
            best = self._best(block, context)  # its reason names the views of this block
        if isinstance(best, Refusal):
            return best
        pairs = zip(best.stencil.idxs, best.names, best.tiles, strict=True)
        roles = ", ".join(f"{rules.name} = {name or 'one point'}:{tile}" for rules, name, tile in pairs)
        useful = block.points / best.cost * 100 if best.cost else 100.0
        numbers = f"{roles}; {best.uses} uses, {useful:.1f} % of the points useful"
        context.applied(block, f"tensorized by {_name(best.stencil)}: {numbers}")
        whole = self.unmatched == "inside"
        sizes = {index.name: index.range if whole else 1 for index in block.iterated}
        sizes |= {name: tile for name, tile in zip(best.names, best.tiles, strict=True) if name}
        tiled = tile_block(block, sizes)
        (inner,) = tiled.blocks
        inner = replace(inner, tags=inner.tags.add("stencil", *self.inner_set))
        inner, tiled = _tag_indices(inner, best), _tag_indices(tiled, best)
        return replace(with_statements(tiled, [inner]), tags=tiled.tags.add(*self.outer_set))

    def _best(self, block: Block, context: PassContext) -> Match | Refusal:
        """The match that takes least time."""
        body = body_of(block)
        if isinstance(body, str):
            return Refusal(body)
        matches: list[Match] = []
        reasons: list[str] = []
        units = context.hardware.exec_units if context.hardware is not None else {}
        unit = units.get(self.unit or block.location.name)
        for stencil in self.stencils or (unit.stencils if unit is not None else ()):
            found = find_matches(block, body, stencil, strict=self.is_strict_dims)
            matches += found if self.memory else found[:1]
            if not found:
                reasons.append(f"{_name(stencil)}: {unfit(body, stencil) or _unmatched(block, stencil)}")
        if not matches:
            return Refusal("; ".join(reasons) or "no stencil is given for it")
        cycles = self._cycles(block, matches, context)
        # Of equal matches the one whose lanes constraints mask least: they cut tiles at the edges.
        masked = {name for constraint in block.constraints for name in constraint.affine.names()}
        _, best = min(
            zip(cycles, matches, strict=True),
            key=lambda pair: (pair[0], pair[1].cost, pair[1].uses, len(masked.intersection(pair[1].names))),
        )
        return best

    def _cycles(self, block: Block, matches: Sequence[Match], context: PassContext) -> Sequence[float]:
        """The times of the matches on the unit, or on all units where an index of the block numbers them."""
        name, hardware = self.unit or block.location.name, context.hardware
        if not self.memory or hardware is None or not name:
            return [0.0] * len(matches)
        count = hardware.exec_unit(name).count
        everywhere = self.units == "all" or bool(block.location.names())
        parallel = count if everywhere else min(int(self.units), count)
        from stripe.cost.time.parts import PartTimes  # numpy takes long to load

        return PartTimes(block, hardware, name, self.memory).of_matches(matches, parallel)


def _tag_indices(block: Block, match: Match) -> Block:
    """Sets for the matched indices, on both levels, the indices of the stencil that they run through."""
    roles = {name: rules.name for rules, name in zip(match.stencil.idxs, match.names, strict=True) if name}
    indices = tuple(
        replace(index, stencil=roles[index.name]) if index.name in roles else index for index in block.indices
    )
    return replace(block, indices=indices)


def _name(stencil: Stencil) -> str:
    return stencil.name or "x".join(
        str(rules.size) if rules.size != -1 else rules.name for rules in stencil.idxs
    )


def _unmatched(block: Block, stencil: Stencil) -> str:
    ranges = ", ".join(f"{index.name}:{index.range}" for index in block.iterated)
    needs = ", ".join(f"{rules.name}:{rules.size if rules.size != -1 else 'all'}" for rules in stencil.idxs)
    return f"no indices move the operands as it needs ({needs}) among {ranges}"
