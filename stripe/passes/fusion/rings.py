"""Rings: overlaps between tiles of a consumer are kept, and both blocks run in steps, one after the other.

The points of a block have no order, so that a tile that uses results of another tile has to be a statement behind it.
The consumer becomes a sequence of tiles, and before each of them runs the piece of the producer that no tile before it
needed. The buffer between them holds a ring: as many elements of the dimension as are alive at once. Such a sequence is
itself a producer or a consumer that can be fused so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Index,
    IndexMap,
    Interval,
    Nest,
    Statement,
    beginnings,
    reads_of,
    substitute,
    with_statements,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.passes.fusion.build import Fused
from stripe.passes.fusion.reach import Reach, ViewPair, reaches
from stripe.poly import accesses, box_of
from stripe.rewrite.copy import beside, fill_block
from stripe.rewrite.pack import Packing, repacked, unpackable
from stripe.rewrite.refusal import Refusal


@dataclass(frozen=True, slots=True)
class RingChoice:
    """The dimension of each shared buffer that becomes a ring, and the indices that walk it; None for a block that is
    already a sequence of statements."""

    dims: Mapping[str, int]
    a_index: str | None
    b_index: str | None

    @property
    def indices(self) -> frozenset[str]:
        return frozenset(name for name in (self.a_index, self.b_index) if name is not None)


@dataclass(frozen=True, slots=True)
class RingBlock:
    """A fused block in steps: the number of statements of the consumer that read from a ring, the length of each ring
    by the name of its buffer, and the name of that buffer outside."""

    block: Block
    steps: int
    rings: Mapping[str, int]
    sources: Mapping[str, str]


def find_rings(a: Block, b: Block, pairs: Sequence[ViewPair], shared: frozenset[str]) -> Iterator[RingChoice]:
    """The rings that the accesses allow: a dimension, and the indices that walk it, without the indices `shared` in
    step."""
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
                    yield RingChoice(dims, mine, theirs)


def _walkers(found: Sequence[Reach], dim: int, block: Block) -> list[str | None]:
    """The indices that walk a dimension; None in their place for a block that holds several others."""
    names = [reach.index for reach in found if reach.dim == dim]
    return [*names] or ([None] if sum(1 for _ in block.blocks) > 1 else [])


def _dims(flows: Sequence[ViewPair], dim: int, mine: str | None, theirs: str | None) -> dict[str, int] | None:
    """The dimension of each shared buffer that the indices walk; None where they walk several."""
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


@dataclass(frozen=True, slots=True)
class _RingStep:
    """A statement, whether it belongs to the producer's half, and the elements that it touches of the dimension of each
    shared buffer."""

    statement: Statement
    writes: bool
    spans: Mapping[str, Interval]

    def meets(self, other: _RingStep) -> bool:
        """Whether both touch a common element of a shared buffer."""
        return any(
            low <= other.spans[name][1] and other.spans[name][0] <= high
            for name, (low, high) in self.spans.items()
            if name in other.spans
        )


class RingSteps:
    """A fused block in steps: both halves as sequences, and the rings between them.

    `tiles` gives values of the consumer's index for one step, `max_steps` bounds the steps of an index that it does not
    name; `outside` has the intervals of the indices of the block outside.
    """

    def __init__(
        self,
        fused: Fused,
        ring: RingChoice,
        tiles: Mapping[str, int],
        max_steps: int,
        outside: Mapping[str, Interval],
    ) -> None:
        self.fused, self.ring, self.outside = fused.block, ring, outside
        self.tiles, self.max_steps = tiles, max_steps
        self.intervals = fused.block.intervals(dict(outside))
        self.dims = {fused.local[source]: dim for source, dim in ring.dims.items()}
        self.sources = {name: source for source, name in fused.local.items()}
        self.producers = fused.block.statements[: fused.first]
        self.consumers = fused.block.statements[fused.first :]

    def result(self) -> RingBlock | Refusal:
        """The block with its rings; a refusal where the statements cannot run in steps, or where a ring would be as
        long as its dimension."""
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        # The consumer in tiles; the producer in pieces, a piece for the further needs of each tile.
        consumers = self._with_spans(self._tiled(), writes=False)
        reading = [step for step in consumers if step.spans]
        if len(reading) < 2:
            return Refusal("the consumer is one step")
        producers = self._pieces(reading)
        if isinstance(producers, Refusal):
            return producers
        # Both halves in their order, each step of the consumer behind the pieces that write elements that it touches.
        order: list[_RingStep] = []
        done = 0
        for step in consumers:
            meeting = (n for n, piece in enumerate(producers[done:], done) if piece.meets(step))
            end = max(meeting, default=done - 1) + 1
            order += [*producers[done:end], step]
            done = end
        order += producers[done:]
        # Rings have to be shorter than the dimension, and written in its order.
        rings = {name: self._length(name, order) for name in self.dims}
        for name, length in rings.items():
            written = [step.spans[name] for step in producers if name in step.spans]
            size = max(high for _, high in written) - min(low for low, _ in written) + 1
            if length >= size:
                return Refusal(
                    f"all {size} elements of dimension {self.dims[name]} of {name} are alive at once"
                )
            touched = [step.spans[name] for step in order if name in step.spans]
            if _has_gaps(touched, written):
                return Refusal(f"{name} has elements in dimension {self.dims[name]} that no piece writes")
            if len(list(_new_elements(name, order))) < len(written):
                return Refusal(f"{name} is not written in the order of dimension {self.dims[name]}")
        block = with_statements(self.fused, self._cleared(order, rings))
        packings = {
            name: Packing.fold(IndexMap.fold(block.ref(name).rank, self.dims[name], length))
            for name, length in rings.items()
        }
        return RingBlock(repacked(block, {(0,): packings}, self.outside), len(reading), rings, self.sources)

    def _refusal(self) -> Refusal | None:
        """The reason why the statements cannot run in steps."""
        if any(statement.deps for statement in self.fused.statements):
            return Refusal("its statements have dependences already: fuse before compute_deps")
        (a_reads, a_writes), (b_reads, b_writes) = (
            ({n for s in half for n in reads_of(s)}, {n for s in half for n in writes_of(s)})
            for half in (self.producers, self.consumers)
        )
        tied = (a_writes & b_reads) - self.dims.keys() | (a_reads | a_writes) & b_writes
        if tied:
            return Refusal(f"{min(tied)} orders them in another way")
        refusals = (unpackable(self.fused, name) for name in sorted(self.dims))
        return next((refusal for refusal in refusals if refusal is not None), None)

    def _tiled(self) -> list[Statement]:
        """The consumer's statements, with the tiles of the block that walks the dimension."""
        name = self.ring.b_index
        if name is None:
            return list(self.consumers)
        result: list[Statement] = []
        for statement in self.consumers:
            index = statement.find_index(name) if isinstance(statement, Block) else None
            if not isinstance(statement, Block) or index is None:
                result.append(statement)
                continue
            tile = self.tiles.get(name) or ceil(index.range / self.max_steps)
            for start in range(0, index.range, tile):
                result.append(self._part(statement, index, start, min(start + tile, index.range)))
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

    def _with_spans(self, statements: Sequence[Statement], *, writes: bool) -> list[_RingStep]:
        """Each statement with the elements that it touches of the shared buffers."""
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
        return [_RingStep(s, writes, span) for s, span in zip(statements, spans, strict=True)]

    def _pieces(self, reading: Sequence[_RingStep]) -> list[_RingStep] | Refusal:
        """The producer's statements, with a piece of the block that walks the dimension for each step that needs more
        values."""
        name = self.ring.a_index
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
            # From the first value of the index that any step needs; each step needs values up to `end`.
            lows = {w.index: min(s.spans[w.index][0] for s in reading if w.index in s.spans) for w in walks}
            done = max(0, min(-((walk.high - lows[walk.index]) // walk.step) for walk in walks))
            for step in reading:
                known = [walk for walk in walks if walk.index in step.spans]
                ends = ((step.spans[walk.index][1] - walk.low) // walk.step + 1 for walk in known)
                if (end := min(index.range, max(ends, default=0))) > done:
                    result.append(self._part(statement, index, done, end))
                    done = end
        return self._with_spans(result, writes=True)

    def _walks(self, block: Block, name: str) -> list[Reach] | Refusal:
        """The steps of the index through each view of the shared buffers, with the buffer's name as `index`."""
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

    def _length(self, name: str, order: Sequence[_RingStep]) -> int:
        """Elements of the dimension alive at once: from the first element that a later step reads, or that a piece
        writes, to the last element written."""
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

    def _cleared(self, order: Sequence[_RingStep], rings: Mapping[str, int]) -> Iterator[Statement]:
        """The statements in their order; before a reuse, elements of a ring are filled with the identity of the
        aggregation that merges into them."""
        begins = beginnings(self.fused)
        fresh = {name: iter(_new_elements(name, order)) for name in rings}
        for step in order:
            for name in rings if step.writes else ():
                if name not in step.spans:
                    continue
                low, high, again = next(fresh[name])
                low = max(low, again + rings[name])
                if low > high or begins[name] is Agg.ASSIGN:
                    continue
                ref, along = self.fused.ref(name), self.dims[name]
                box = [(low, high) if dim == along else (0, size - 1) for dim, size in enumerate(ref.sizes)]
                value, place = begins[name].identity(ref.dtype), beside(step.statement)
                yield fill_block(f"clear_{name}", ref, box, value, location=place)
            yield step.statement


def _has_gaps(touched: Sequence[Interval], written: Sequence[Interval]) -> bool:
    """Whether elements between the first and the last touched element lie in no written interval."""
    end = min(low for low, _ in touched)
    for low, high in sorted(written):
        if low > end:
            return True
        end = max(end, high + 1)
    return end <= max(high for _, high in touched)


def _new_elements(name: str, order: Iterable[_RingStep]) -> Iterator[tuple[int, int, int]]:
    """For each piece that writes a buffer: its first and last new element of the dimension (an empty interval where no
    element is new), and the first element that any piece wrote. Pieces have no gaps between them; the iteration stops
    at a piece that writes before this first element."""
    first = end = None
    for step in order:
        span = step.spans.get(name) if step.writes else None
        if span is None:
            continue
        low, high = span
        if first is None or end is None:
            first = end = low
        if low < first:
            return
        yield (max(low, end), high, first) if high >= end else (0, -1, first)
        end = max(end, high + 1)
