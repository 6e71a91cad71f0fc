"""Keeping what the tiles of a consumer share: both blocks in steps, one after the other, over a ring of a dimension.

The points of a block have no order, so that a tile that uses what another one computed has to be a statement behind
that one. The consumer becomes a sequence of tiles, and before each of them stands the piece of the producer that
computes what no tile before it needed. The buffer between them holds a ring: as many elements of the dimension as are
alive at once. A sequence that was made so is itself a producer or a consumer that can be kept up with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Index,
    Interval,
    Nest,
    Statement,
    Tags,
    allocation_agg,
    reads_of,
    substitute,
    with_statements,
    writes_of,
)
from stripe.passes.fusion.build import Fused
from stripe.passes.fusion.match import Pair, Reach, reaches
from stripe.poly import accesses, box_of
from stripe.rewrite.copy import Element, beside, fill_block
from stripe.rewrite.pack import Packing, repacked, why_unpackable
from stripe.rewrite.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Way:
    """One way to keep: the dimension of each shared buffer that becomes a ring, and the indices that walk it; None for
    a block that is a sequence of statements already."""

    dims: Mapping[str, int]
    a_index: str | None
    b_index: str | None

    @property
    def indices(self) -> frozenset[str]:
        return frozenset(name for name in (self.a_index, self.b_index) if name is not None)


@dataclass(frozen=True, slots=True)
class Kept:
    """A fused block in steps: how many statements of the consumer read what is kept, the length of each ring by the
    name of its buffer, and what that buffer is called outside."""

    block: Block
    steps: int
    rings: Mapping[str, int]
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StepOptions:
    """Values of an index of the consumer for one step, and the most steps where an index is not named."""

    tiles: Mapping[str, int]
    max_steps: int


def find_ways(a: Block, b: Block, pairs: Sequence[Pair], shared: frozenset[str]) -> Iterator[Way]:
    """The ways to keep that the accesses allow: a dimension, and the indices that walk it, none of those that are
    `shared` without any overlap."""
    flows = [pair for pair in pairs if pair.flows]
    kept = frozenset[str]().union(*(affine.names() for ref in b.outputs for affine in ref.access))
    found: set[tuple[tuple[tuple[str, int], ...], str | None, str | None]] = set()
    for dim in range(flows[0].a.rank if flows else 0):
        for mine in _walkers(flows[0].a_reaches, dim, a):
            for theirs in _walkers(flows[0].b_reaches, dim, b):
                if {mine, theirs} & shared or (theirs is not None and theirs not in kept):
                    continue
                dims = _dims(flows, dim, mine, theirs)
                if dims is not None and (key := (tuple(dims.items()), mine, theirs)) not in found:
                    found.add(key)
                    yield Way(dims, mine, theirs)


def _walkers(found: Sequence[Reach], dim: int, block: Block) -> list[str | None]:
    """The indices that walk a dimension; where none does, None for a block that holds several others."""
    names = [reach.index for reach in found if reach.dim == dim]
    return [*names] or ([None] if sum(1 for _ in block.blocks) > 1 else [])


def _dims(flows: Sequence[Pair], dim: int, mine: str | None, theirs: str | None) -> dict[str, int] | None:
    """The dimension of each shared buffer that the indices walk; None where that is not one."""
    dims = {flows[0].a.source: dim}
    for pair in flows:
        walked = [
            {reach.dim for reach in found if reach.index == name}
            for found, name in ((pair.a_reaches, mine), (pair.b_reaches, theirs))
            if name is not None
        ]
        common = set[int].intersection(*walked) if walked else set(range(pair.a.rank))
        known = dims.get(pair.a.source, min(common, default=0))
        if known not in common:
            return None
        dims[pair.a.source] = known
    return dims


def in_steps(fused: Fused, way: Way, options: StepOptions, outside: Mapping[str, Interval]) -> Kept | Refusal:
    """The fused block in steps. `outside` has the intervals of the indices of the block outside."""
    return _Stepper(fused, way, options, outside).result()


@dataclass(frozen=True, slots=True)
class _Step:
    """A statement, whether it is of the producer's half, and for each shared buffer the elements of its dimension that
    it touches."""

    statement: Statement
    writes: bool
    spans: Mapping[str, Interval]


class _Stepper:
    def __init__(self, fused: Fused, way: Way, options: StepOptions, outside: Mapping[str, Interval]) -> None:
        self.fused = fused.block
        self.way = way
        self.options = options
        self.outside = outside
        self.intervals = fused.block.intervals(dict(outside))
        self.dims = {fused.local[source]: dim for source, dim in way.dims.items()}
        self.sources = {name: source for source, name in fused.local.items()}
        self.producers = fused.block.statements[: fused.first]
        self.consumers = fused.block.statements[fused.first :]

    def result(self) -> Kept | Refusal:
        reason = self._why_not()
        if reason:
            return Refusal(reason)
        consumers = self._with_spans(self._tiles(), writes=False)
        reading = [step for step in consumers if step.spans]
        if len(reading) < 2:
            return Refusal("the consumer is one step")
        producers = self._pieces(reading)
        if isinstance(producers, Refusal):
            return producers
        order = list(_interleaved(producers, consumers))
        rings = {name: self._ring(name, order) for name in self.dims}
        for name, length in rings.items():
            written = [step.spans[name] for step in producers if name in step.spans]
            size = max(high for _, high in written) - min(low for low, _ in written) + 1
            if length >= size:
                return Refusal(
                    f"all {size} elements of dimension {self.dims[name]} of {name} are alive at once"
                )
            if len(list(_new_elements(name, order))) < len(written):
                return Refusal(f"{name} is not written in the order of dimension {self.dims[name]}")
        block = with_statements(self.fused, self._cleared(order, rings))
        packings = {
            name: Packing.ring(block.ref(name).rank, self.dims[name], length)
            for name, length in rings.items()
        }
        return Kept(repacked(block, {(0,): packings}, self.outside), len(reading), rings, self.sources)

    def _why_not(self) -> str:
        """What keeps the statements from running in steps."""
        if any(statement.deps for statement in self.fused.statements):
            return "its statements have dependences already: fuse before compute_deps"
        (a_reads, a_writes), (b_reads, b_writes) = _uses(self.producers), _uses(self.consumers)
        tied = (a_writes & b_reads) - self.dims.keys() | (a_reads | a_writes) & b_writes
        if tied:
            return f"{min(tied)} orders them in another way"
        return next(
            (reason for name in sorted(self.dims) if (reason := why_unpackable(self.fused, name))), ""
        )

    def _tiles(self) -> list[Statement]:
        """The consumer's statements, the block that walks the dimension in tiles."""
        name = self.way.b_index
        if name is None:
            return list(self.consumers)
        result: list[Statement] = []
        for statement in self.consumers:
            index = statement.find_index(name) if isinstance(statement, Block) else None
            if not isinstance(statement, Block) or index is None:
                result.append(statement)
                continue
            tile = self.options.tiles.get(name) or ceil(index.range / self.options.max_steps)
            starts = range(0, index.range, tile)
            result += [
                self._part(statement, index, start, min(start + tile, index.range)) for start in starts
            ]
        return result

    def _part(self, block: Block, index: Index, start: int, end: int) -> Block:
        """The points of `block` with the index in [start, end)."""
        if end - start == 1:
            value = Affine(start)
            indices = tuple(i for i in block.indices if i.name != index.name)
        else:
            value = Affine.var(index.name) + start
            ranged = replace(index, range=end - start)
            indices = tuple(ranged if i.name == index.name else i for i in block.indices)
        part = substitute(block, {index.name: value})
        part = replace(part, name=f"{block.name}_{index.name}{start}", indices=indices)
        intervals = part.intervals(dict(self.intervals))
        kept = tuple(c for c in part.constraints if c.affine.bounds(intervals)[0] < 0)
        return replace(part, constraints=kept)

    def _with_spans(self, statements: Sequence[Statement], *, writes: bool) -> list[_Step]:
        """Each statement with what it touches of the shared buffers."""
        root = Nest.root(with_statements(self.fused, statements))
        found: dict[tuple[int, str], list[Interval]] = {}
        for access in accesses(root):
            if access.buffer.name in self.dims and access.buffer.path == root.path:
                box = box_of([access])
                if box is not None:
                    key = (access.path[len(root.path)], access.buffer.name)
                    found.setdefault(key, []).append(box[self.dims[access.buffer.name]])
        spans: list[dict[str, Interval]] = [{} for _ in statements]
        for (number, name), parts in found.items():
            spans[number][name] = (min(p[0] for p in parts), max(p[1] for p in parts))
        return [_Step(s, writes, span) for s, span in zip(statements, spans, strict=True)]

    def _pieces(self, reading: Sequence[_Step]) -> list[_Step] | Refusal:
        """The producer's statements; the block that walks the dimension in pieces, each what one more step needs."""
        name = self.way.a_index
        if name is None:
            return self._with_spans(self.producers, writes=True)
        result: list[Statement] = []
        for statement in self.producers:
            index = statement.find_index(name) if isinstance(statement, Block) else None
            if not isinstance(statement, Block) or index is None:
                result.append(statement)
                continue
            walks = self._walks(statement, name)
            if isinstance(walks, Refusal):
                return walks
            done = max(0, min(_first_needed(walk, reading) for walk in walks))
            for step in reading:
                needed = max((_end_needed(walk, step.spans) for walk in walks), default=0)
                if (end := min(index.range, needed)) > done:
                    result.append(self._part(statement, index, done, end))
                    done = end
        return self._with_spans(result, writes=True)

    def _walks(self, block: Block, name: str) -> list[Reach] | Refusal:
        """How the index walks the dimension through each view of the shared buffers, whose name stands as `index`."""
        walks: list[Reach] = []
        more = {ref.source for ref in block.outputs} - self.sources.keys()
        if more:
            return Refusal(f"{block.name} also writes {min(more)}")
        for ref in block.refinements:
            if ref.source not in self.dims:
                continue
            dim = self.dims[ref.source]
            mine = [r for r in reaches(block, ref, self.intervals) if (r.dim, r.index) == (dim, name)]
            if not mine or mine[0].overlaps or mine[0].symbol.terms:
                return Refusal(f"{name} does not walk dimension {dim} of {ref.source} in steps of its own")
            walks.append(replace(mine[0], index=ref.source))
        return walks

    def _ring(self, name: str, order: Sequence[_Step]) -> int:
        """How many elements of the dimension are alive at once: from the first that a later step reads, or that a
        piece writes, to the last that was written."""
        alive: list[int | None] = []
        low: int | None = None
        for step in reversed(order):
            span = step.spans.get(name)
            if span is not None and not step.writes:
                low = span[0] if low is None else min(low, span[0])
            alive.append(low)
        length, top = 1, -1
        for step, needed in zip(order, reversed(alive), strict=True):
            span = step.spans.get(name)
            if span is not None and step.writes:
                top = max(top, span[1])
                lowest = span[0] if needed is None else min(span[0], needed)
                length = max(length, top - lowest + 1)
        return length

    def _cleared(self, order: Sequence[_Step], rings: Mapping[str, int]) -> Iterator[Statement]:
        """The statements in their order, elements of a ring that are used again brought back to the identity of the
        aggregation that merges into them."""
        merged = {name: allocation_agg(self.fused, name) for name in rings}
        fresh = {name: iter(_new_elements(name, order)) for name in rings}
        for step in order:
            for name, agg in merged.items() if step.writes else ():
                if name in step.spans:
                    low, high, again = next(fresh[name])
                    low = max(low, again + rings[name])
                    if low <= high and agg is not Agg.ASSIGN:
                        yield self._clear(name, (low, high), agg, step.statement)
            yield step.statement

    def _clear(self, name: str, span: Interval, agg: Agg, user: Statement) -> Block:
        """The block that fills elements of a shared buffer with the identity of `agg`."""
        ref = self.fused.ref(name)
        sizes = list(ref.sizes)
        sizes[self.dims[name]] = span[1] - span[0] + 1
        access = [Affine.var(f"d{dim}") for dim in range(ref.rank)]
        access[self.dims[name]] += span[0]
        indices = [Index(f"d{dim}", size) for dim, size in enumerate(sizes)]
        place = Element(ref, tuple(access))
        value = agg.identity(ref.dtype)
        return fill_block(f"clear_{name}", indices, place, value, Tags.of("init"), location=beside(user))


def _new_elements(name: str, order: Iterable[_Step]) -> Iterator[tuple[int, int, int]]:
    """For each piece that writes a buffer: the first and last element of the dimension that no piece before wrote (an
    empty interval where there is none), and the first that any wrote. Stops at a piece that writes an element behind
    one that was written before."""
    seen: set[int] = set()
    for step in order:
        span = step.spans.get(name) if step.writes else None
        if span is None:
            continue
        new = set(range(span[0], span[1] + 1)) - seen
        if new and seen and min(new) < max(seen):
            return
        seen |= new
        yield min(new, default=0), max(new, default=-1), min(seen)


def _interleaved(producers: Sequence[_Step], consumers: Sequence[_Step]) -> Iterator[_Step]:
    """Both halves in their order, each of the consumer's steps behind all that writes what it touches."""
    done = 0
    for step in consumers:
        meeting = (n for n, piece in enumerate(producers) if n >= done and _meet(piece, step))
        end = max(meeting, default=done - 1) + 1
        yield from producers[done:end]
        done = end
        yield step
    yield from producers[done:]


def _meet(piece: _Step, step: _Step) -> bool:
    """Whether two statements may touch an element of a shared buffer in common."""
    return any(
        low <= step.spans[name][1] and step.spans[name][0] <= high
        for name, (low, high) in piece.spans.items()
        if name in step.spans
    )


def _first_needed(walk: Reach, reading: Sequence[_Step]) -> int:
    """The first value of the producer's index that any step needs."""
    lows = [step.spans[walk.index][0] for step in reading if walk.index in step.spans]
    return -((walk.high - min(lows)) // walk.step)


def _end_needed(walk: Reach, spans: Mapping[str, Interval]) -> int:
    """One more than the last value of the producer's index that a step with these spans needs."""
    return (spans[walk.index][1] - walk.low) // walk.step + 1 if walk.index in spans else 0


def _uses(statements: Sequence[Statement]) -> tuple[set[str], set[str]]:
    """The refinements that statements read, and those that they write."""
    return {n for s in statements for n in reads_of(s)}, {n for s in statements for n in writes_of(s)}
