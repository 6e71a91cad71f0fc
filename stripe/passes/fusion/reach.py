"""Elements that views of two blocks touch along a dimension, as affine images of an index each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stripe.ir import Affine, Block, Interval, Refinement, indices_of


@dataclass(frozen=True, slots=True)
class Reach:
    """The elements that a view touches along one dimension of its source, seen from one index of its block.

    At `index` = v it touches some of the elements step*v + symbol + [low, high], for any values of the other
    indices; `symbol` is over the indices of the block outside and has no constant.
    """

    dim: int
    index: str
    range: int
    step: int
    low: int
    high: int
    symbol: Affine

    @property
    def phases(self) -> Interval:
        """The origins p (first and last) for which tiles [T*o + p, T*o + p + T) of the dimension hold the elements of
        whole groups of T/step values of the index. Empty when neighbouring values touch the same elements.

        Group o touches T*o + [low, T - step + high], which has to lie in T*o + [p, p + T - 1].
        """
        return self.high - self.step + 1, self.low

    @property
    def overlaps(self) -> bool:
        return self.phases[0] > self.phases[1]


def reaches(block: Block, ref: Refinement, outside: Mapping[str, Interval]) -> tuple[Reach, ...]:
    """All ways to see the dimensions of the view `ref` of `block` from an index that steps forward through them.

    `outside` has the intervals of the indices of the block outside.
    """
    intervals = block.intervals(dict(outside))
    passed = {index.name: index.affine for index in block.indices if index.affine is not None}
    found: list[Reach] = []
    for dim, access in enumerate(ref.access):
        if not access.terms:
            continue
        # The terms over passed-in indices, in the names of the outside, and the other terms.
        symbol, own = Affine(), access
        if passed:
            is_outside = [
                atom in passed if isinstance(atom, str) else atom.arg.names() <= passed.keys()
                for atom, _ in access.terms
            ]
            outer, inner = (
                tuple([term for term, there in zip(access.terms, is_outside, strict=True) if there is side])
                for side in (True, False)
            )
            symbol, own = Affine(0, outer).subs(passed), Affine(access.offset, inner)
        entangled = {n for atom, _ in own.terms if not isinstance(atom, str) for n in atom.arg.names()}
        for atom, step in own.terms:
            if not isinstance(atom, str) or atom in entangled or step < 1:
                continue
            size = block.index(atom).range
            if size > 1:
                rest = tuple([term for term in own.terms if term[0] != atom])
                low, high = Affine(own.offset + symbol.offset, rest).bounds(intervals)
                last = high + ref.dims[dim].size - 1
                found.append(Reach(dim, atom, size, step, low, last, symbol - symbol.offset))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ViewPair:
    """Views of the first and of the second block with the same source, of which either writes."""

    a: Refinement
    b: Refinement
    a_reaches: tuple[Reach, ...]
    b_reaches: tuple[Reach, ...]

    @property
    def flows(self) -> bool:
        """Whether the second block may read elements that the first has written."""
        return self.a.dir.writes and self.b.dir.reads

    def matches(self) -> Iterator[tuple[Reach, Reach]]:
        """The indices of both blocks that step through a common dimension, the same symbol aside."""
        for a in self.a_reaches:
            for b in self.b_reaches:
                if (a.dim, a.symbol) == (b.dim, b.symbol):
                    yield a, b

    def seen_from(self, a_index: str, b_index: str) -> Iterator[tuple[Reach, Reach]]:
        """The dimensions that these two indices both step through."""
        return ((a, b) for a, b in self.matches() if (a.index, b.index) == (a_index, b_index))


def find_pairs(
    a: Block, b: Block, outside: Mapping[str, Interval], views: Sequence[Refinement] | None = None
) -> tuple[ViewPair, ...]:
    """All pairs of views that order the two blocks; `views` are the views of `a` whose sources `b` has too."""
    sources = {ref.source for ref in b.refinements if ref.source}
    if views is None:
        views = [ref for ref in a.refinements if ref.source in sources]
    firsts = [(ref, reaches(a, ref, outside)) for ref in views]
    sources = {ref.source for ref in views}
    seconds = [(ref, reaches(b, ref, outside)) for ref in b.refinements if ref.source in sources]
    return tuple(
        ViewPair(first, second, first_reaches, second_reaches)
        for first, first_reaches in firsts
        for second, second_reaches in seconds
        if first.source == second.source and (first.dir.writes or second.dir.writes)
    )


def shifts(a: Reach, b: Reach, tile: int) -> Interval | None:
    """The numbers d of tiles, least and most, such that tile o of the first and tile o - d of the second block touch
    the same tile of `tile` elements and nothing of others; None when there is no such number.
    """
    if tile % a.step or tile % b.step or a.overlaps or b.overlaps:
        return None
    (a_first, a_last), (b_first, b_last) = a.phases, b.phases
    least, most = -((a_last - b_first) // tile), (b_last - a_first) // tile
    return (least, most) if least <= most else None


@dataclass(frozen=True, slots=True)
class NeededRange:
    """The values of an index of the first block that tile o of the second needs: step*o + [low, high]."""

    step: int
    low: int
    high: int

    @property
    def extent(self) -> int:
        return self.high - self.low + 1

    def work(self, count: int, size: int) -> int:
        """Values of [0, size) that `count` tiles compute, a value counted once for each tile."""

        def below(offset: int) -> int:
            """The sum over all tiles of the values of [0, size) that are less than step*o + offset."""
            step, start = abs(self.step), offset + min(0, self.step * (count - 1))
            if step == 0:
                return count * min(max(start, 0), size)
            first = min(count, max(0, -(start // step)))  # tiles before have none, tiles from `full` on all
            full = min(count, max(first, -((start - size) // step)))
            rising = full - first
            return rising * start + step * (first + full - 1) * rising // 2 + (count - full) * size

        return below(self.high + 1) - below(self.low)


def needed_range(a: Reach, b: Reach, tile: int) -> NeededRange | None:
    """The values i of the first index whose elements a.step*i + [a.low, a.high] meet b.step*tile*o + [b.low,
    b.step*(tile - 1) + b.high], the elements of tile o of the second; None when they do not move by whole steps."""
    moved = b.step * tile
    if moved % a.step:
        return None
    low = -((a.high - b.low) // a.step)
    high = (moved - b.step + b.high - a.low) // a.step
    return NeededRange(moved // a.step, low, high)


def output_indices(block: Block) -> frozenset[str]:
    """The indices that move an output."""
    return indices_of(affine for ref in block.outputs for affine in ref.access)


def unmoved(block: Block, index: str) -> list[Refinement]:
    """The views that the index does not move, but for single elements."""
    moving = {ref: indices_of(ref.access) for ref in block.refinements if ref.source}
    return [ref for ref, names in moving.items() if index not in names and (names or ref.elements > 1)]
