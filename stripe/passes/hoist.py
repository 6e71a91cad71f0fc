"""The pass `hoist`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Constraint,
    Direction,
    Load,
    Nest,
    Program,
    Refinement,
    Store,
    aggregations,
    reads_of,
    with_directions,
    with_statements,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Refusal, Reqs
from stripe.rewrite.nests import rewrite_below, rewrite_nests
from stripe.rewrite.tile import tile_block


class Hoist(Pass):
    """Moves transfers out of loops that do not move their box.

    `{ "reqs": ["tile"] }`:

        #tile block [co:4, x:8] (
            in<DRAM[0]> K_raw = K[16*co] (16:1)
            none new<SRAM[0]> K[0] (16:1)
            out<DRAM[0]> O[16*co, x] (16:8, 1:1)
        ) {
          0: block<DMA[0]> [d0:16] ( in<DRAM[0]> K_raw[d0] (1:1), out<SRAM[0]> K[d0] (1:1) ) { … }
          1: block [c:16] ( in<SRAM[0]> K[c] (1:1), out<DRAM[0]> O[c, 0] (1:8, 1:1) ) { … }
        }
        =>
        #tile block [co:4] (
            in<DRAM[0]> K_raw = K[16*co] (16:1)
            out<DRAM[0]> O[16*co, 0] (16:8, 8:1)
            none new<SRAM[0]> K[0] (16:1)
        ) {
          0: block<DMA[0]> [d0:16] ( in<DRAM[0]> K_raw[d0] (1:1), out<SRAM[0]> K[d0] (1:1) ) { … }
          1: block [x:8] (
              in<SRAM[0]> K[0] (16:1)
              out<DRAM[0]> O[0, x] (16:8, 1:1)
          ) { 0: block [c:16] ( in<SRAM[0]> K[c] (1:1), out<DRAM[0]> O[c, 0] (1:8, 1:1) ) { … } }
        }

    The order of the indices is that of the loops, the last one fastest, as `--counts` takes it: a box that its last
    indices do not move is loaded once for all of them, and the sum of an aggregated result leaves once.
    `reorder_indexes` gives another order.
    """

    pass_name: ClassVar[str] = "hoist"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[tile]",
        after=(
            "autotile{reqs=[contraction],max_total_size=4096,outer_set=[tile],inner_set=[inner]}",
            "cache{reqs=[tile],mem_loc={name:SRAM}}",
        ),
    )

    refused: ClassVar[str] = "not hoisted"

    reqs: Reqs

    def run(self, program: Program, context: PassContext) -> Program:
        def visit(nest: Nest) -> Block:
            return rewrite_below(nest, lambda inner: self._hoisted(inner, context)) or nest.block

        return rewrite_nests(program, self.reqs, visit)

    def _hoisted(self, nest: Nest, context: PassContext) -> Block:
        """The innermost block of `nest` with its transfers as far outside as their boxes allow, level by level."""
        block = nest.block
        loops = [index.name for index in block.iterated if index.range > 1]
        found = [transfer for transfer in _transfers(nest) if transfer.level(loops) < len(loops)]
        if not found:
            return block
        level = max(transfer.level(loops) for transfer in found)
        reason = _obstacle(block, loops[level:])
        if reason is not None:
            return self.settled(block, Refusal(reason), context)
        outer = self._split(block, loops[:level], found)
        for transfer in found:
            times = f"{outer.points} times, not {block.points}"
            context.applied(block, f"{transfer.buffer} is {'loaded' if transfer.fills else 'stored'} {times}")
        return self._hoisted(nest.with_block(outer), context)

    def _split(self, block: Block, outside: Sequence[str], transfers: Sequence[_Hoistable]) -> Block:
        split = tile_block(block, dict.fromkeys(outside, 1))
        (inner,) = split.blocks
        back = {index.name: index.affine for index in inner.passed if index.affine is not None}
        # no constraint is over what goes inside
        limits = tuple(Constraint(constraint.affine.subs(back)) for constraint in inner.constraints)
        moved = {inner.statements[each.number]: each.fills for each in transfers}
        allocs: list[Refinement] = []
        views: dict[str, Refinement] = {}
        for each in transfers:
            alloc = inner.ref(each.buffer)
            allocs.append(replace(alloc, location=alloc.location.subs(back)))
            views[alloc.name] = Refinement(
                alloc.name, Direction.IN if each.fills else Direction.OUT, alloc.name, (Affine(),) * len(alloc.dims),
                alloc.dtype, alloc.dims, agg=each.agg, location=alloc.location,
            )  # fmt: skip
        rest = [statement for statement in inner.statements if statement not in moved]
        used = {name for statement in rest for name in (*reads_of(statement), *writes_of(statement))}
        inner = replace(
            inner,
            constraints=(),
            indices=tuple(index for index in inner.indices if index.is_passed or index.range > 1),
            refinements=tuple(views.get(r.name, r) for r in inner.refinements if r.name in used),
            statements=tuple(rest),
        )
        loads, stores = (
            [_moved_out(s, back) for s, fills in moved.items() if fills is wanted and isinstance(s, Block)]
            for wanted in (True, False)
        )
        outer = replace(
            split,
            constraints=limits,
            indices=tuple(index for index in split.indices if index.is_passed or index.range > 1),
            refinements=(*split.refinements, *allocs),
        )
        return with_directions(with_statements(outer, [*loads, inner, *stores]))


@dataclass(frozen=True, slots=True)
class _Hoistable:
    """A transfer between a view and an allocation of its block, which only it fills, or empties of sums."""

    number: int
    buffer: str
    fills: bool
    agg: Agg
    names: frozenset[str]
    """The indices of the block that its box or its places depend on."""

    def level(self, loops: Sequence[str]) -> int:
        """The number of loops around it where it is as far outside as it may be."""
        return max((number for number, name in enumerate(loops, 1) if name in self.names), default=0)


def _transfers(nest: Nest) -> Iterator[_Hoistable]:
    """The transfers of the innermost block that may run less often, if fewer indices move them than the block has."""
    block = nest.block
    allocs = {ref.name: ref for ref in block.allocs}
    for number, statement in enumerate(block.statements):
        if not isinstance(statement, Block):
            continue
        match statement.statements:
            case (Load(into, read), Store(written, value)) if into == value:
                source, sink = statement.ref(read), statement.ref(written)
            case _:
                continue
        fills = sink.source in allocs
        if fills == (source.source in allocs) or "" in (source.source, sink.source):
            continue
        near, far = (sink.source, source.source) if fills else (source.source, sink.source)
        others = [other for place, other in enumerate(block.statements) if place != number]
        makers = [other for other in others if near in writes_of(other)]
        same = {
            ref.name for ref in block.refinements if nest.views[ref.name].buffer == nest.views[far].buffer
        }
        touched = {name for other in others for name in (*reads_of(other), *writes_of(other))}
        if fills:
            written = {name for other in others for name in writes_of(other)}
            lawful = not makers and sink.agg is Agg.ASSIGN and not same & written
        else:
            sums = aggregations(block, [near]).get(near)
            read = any(near in reads_of(other) for other in others)
            lawful = sink.agg is not Agg.ASSIGN and sums == (sink.agg,) and not read and not same & touched
        if not lawful:
            continue
        affines = [*block.ref(far).access, *(i.affine for i in statement.indices if i.affine is not None)]
        names = frozenset(name for affine in affines for name in affine.names())
        places = (
            statement.location,
            block.ref(far).location,
            allocs[near].location,
            source.location,
            sink.location,
        )
        names |= frozenset(name for place in places for name in place.names())
        yield _Hoistable(number, near, fills, sink.agg, names)


def _obstacle(block: Block, inside: Sequence[str]) -> str | None:
    """The reason why no loop of the block can be put inside of a transfer."""
    held = {name for constraint in block.constraints for name in constraint.affine.names()}
    if bound := sorted(held.intersection(inside)):
        return f"a constraint of the block limits {', '.join(bound)}"
    if any(index.is_spatial for index in block.iterated):
        return "its points run at the same time"
    if any(statement.deps for statement in block.statements) or block.pipeline_depth is not None:
        return "it is scheduled"
    return None


def _moved_out(transfer: Block, back: dict[str, Affine]) -> Block:
    """The transfer in the block outside of its own, whose indices `back` gives."""
    indices = tuple(
        index if index.affine is None else replace(index, affine=index.affine.subs(back))
        for index in transfer.indices
    )
    return replace(transfer, indices=indices, location=transfer.location.subs(back))
