"""The pass `fusion`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pydantic import Field

from stripe.ir import Block, Interval, Program, Refinement, Tags, with_entry, with_statements
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, TagSet, matching
from stripe.passes.fusion.build import fuse_blocks, fuse_halves
from stripe.passes.fusion.keep import Kept, StepOptions, find_ways, in_steps
from stripe.passes.fusion.match import find_pairs
from stripe.passes.fusion.order import Line, PairQueue
from stripe.passes.fusion.plan import Plan, PlanOptions, make_local_plan, make_plan, shared_exactly
from stripe.passes.fusion.summary import kept_summary, output_ranges, summary
from stripe.rewrite.refusal import Refusal


class Fusion(Pass):
    """Runs a producer and its consumer together, for each point of the indices that both walk a shared buffer with.

        block [] (                                        block [] (
            none new@…<[0]> T[0, 0] fp32(8:4, 4:1) …          none new@…<[0]> T[0, 0] fp32(8:4, 4:1) …
        ) {                                               ) {
          0: #conv block [k:3, x:8, y:4] ( // a             0: #kernel block [x:8, y:4] ( // a+b
              in<[0]> A[x, k] fp32(1:3, 1:1)                    in<[0]> A[x, 0] fp32(1:3, 3:1)
              in<[0]> B[k, y] fp32(1:4, 1:1)                    in<[0]> B[0, y] fp32(3:4, 1:1)
              out<[0]> T[x, y]:add fp32(1:4, 1:1)               inout<[0]> T[x, y]:add fp32(1:4, 1:1)
          ) { … }                                    =>         out<[0]> O[x, y]:assign fp32(1:4, 1:1)
          1: #eltwise block [i:8, j:4] ( // b               ) {
              in<[0]> T[i, j] fp32(1:4, 1:1)                  0: #conv block [k:3, x:1, y:1] ( … ) { … }
              out<[0]> O[i, j]:assign fp32(1:4, 1:1)          1: $T = load(T)
          ) {                                                 2: $O = relu($T)
            0: $T = load(T)                                   3: O = store($O)
            1: $O = relu($T)                                }
            2: O = store($O)                              }
          }
        }

    Indices match by what they touch of the shared buffer: tiles with offsets, strides and windows that do not overlap
    are matched exactly. What one of the blocks does not share stays inside, so that an aggregating producer is complete
    for an element before the consumer reads it. Statements between the two move before or behind them where dependences
    allow it; producers and consumers are tried by the size of what they share, largest first.

    Where windows overlap (a 3x3 convolution after another), a fused point can compute all that it needs itself
    (`max_recompute`); or it keeps what the next tile needs too (`overlap`). Points of a block have no order, so that
    the tiles become statements, one after the other, and before each stands the piece of the producer that no tile
    before it needed. The buffer between holds a ring, as long as what is alive at once:

        block [] ( … )                                    block [] ( // a+b
        {                                                     none new@…<[0]> T[0] fp32(6:1) …
          0: block [k:3, x:12] ( // a                     ) {
              out<[0]> T[x]:add fp32(1:1) … )               0: block [k:3, x:5] ( // a_x0: out<[0]> T[x]:add …
              { … }                                  =>     1: block [k:3, x:4] ( // b_x0: in<[0]> T[-1 + k + x] …
          1: block [k:3, x:12] ( // b                       2: #init block [d0:3] ( // clear_T: T[d0] = 0
              in<[0]> T[-1 + k + x] fp32(1:1) … )           3: block [k:3, x:4] ( // a_x5: T[(5 + x) mod 6] …
              { … }                                         4: block [k:3, x:4] ( // b_x4: T[(3 + k + x) mod 6] …
        }                                                   … }

    Such a sequence can be fused again, as a producer and as a consumer, so that a chain of layers runs in rings.
    """

    pass_name: ClassVar[str] = "fusion"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("overlap=keep,max_steps=4")

    parent_reqs: TagSet = Field(default=(), description="tags of the block in which statements are fused")
    a_reqs: TagSet = Field(default=(), description="tags of the producer")
    b_reqs: TagSet = Field(default=(), description="tags of the consumer")
    exclude: TagSet = Field(default=(), description="tags that neither may have")
    fused_set: TagSet = Field(default=(), description="tags that the fused block gets")
    inner_remove_set: TagSet = Field(default=(), description="tags that both inner blocks lose")
    a_inner_set: TagSet = Field(default=(), description="tags that the producer's inner block gets")
    b_inner_set: TagSet = Field(default=(), description="tags that the consumer's inner block gets")
    output_match: bool = Field(
        default=False, description="only where the outputs of both run over indices of the same ranges"
    )
    max_refs: int = Field(default=0, ge=0, description="most refinements of a fused block; 0: no limit")
    no_inner: bool = Field(default=False, description="only where no inner block is left")
    no_constraints: bool = Field(default=False, description="only where no constraint is left")
    perfect: bool = Field(
        default=False,
        description="only where every dimension that is shared is matched, in whole tiles, "
        "without recomputing",
    )
    overlap: Literal["recompute", "keep"] = Field(
        default="recompute",
        description="what becomes of overlapping windows: each point computes them again, as far as max_recompute "
        "allows; or the consumer runs in steps that keep them in a ring",
    )
    max_steps: int = Field(
        default=16, ge=2, description="most steps that keep an overlap, where tiles does not name the index"
    )
    max_recompute: float = Field(
        default=1.0,
        ge=1.0,
        description="most work of the producer, in multiples of what it was, that overlapping windows "
        "may cause; 1: none",
    )
    reduction_tile: int = Field(
        default=0,
        ge=0,
        description="elements for one fused point of a dimension that the consumer reduces; 0: all of them, unless "
        "a side is tiled already",
    )
    tiles: dict[str, int] = Field(
        default_factory=dict[str, int],
        description="values of an index, of the producer or else the consumer, for one fused point; 1 where not given",
    )

    def run(self, program: Program, context: PassContext) -> Program:
        entry = program.entry
        sides = (block for reqs in (self.a_reqs, self.b_reqs) for block in matching(program, reqs))
        names = (index.name for block in sides for index in block.iterated)
        context.unknown_names("tiles", "index", self.tiles, names)
        private = frozenset(ref.name for ref in entry.allocs if not ref.tags.has_any(("user", "const")))
        return with_entry(program, _Fuser(self, context).visit(entry, private, {}))

    def refuses_tags(self, a: Block, b: Block) -> bool:
        """Whether the options leave the two out of account."""
        wanted = a.tags.has_all(self.a_reqs) and b.tags.has_all(self.b_reqs)
        return not wanted or a.tags.has_any(self.exclude) or b.tags.has_any(self.exclude)

    def refuses_pair(self, a: Block, b: Block) -> Refusal | None:
        """What the options have against fusing two blocks, before it is tried."""
        if self.output_match and output_ranges(a) != output_ranges(b):
            return Refusal(f"output_match: their outputs run over {output_ranges(a)} and {output_ranges(b)}")
        return None

    def refuses_plan(self, a: Block, b: Block, plan: Plan) -> Refusal | None:
        """What the options have against a plan."""
        if not self.perfect:
            return None
        if plan.local:
            return Refusal(f"perfect: {plan.recompute:.4g} times the work")
        uneven = [entry.name for entry in plan.shared if not entry.is_even(a, b)]
        if uneven:
            return Refusal(f"perfect: {', '.join(uneven)} does not divide into whole tiles on both sides")
        shared = {entry.a_index for entry in plan.shared}
        walked = {name for ref in a.outputs for affine in ref.access for name in affine.names()}
        left = [index.name for index in a.iterated if index.name in walked - shared and index.range > 1]
        if left:
            return Refusal(f"perfect: {', '.join(left)} of {a.name} stays inside")
        return None

    def refuses_block(self, fused: Block) -> Refusal | None:
        """What the options have against a fused block."""
        inner = sum(1 for _ in fused.blocks)
        constraints = len(fused.constraints) + sum(len(block.constraints) for block in fused.blocks)
        if self.no_inner and inner:
            return Refusal(f"no_inner: {inner} inner block{'s' * (inner > 1)} would be left")
        if self.no_constraints and constraints:
            return Refusal(f"no_constraints: {constraints} constraint{'s' * (constraints > 1)} would be left")
        if self.max_refs and len(fused.refinements) > self.max_refs:
            return Refusal(f"it would have {len(fused.refinements)} refinements, max_refs is {self.max_refs}")
        return None

    def inner_tags(self, tags: Tags, added: TagSet) -> Tags:
        """The tags of an inner block: those that its block had, but it is no kernel any more."""
        return tags.remove("kernel", *self.inner_remove_set).add(*added)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The block whose statements are fused: intervals of its indices, and its buffers that nobody outside needs."""

    block: Block
    intervals: Mapping[str, Interval]
    private: frozenset[str]

    def owned(self, line: Line, a: Block, *slots: int) -> frozenset[str]:
        """The private buffers that `a` writes and that the statements at `slots` alone use."""
        return frozenset(
            ref.source
            for ref in a.outputs
            if ref.source in self.private and set(line.users(ref.source)) <= set(slots)
        )


class _Fuser:
    """One run of the pass."""

    def __init__(self, options: Fusion, context: PassContext) -> None:
        self.options = options
        self.context = context
        self.plan_options = PlanOptions(options.tiles, options.reduction_tile, options.max_recompute)

    def visit(self, block: Block, private: frozenset[str], outside: Mapping[str, Interval]) -> Block:
        """Fuses in the block, then in the blocks inside that were there before."""
        intervals = block.intervals(dict(outside))
        made: frozenset[int] = frozenset()
        if block.tags.has_all(self.options.parent_reqs):
            block, made = self._fuse_in(_Scope(block, intervals, private))
        users: dict[str, int] = {}
        for statement in block.blocks:
            for ref in statement.refinements:
                users[ref.source] = users.get(ref.source, 0) + 1
        alone = private - {name for name, count in users.items() if count > 1}
        visited = [
            self.visit(s, _private_inside(s, alone), intervals)
            if isinstance(s, Block) and number not in made
            else s
            for number, s in enumerate(block.statements)
        ]
        return with_statements(block, visited)

    def _fuse_in(self, scope: _Scope) -> tuple[Block, frozenset[int]]:
        line = Line(scope.block)
        queue = PairQueue(line, self.options.refuses_tags)
        said: set[tuple[str, str]] = set()
        while (slots := queue.pop()) is not None:
            first, second = slots
            a, b = line.block_at(first), line.block_at(second)
            assert a is not None and b is not None
            refusal = self._try(scope, line, first, second)
            if refusal is None:
                queue.refresh(first, second)
                continue
            text = f"not fused with {b.name}: {refusal.reason}"
            if (a.name, text) not in said:
                self.context.missed(a, text)
            said.add((a.name, text))
        return line.finish()

    def _try(self, scope: _Scope, line: Line, first: int, second: int) -> Refusal | None:
        """Fuses the blocks at two slots. Blocks that fill what the first one leaves of a buffer join as well where that
        works, so that the fused block alone uses the buffer.
        """
        a, b = line.block_at(first), line.block_at(second)
        assert a is not None and b is not None
        order = line.between(first, second)
        if isinstance(order, int):
            between = line.block_at(order)
            name = between.name if between is not None else f"statement {order}"
            return Refusal(f"{name} has to run between them")
        for slot in line.writers_before(first, of_inputs=False):
            filler = line.block_at(slot)
            if filler is None or line.between(slot, first) != ([], []):
                continue
            owned = scope.owned(line, a, slot, first, second)
            if not owned.issuperset(ref.source for ref in filler.outputs):
                continue
            filled = self._with_filler(scope, filler, a)
            if filled is not None and isinstance(self._fuse(scope, line, filled, b, owned), tuple):
                line.join(slot, first, filled)
                a = filled
        found = self._fuse(scope, line, a, b, scope.owned(line, a, first, second))
        if isinstance(found, Refusal):
            return found
        fused, text = found
        line.join(first, second, fused)
        self.context.applied(fused, text)
        return None

    def _with_filler(self, scope: _Scope, filler: Block, block: Block) -> Block | None:
        """`block` with another one that writes other elements of its outputs, in front of it."""
        pairs = find_pairs(filler, block, scope.intervals)
        plan = make_plan(filler, block, pairs, frozenset(), PlanOptions())
        if isinstance(plan, Refusal):
            return None
        inside = replace(block, tags=block.tags.remove("kernel"))
        fused = fuse_blocks(replace(filler, tags=filler.tags.remove("kernel")), inside, plan)
        return None if isinstance(fused, Refusal) else replace(fused, name=block.name, tags=block.tags)

    def _fuse(
        self, scope: _Scope, line: Line, a: Block, b: Block, private: frozenset[str]
    ) -> tuple[Block, str] | Refusal:
        """The fused block and what to say about it."""
        options = self.options
        refusal = options.refuses_pair(a, b) or _aliases(line.buffers, a, b)
        if refusal is not None:
            return refusal
        kept = (
            self._keep(scope, line, a, b, private)
            if options.overlap == "keep" and not options.perfect
            else None
        )
        if isinstance(kept, tuple):
            return kept
        plan = make_plan(a, b, find_pairs(a, b, scope.intervals), private, self.plan_options)
        if isinstance(plan, Refusal):
            return plan if kept is None else Refusal(f"{kept.reason}; {plan.reason}")
        refusal = options.refuses_plan(a, b, plan)
        if refusal is not None:
            return refusal
        fused = fuse_blocks(*self._halves(a, b), plan)
        if isinstance(fused, Refusal):
            return fused
        fused = self._tagged(fused, a, b)
        refusal = options.refuses_block(fused)
        if refusal is not None:
            return refusal
        return fused, summary(line.buffers, a, b, fused, plan)

    def _keep(
        self, scope: _Scope, line: Line, a: Block, b: Block, private: frozenset[str]
    ) -> tuple[Block, str] | Refusal:
        """The fused block in steps, of all ways that with the smallest buffers between the two."""
        pairs = find_pairs(a, b, scope.intervals)
        options = self.options
        steps = StepOptions(options.tiles, options.max_steps)
        best: tuple[int, Kept, Plan] | None = None
        reason = "no dimension to keep an overlap of"
        for way in find_ways(a, b, pairs, shared_exactly(a, b, pairs, self.plan_options)):
            plan = make_local_plan(a, b, pairs, private, self.plan_options, way.indices)
            fused = plan if isinstance(plan, Refusal) else fuse_halves(*self._halves(a, b), plan)
            kept = fused if isinstance(fused, Refusal) else in_steps(fused, way, steps, scope.intervals)
            if isinstance(plan, Refusal) or isinstance(fused, Refusal) or isinstance(kept, Refusal):
                refused = next(r for r in (plan, fused, kept) if isinstance(r, Refusal))
                reason = refused.reason
                continue
            kept = replace(kept, block=self._tagged(kept.block, a, b))
            refusal = options.refuses_block(kept.block)
            if refusal is not None:
                reason = refusal.reason
                continue
            size = sum(kept.block.ref(name).elements for name in kept.rings)
            if best is None or size < best[0]:
                best = (size, kept, plan)
        if best is None:
            return Refusal(f"overlap not kept: {reason}")
        _, kept, plan = best
        return kept.block, kept_summary(line.buffers, a, b, kept, plan)

    def _halves(self, a: Block, b: Block) -> tuple[Block, Block]:
        """Both blocks with the tags that they have inside."""
        options = self.options
        return (
            replace(a, tags=options.inner_tags(a.tags, options.a_inner_set)),
            replace(b, tags=options.inner_tags(b.tags, options.b_inner_set)),
        )

    def _tagged(self, fused: Block, a: Block, b: Block) -> Block:
        kernel = ("kernel",) if "kernel" in a.tags or "kernel" in b.tags else ()
        return replace(fused, tags=Tags.of(*kernel).add(*self.options.fused_set))


def _private_inside(block: Block, alone: frozenset[str]) -> frozenset[str]:
    """The buffers of `block` that nobody outside needs, `alone` being those outside that only one view uses."""
    return frozenset(
        ref.name
        for ref in block.refinements
        if (ref.source in alone if ref.source else not ref.tags.has_any(("user", "const")))
    )


def _aliases(buffers: Mapping[str, Refinement], a: Block, b: Block) -> Refusal | None:
    """Buffers of the two that may share memory under different names."""
    for mine in a.refinements:
        for theirs in b.refinements:
            if mine.source == theirs.source or not (mine.source and theirs.source):
                continue
            origin = buffers[mine.source].source
            same = origin and origin == buffers[theirs.source].source
            if same and (mine.dir.writes or theirs.dir.writes):
                return Refusal(f"{mine.source} and {theirs.source} are views of {origin}")
    return None
