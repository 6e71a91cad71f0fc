"""The pass `fusion`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar, Literal

from pydantic import Field

from stripe.cost.objective import ObjectiveOption
from stripe.ir import (
    Block,
    Interval,
    Path,
    Program,
    Tags,
    block_at,
    refs_used,
    replace_at,
    step,
    with_entry,
    with_statements,
)
from stripe.ir.frozen import replace
from stripe.passes.base import (
    Pass,
    PassContext,
    PassExample,
    PassGroup,
    Selects,
    TagSet,
    any_matching,
    matching,
)
from stripe.passes.fusion.build import extended, fuse
from stripe.passes.fusion.candidates import Candidate, Contents, Line, PairQueue
from stripe.passes.fusion.legality import FusionPlan, Legality
from stripe.passes.fusion.priced import FusionPrices
from stripe.passes.fusion.reach import find_pairs, unmoved
from stripe.passes.fusion.remarks import fusion_remark, ring_remark
from stripe.rewrite.refusal import Refusal


class Fusion(Pass):
    """Runs a producer and its consumer together, for each point of the indices that both walk a shared buffer with.

    `{ "a_reqs": ["conv"], "b_reqs": ["eltwise"], "fused_set": ["kernel"] }`:

        0: #conv block [k:3, x:8, y:4] (            0: #kernel block [x:8, y:4] (
            in A[x, k]                                  in A[x, 0] (1:3, 3:1)
            in B[k, y]                                  in B[0, y] (3:4, 1:1)
            out T[x, y]:add                             inout T[x, y]:add (1:4, 1:1)
        ) { … }                              =>         out O[x, y] (1:4, 1:1)
        1: #eltwise block [i:8, j:4] (                0: #conv block [k:3, x:1, y:1] (
            in T[i, j]                                    in A[0, k] … out T[0, 0]:add …
            out O[i, j]                               1: $T = load(T)
        ) { … }                                       2: O = store($T)

    The fused block has the tags `fused_set`, and `kernel` where one of the two had it. Other tags go to the blocks
    inside, and are gone where such a block dissolves, as `#eltwise` above: name in `fused_set` the tags that later
    passes look for.

    Indices match by the elements of the shared buffer that they touch: tiles with offsets, strides and windows that do
    not overlap are matched exactly. Indices that are not shared stay inside, so that an aggregating producer is
    complete for an element before the consumer reads it. Statements between the two move before or behind them where
    dependences allow it; producers and consumers are tried by the bytes that they share, the most first.

    On a machine the rest of the pass list is asked first: a pair is fused where the fused block, as the list makes it,
    takes no more than half a percent more time than the two blocks apart. The remark has both numbers.

    Where windows overlap (a 3x3 convolution after another), a fused point can compute all that it needs itself
    (`max_recompute`); or it keeps elements that the next tile needs too (`overlap`). Points of a block have no order,
    so that the tiles become statements, one after the other, and before each runs the piece of the producer that no
    tile before it needed. The buffer between holds a ring, as long as the elements alive at once:

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

    parent_reqs: Selects = Field(default=(), description="tags of the block in which statements are fused")
    a_reqs: Selects = Field(default=(), description="tags of the producer")
    b_reqs: Selects = Field(default=(), description="tags of the consumer")
    fused_set: TagSet = Field(default=(), description="tags that the fused block gets")
    b_inner_set: TagSet = Field(default=(), description="tags that the consumer's inner block gets")
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
        description="most work of the producer, in multiples of its own, that overlapping windows may "
        "cause; 1: none",
    )
    cache_bytes: int = Field(
        default=0,
        ge=0,
        description="fuse only where shared buffers take more bytes than this, and along the fewest outer indices that "
        "bring the part of one point below it; such an index moves every view of both blocks, so that nothing is read "
        "more often; 0: fuse along all indices that both walk a shared buffer with",
    )
    min_points: int = Field(
        default=0, ge=0, description="fewest points of a fused block, for threads to share; 0: any number"
    )
    objective: ObjectiveOption = Field(
        default="latency",
        description="fuse only where the program that the rest of the pass list makes of the fused block takes no more "
        "time on the machine, energy, or product of both, than the one that it makes of the parts; none: wherever it "
        "is legal, as without a hardware model",
    )
    tiles: dict[str, int] = Field(
        default_factory=dict[str, int],
        description="values of an index, of the producer or else the consumer, for one fused point; where not given "
        "1, or all of a dimension that the consumer reduces, unless a side is tiled already",
    )

    def run(self, program: Program, context: PassContext) -> Program:
        entry = program.entry
        sides = (block for reqs in (self.a_reqs, self.b_reqs) for block in matching(program, reqs))
        names = (index.name for block in sides for index in block.iterated)
        context.unknown_names("tiles", "index", self.tiles, names)
        if not all(any_matching(program, reqs) for reqs in (self.a_reqs, self.b_reqs)):
            return program
        private = frozenset(ref.name for ref in entry.allocs if not ref.is_kept)
        allocations = {ref.name: ref.name for ref in entry.refinements}
        prices = FusionPrices(self.objective, context)
        return with_entry(program, self._visit(program, (0,), private, allocations, {}, prices, context))

    def _visit(
        self,
        program: Program,
        path: Path,
        private: frozenset[str],
        allocations: Mapping[str, str],
        outside: Mapping[str, Interval],
        prices: FusionPrices,
        context: PassContext,
    ) -> Block:
        """Fuses in the block at `path`, then in the old blocks inside. `private` names its buffers without users
        outside, `allocations` has a word for the allocation behind each name, `outside` the intervals of the indices of
        the block outside."""
        block = block_at(program, path)
        if not any(True for _ in block.blocks):
            return block
        intervals = block.intervals(dict(outside))
        made: frozenset[int] = frozenset()
        sides = (self.a_reqs, self.b_reqs)
        there = all(any(inner.words.has_all(reqs) for inner in block.blocks) for reqs in sides)
        if there and block.words.has_all(self.parent_reqs):
            decider = _Decider(self, Line(block, allocations), private, intervals)
            self._fuse_in(program, path, decider, prices, context)
            block, made = decider.line.finish()
        program = with_entry(program, replace_at(program.entry, path, lambda _: block))
        users = Counter(ref.source for inner in block.blocks for ref in inner.refinements)
        for statement in block.statements:
            users.update(() if isinstance(statement, Block) else refs_used(statement))
        alone = {name for name in private if users[name] <= 1}
        statements = list(block.statements)
        for number, inner in enumerate(block.statements):
            if isinstance(inner, Block) and number not in made:
                own = frozenset(
                    ref.name
                    for ref in inner.refinements
                    if (ref.source in alone if ref.source else not ref.is_kept)
                )
                inside = (*path, number)
                behind = {
                    ref.name: allocations[ref.source] if ref.source else f"{inside} {ref.name}"
                    for ref in inner.refinements
                }
                statements[number] = self._visit(program, inside, own, behind, intervals, prices, context)
        return with_statements(block, statements)

    def _fuse_in(
        self, program: Program, path: Path, decider: _Decider, prices: FusionPrices, context: PassContext
    ) -> None:
        """Fuses statements of the decider's line, which the block at `path` has."""
        line = decider.line
        queue = PairQueue(line, lambda a, b: a.words.has_all(self.a_reqs) and b.words.has_all(self.b_reqs))
        said: set[tuple[str, str]] = set()
        for pair in queue:
            decision = decider.decide(pair)
            if isinstance(decision, Decision):
                compared = prices.compared(program, path, line, decision.slots, decision.block)
                if not isinstance(compared, Refusal):
                    line.join(decision.slots, decision.block, decision.changed)
                    context.applied(decision.block, "; ".join(filter(None, (decision.remark, compared))))
                    queue.refresh(pair.first, pair.second)
                    continue
                decision = compared
            if (remark := (pair.a.name, f"not fused with {pair.b.name}: {decision.reason}")) not in said:
                context.missed(*remark)
                said.add(remark)


@dataclass(frozen=True, slots=True)
class Decision:
    """The fused block for the statements at `slots`, and its remark. Where it begins with the producer as it was,
    `changed` names the views that differ."""

    slots: tuple[int, ...]
    block: Block
    remark: str
    changed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Decider:
    """Decides on the pairs of one block: its statements, private buffers and intervals of indices."""

    options: Fusion
    line: Line
    private: frozenset[str]
    intervals: Mapping[str, Interval]

    def decide(self, pair: Candidate) -> Decision | Refusal:
        """The fused block of a pair, with the filler before it where possible; a refusal with the reason."""
        slots = (pair.first, pair.second)
        order = self.line.between(slots)
        if isinstance(order, int):
            return Refusal(f"{self.line.name_at(order)} has to run between them")
        # A block that fills the elements that the producer leaves joins as well where that works, so that the fused
        # block is the only user of the buffer.
        filler = self.line.before(pair.first)
        if filler is not None and (filled := self._filled(filler, pair)) is not None:
            decision = self._fused(filled, pair.b, (filler, *slots))
            if isinstance(decision, Decision):
                return decision
        return self._fused(pair.a, pair.b, slots)

    def _filled(self, slot: int, pair: Candidate) -> Block | None:
        """The producer preceded by the block at `slot`; None unless this initializes the producer's outputs alone."""
        filler = self.line.block_at(slot)
        if filler is None or not self.line[slot].writes & self.line[pair.first].writes:
            return None
        slots = (slot, pair.first, pair.second)
        owned = self._owned(pair.a, slots)
        is_owned = owned.issuperset(ref.source for ref in filler.outputs)
        if not is_owned or isinstance(self.line.between(slots), int):
            return None
        plan = Legality(filler, pair.a, find_pairs(filler, pair.a, self.intervals)).plan()
        if isinstance(plan, Refusal):
            return None
        first, second = (replace(block, tags=block.tags.remove("kernel")) for block in (filler, pair.a))
        fused = fuse(first, second, plan)
        if isinstance(fused, Refusal):
            return None
        return replace(fused.block, name=pair.a.name, tags=pair.a.tags)

    def _owned(self, a: Block, slots: tuple[int, ...]) -> frozenset[str]:
        """The private buffers that `a` writes and that the statements at `slots` alone use."""
        sources = {ref.source for ref in a.outputs} & self.private
        return frozenset(source for source in sources if self.line.users(source).issubset(slots))

    def _fused(self, a: Block, b: Block, slots: tuple[int, ...]) -> Decision | Refusal:
        """The decision on the producer `a`, which may be joined with a filler, and the consumer `b`."""
        line, options = self.line, self.options
        if (names := line.aliases(a, b)) is not None:
            return Refusal(f"{names[0]} and {names[1]} are views of one buffer")
        # The line has the contents of the producer unless a filler joined it.
        contents = line.contents(slots[0]) if line.block_at(slots[0]) is a else Contents.of(a)
        read = {ref.source for ref in b.refinements if ref.source}
        pairs = find_pairs(a, b, self.intervals, contents.views(a.refinements, read))
        owned = partial(self._owned, a, slots)
        legality = Legality(a, b, pairs, owned, options.tiles, options.max_recompute)
        kept = self._in_rings(a, b, slots, legality) if options.overlap == "keep" else None
        if isinstance(kept, Decision):
            return kept
        plan = legality.plan()
        if isinstance(plan, Refusal):
            return plan if kept is None else Refusal(f"{kept.reason}; {plan.reason}")
        if options.cache_bytes:
            chosen = self._outermost(a, b, plan)
            if isinstance(chosen, Refusal):
                return chosen
            coarse = Legality(a, b, pairs, owned, {**options.tiles, **chosen}).plan()
            if isinstance(coarse, Refusal):
                return coarse
            plan = replace(plan, shared=tuple(entry for entry in coarse.shared if entry.a_index in chosen))
        points = prod(entry.count for entry in plan.shared)
        if points < options.min_points:
            return Refusal(f"{points} points would run in parallel, fewer than {options.min_points}")
        inside = self._inside(a, b)
        fused = extended(*inside, plan, contents) or fuse(*inside, plan)
        if isinstance(fused, Refusal):
            return fused
        remark = fusion_remark(a, b, fused, plan, contents, line.buffers)
        return Decision(slots, self._tagged(fused.block, a, b), remark, fused.changed)

    def _outermost(self, a: Block, b: Block, plan: FusionPlan) -> dict[str, int] | Refusal:
        """The fewest indices that bring the part of the shared buffers of one point into the cache, and for each the
        values of a point: as many as the cache and `min_points` allow."""
        limit, least = self.options.cache_bytes, max(1, self.options.min_points)
        read = {ref.source for ref in b.refinements if ref.dir.reads}
        views = [ref for ref in a.outputs if ref.source in read]
        left = sum(self.line.buffers[ref.source].bytes for ref in views)
        if left <= limit:
            return Refusal(f"they share {left} bytes, which the cache of {limit} bytes holds")
        far = {entry: max(abs(step(ref, entry.a_index) or 0) for ref in views) for entry in plan.shared}
        chosen: dict[str, int] = {}
        points = 1
        for entry in sorted(plan.shared, key=lambda entry: -far[entry]):
            still = next(iter([*unmoved(a, entry.a_index), *unmoved(b, entry.b_index)]), None)
            if still is not None and not chosen:
                return Refusal(f"each point of {entry.name} would read {still.source} again")
            if still is not None or left <= limit:
                break
            left = -(-left // entry.count)
            values = max(1, min(limit // left, entry.count * points // least))
            chosen[entry.a_index] = values * entry.a_split.outer_step
            points *= entry.count // values
        return chosen

    def _in_rings(self, a: Block, b: Block, slots: tuple[int, ...], legality: Legality) -> Decision | Refusal:
        """The decision on both blocks in steps: the rings with the fewest elements."""
        # Here, since layouts and integer sets come with it.
        from stripe.passes.fusion.rings import RingSteps, find_rings

        options = self.options
        best: tuple[int, Decision] | None = None
        reason = "no dimension to keep an overlap of"
        for ring in find_rings(a, b, legality.pairs, legality.exact_indices):
            plan = legality.local_plan(ring.indices)
            if isinstance(plan, Refusal):
                reason = plan.reason
                continue
            fused = fuse(*self._inside(a, b), plan)
            if isinstance(fused, Refusal):
                reason = fused.reason
                continue
            steps = RingSteps(fused, ring, options.tiles, options.max_steps, self.intervals)
            kept = steps.result()
            if isinstance(kept, Refusal):
                reason = kept.reason
                continue
            size = sum(kept.block.ref(name).elements for name in kept.rings)
            if best is None or size < best[0]:
                remark = ring_remark(a, b, kept, plan, self.line.buffers)
                best = size, Decision(slots, self._tagged(kept.block, a, b), remark)
        return best[1] if best is not None else Refusal(f"overlap not kept: {reason}")

    def _inside(self, a: Block, b: Block) -> tuple[Block, Block]:
        """Both blocks with the tags that they have inside: they are no kernels any more."""
        return (
            replace(a, tags=a.tags.remove("kernel")),
            replace(b, tags=b.tags.remove("kernel").add(*self.options.b_inner_set)),
        )

    def _tagged(self, fused: Block, a: Block, b: Block) -> Block:
        kernel = ("kernel",) if "kernel" in a.tags or "kernel" in b.tags else ()
        return replace(fused, tags=Tags.of(*kernel).add(*self.options.fused_set))
