"""The elements of each buffer that the statements of a block have written: transfers may move these."""

from __future__ import annotations

from collections.abc import Collection

from stripe.ir import Agg, Block, Nest, Refinement, block_at
from stripe.poly import Access, Points, box_points, elements, pieces, through_view
from stripe.rewrite.cached import assigned_before, begins_inside
from stripe.rewrite.regions import EVERYTHING, Region


def fresh_buffers(entry: Block, block: Block) -> frozenset[str]:
    """The buffers that hold nothing when a block begins: its own, and in main all but given tensors that it only
    reads."""
    given = {ref.name for ref in entry.refinements if ref.is_kept}
    given -= {ref.source for ref in block.refinements if ref.dir.writes}
    return frozenset(
        r.name for r in block.refinements if r.is_alloc or (block.is_main and r.source not in given)
    )


class WrittenElements:
    """The elements that the statements of the innermost block of a nest write, by buffer. `fresh` buffers hold nothing
    when the block begins.
    """

    def __init__(self, nest: Nest, fresh: Collection[str]) -> None:
        self._nest, self._fresh = nest, fresh
        self._accesses: dict[str, tuple[Access, ...]] = {}
        self._written: dict[tuple[str, int], Points | None] = {}

    def unread(self) -> frozenset[str]:
        """The buffers of the outside that the block assigns, and neither reads nor merges into."""
        refs = [ref.name for ref in self._nest.block.refinements if not ref.is_alloc and not ref.dir.reads]
        return frozenset(name for name in refs if all(a.agg is Agg.ASSIGN for a in self._of(name)))

    def regions(self, name: str, number: int, stay: Collection[int]) -> list[Region]:
        """The part of a buffer to move when statement `number` has run: all of it where no statement writes (of one
        with undefined holes the elements read); of an unread buffer the elements that the statements of a `stay` write;
        of a fresh buffer the elements written so far; else the elements that statements touch."""
        found, ref, depth = self._of(name), self._nest.block.ref(name), len(self._nest.path)
        if stay and name in self.unread():
            return _regions(ref, _part(ref, [access for access in found if access.path[depth] in stay]))
        if not any(access.is_write for access in found):
            return _regions(ref, _part(ref, found)) if self._has_undefined_holes(name) else [EVERYTHING]
        return _regions(ref, self._until(ref, number) if name in self._fresh else _part(ref, found))

    def obstacle(self) -> str | None:
        """The reason why copies in a near memory would not hold the contents of their buffers, at each point of the
        blocks around."""
        for ref in self._nest.block.refinements:
            found = self._of(ref.name)
            if loops := self._loops_around(found):
                return f"the elements of {ref.name} that it touches differ with {', '.join(loops)} around it"
            merges = [access for access in found if access.is_write and access.agg is not Agg.ASSIGN]
            aggs = {access.agg for access in merges}
            if all(assigned_before(merge, found) for merge in merges):
                continue
            if len(aggs) > 1 or not (ref.name in self._fresh or self._begins_inside(merges[0])):
                return f"{ref.name} is merged with what it held before, by {', '.join(sorted(a.value for a in aggs))}"
            if ref.name not in self._fresh and ref.dir.reads:
                return f"{ref.name} holds nothing before it is merged into, and would be fetched"
        return None

    def _begins_inside(self, merge: Access) -> bool:
        return begins_inside(self._nest.blocks[0], self._nest, merge.buffer, merge.agg)

    def _loops_around(self, accesses: Collection[Access]) -> list[str]:
        """The indices of blocks around on which it depends which elements of a view the accesses touch."""
        nest = self._nest
        names = frozenset(nest.prefix(nest.depth - 1))
        given = frozenset(nest.domain.constraints)
        affines = (
            affine
            for access in accesses
            for affine in (*access.index, *(c for c in access.nest.domain.constraints if c not in given))
        )
        return sorted({name for affine in affines for name in affine.names() & names})

    def has_read_gaps(self, name: str) -> bool:
        """Whether a statement reads elements of a fresh buffer that no statement up to it writes: the values that
        merges begin with, which no transfer moves."""
        depth, ref = len(self._nest.path), self._nest.block.ref(name)
        reads = [access for access in self._of(name) if not access.is_write]
        if name not in self._fresh or len(reads) == len(self._of(name)):
            return False
        for number in dict.fromkeys(access.path[depth] for access in reads):
            written = self._until(ref, number)
            own = [access for access in reads if access.path[depth] == number]
            if written is not None and not elements(own, ref.rank).subset_of(written):
                return True
        return False

    def _until(self, ref: Refinement, number: int) -> Points | None:
        """The elements that statements up to `number` write; None for all elements."""
        depth = len(self._nest.path)
        writes = [a for a in self._of(ref.name) if a.is_write and a.path[depth] <= number]
        key = ref.name, len(writes)
        if key not in self._written:
            self._written[key] = _part(ref, writes)
        return self._written[key]

    def _has_undefined_holes(self, name: str) -> bool:
        buffer = self._nest.views[name].buffer
        return block_at(self._nest.blocks[0], buffer.path).ref(buffer.name).has_undefined_holes

    def _of(self, name: str) -> tuple[Access, ...]:
        if name not in self._accesses:
            self._accesses[name] = through_view(self._nest, name)
        return self._accesses[name]


def _part(ref: Refinement, parts: Collection[Access]) -> Points | None:
    """The elements of a view that accesses touch; None for all elements."""
    touched = elements(parts, ref.rank).coalesced()
    return None if box_points(ref.sizes).subset_of(touched) else touched


def _regions(ref: Refinement, points: Points | None) -> list[Region]:
    if points is None:
        return [EVERYTHING]
    return [piece.gist(box_points(ref.sizes)).affines() for piece in pieces(points)]
