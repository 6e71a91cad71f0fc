"""The elements of each buffer that the statements of a block read and write: those that transfers move."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from operator import add

from stripe.ir import Agg, Buffer, Nest, Refinement, block_at
from stripe.ir.frozen import replace
from stripe.poly import Access, Points, box_points, element_names, elements, pieces, through_view, touched_at
from stripe.rewrite.cached import assigned_before, begins_inside, writes_before
from stripe.rewrite.regions import EVERYTHING, Region


class WrittenElements:
    """The elements that the statements of the innermost block of a nest write, by buffer. `fresh` buffers hold nothing
    where the block touches them when it begins: its own, and those that no statement has written there before.
    """

    def __init__(self, nest: Nest) -> None:
        self._nest = nest
        self._accesses: dict[str, tuple[Access, ...]] = {}
        self.fresh = frozenset(ref.name for ref in nest.block.refinements if self._is_fresh(ref))
        self._written: dict[tuple[str, int], Points | None] = {}

    def unread(self) -> frozenset[str]:
        """The buffers of the outside that the block assigns, and neither reads nor merges into."""
        refs = [ref.name for ref in self._nest.block.refinements if not ref.is_alloc and not ref.dir.reads]
        return frozenset(name for name in refs if all(a.agg is Agg.ASSIGN for a in self._of(name)))

    def regions(self, name: str, number: int, stay: Collection[int]) -> list[Region]:
        """The part of a buffer to move when statement `number` has run: all of a given tensor (of one with undefined
        holes the elements read); of a fresh buffer that the block reads the elements written so far. Of others the
        elements that the statements of a `stay` write go back, and those that later statements need come."""
        found, ref, depth = self._of(name), self._nest.block.ref(name), len(self._nest.path)
        if self._is_given(ref):
            return _regions(ref, _part(ref, found)) if self._tensor(ref).has_undefined_holes else [EVERYTHING]
        if name in self.fresh and not (stay and name in self.unread()):
            return _regions(ref, self._until(ref, number))
        if stay:
            return _regions(ref, _part(ref, [a for a in found if a.is_write and a.path[depth] in stay]))
        return _regions(ref, self._needed(ref, number))

    def obstacle(self) -> str | None:
        """The reason why copies in a near memory would not hold the contents of their buffers, at each point of the
        blocks around."""
        for ref in self._nest.block.refinements:
            name, found = ref.name, self._of(ref.name)
            if loops := self._loops_around(found):
                return f"the elements of {name} that it touches differ with {', '.join(loops)} around it"
            merges = [access for access in found if access.is_write and access.agg is not Agg.ASSIGN]
            aggs = {access.agg for access in merges}
            if not all(assigned_before(merge, found) for merge in merges) and (
                len(aggs) > 1 or not (self._begins_with_block(ref) or self._begins_inside(merges[0]))
            ):
                return f"{name} is merged with what it held before, by {', '.join(sorted(a.value for a in aggs))}"
        return None

    def _begins_with_block(self, ref: Refinement) -> bool:
        """Whether a buffer is there, and written, in the block alone; main runs once, and with it all statements."""
        return ref.is_alloc or (self._nest.block.is_main and not self._is_given(ref))

    def _is_given(self, ref: Refinement) -> bool:
        """Whether a buffer is a tensor that the program only reads."""
        entry, buffer = self._nest.blocks[0], self._buffer(ref)
        views = (view for block in entry.blocks for view in block.refinements if view.source == buffer.name)
        return self._tensor(ref).is_kept and not any(view.dir.writes for view in views)

    def _is_fresh(self, ref: Refinement) -> bool:
        """Whether the elements that the block touches hold nothing when it begins."""
        if self._begins_with_block(ref):
            return True
        buffer = self._buffer(ref)
        around = self._nest.prefix(len(buffer.path) - 1)
        return not self._is_given(ref) and all(
            touched_at(part, around).disjoint(touched_at(mine, around))
            for part in writes_before(self._nest, buffer)
            for mine in self._in_buffer(ref)
        )

    def _in_buffer(self, ref: Refinement) -> Iterator[Access]:
        """The accesses through a view, with the elements of its buffer."""
        origin = self._nest.views[ref.name].origin
        for access in self._of(ref.name):
            yield replace(access, index=tuple(map(add, access.index, origin)))

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
        if name not in self.fresh or len(reads) == len(self._of(name)):
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

    def _needed(self, ref: Refinement, number: int) -> Points:
        """The elements that statements after `number` read or merge into, and do not write before."""
        depth = len(self._nest.path)
        later = [access for access in self._of(ref.name) if access.path[depth] > number]
        needed = Points.empty(element_names(ref.rank))
        for access in later:
            if not access.is_write or access.agg is not Agg.ASSIGN:
                before = [a for a in later if a.is_write and a.path < access.path]
                needed |= access.footprint - elements(before, ref.rank)
        return needed.coalesced()

    def _buffer(self, ref: Refinement) -> Buffer:
        return self._nest.views[ref.name].buffer

    def _tensor(self, ref: Refinement) -> Refinement:
        buffer = self._buffer(ref)
        return block_at(self._nest.blocks[0], buffer.path).ref(buffer.name)

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
