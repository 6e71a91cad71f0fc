"""Legality of fusing two blocks: the indices that they share, their tiles, and elements computed more than once.

Without recomputing, every conflicting access to one element by both blocks falls into the same fused point: for each
shared index each pair of views has a dimension whose coordinate determines it on both sides by the same rule. So the
second block reads complete elements only: the points of the first that write them run before it in that fused point.
With recomputing, a fused point computes all elements that it reads into buffers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, lcm, prod

from stripe.ir import Block, indices_of
from stripe.passes.fusion.reach import NeededRange, Reach, ViewPair, needed_range, shifts
from stripe.rewrite.refusal import Refusal
from stripe.rewrite.tile import Split, even_tiles

_FULL_SEARCH = 1 << 10
"""Ranges up to its square are searched for tiles completely."""


@dataclass(frozen=True, slots=True)
class SharedIndex:
    """An index of the fused block, and the splits of an index of each block by it."""

    name: str
    count: int
    a_index: str
    a_split: Split
    b_index: str
    b_split: Split


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """The shared indices. With `local`, the buffers of that name become allocations of the fused block,
    because parts of them are computed more than once, `recompute` times the work of the first block in all.
    """

    shared: tuple[SharedIndex, ...]
    local: frozenset[str] = frozenset()
    recompute: float = 1.0


@dataclass(frozen=True, slots=True)
class _Halo:
    """A pair of indices whose tiles overlap, with the dimensions of each pair of views that they step through."""

    a: Reach
    b: Reach
    views: tuple[tuple[Reach, Reach], ...]

    def needed(self, tile: int) -> NeededRange | None:
        """The union of the needs of all views."""
        ranges = [needed_range(a, b, tile) for a, b in self.views]
        known = [needed for needed in ranges if needed is not None]
        if len(known) < len(ranges) or len({needed.step for needed in known}) != 1:
            return None
        return NeededRange(known[0].step, min(n.low for n in known), max(n.high for n in known))

    def tilings(self, wanted: int | None) -> Iterator[_HaloTiling]:
        """The index inside as a whole, and a tile for each number of tiles; only `wanted` where it is given."""
        size = self.b.range
        if wanted is None or wanted >= size:
            yield _HaloTiling(self.a.range, 1.0, None)
        for tile in _tile_sizes(size) if wanted is None else [wanted]:
            needed = self.needed(tile)
            count = ceil(size / tile)
            if needed is None or count < 2:
                continue
            a_split = Split(needed.extent, count, needed.step, shift=needed.low)
            b_split = Split(tile, count, tile)
            shared = SharedIndex(self.a.index, count, self.a.index, a_split, self.b.index, b_split)
            yield _HaloTiling(needed.extent, needed.work(count, self.a.range) / self.a.range, shared)

    def __str__(self) -> str:
        for reach, verb in ((self.b, "reads"), (self.a, "writes")):
            if reach.overlaps:
                return f"{reach.index} {verb} {reach.high - reach.low + 1} elements at steps of {reach.step}"
        return f"{self.b.index} is out of step elsewhere, along the steps of {self.b.step}"


@dataclass(frozen=True, slots=True)
class _HaloTiling:
    """A tiling of a halo: elements in a local buffer, work in multiples of the first block's own, and the shared index;
    None where the index stays inside as a whole."""

    extent: int
    work: float
    shared: SharedIndex | None


def _tile_sizes(size: int) -> list[int]:
    """The tiles of a range to try, rising: the smallest for each number of tiles; of a large range only for few tiles,
    for tiles of few values, and by powers of two between."""
    if size <= _FULL_SEARCH**2:
        return sorted(even_tiles(size, size))
    powers = [1 << bit for bit in range(size.bit_length())]
    between = {-(-size // -(-size // tile)) for tile in (*range(1, _FULL_SEARCH + 1), *powers)}
    return sorted({*even_tiles(size, _FULL_SEARCH), *between})


def _smallest(choices: Sequence[Sequence[_HaloTiling]], limit: float) -> tuple[_HaloTiling, ...] | None:
    """A tiling of each halo, not all of them whole: among tilings whose work keeps the limit the smallest local
    buffers, then the least work, then the first; None where no work keeps it."""
    if not all(choices):
        return None
    # Lower bounds of the elements and the work of all halos behind each: they cut the search.
    extents, works = [1], [1.0]
    for tilings in reversed(choices):
        extents.insert(0, extents[0] * min(tiling.extent for tiling in tilings))
        works.insert(0, works[0] * min(tiling.work for tiling in tilings))
    best: tuple[float, float] = inf, inf
    found: tuple[_HaloTiling, ...] | None = None

    def choose(chosen: tuple[_HaloTiling, ...], extent: int, work: float) -> None:
        nonlocal best, found
        depth = len(chosen)
        if depth == len(choices):
            if work <= limit and (extent, work) < best and any(tiling.shared for tiling in chosen):
                best, found = (extent, work), chosen
            return
        for tiling in choices[depth]:
            if extent * tiling.extent * extents[depth + 1] > best[0]:
                if tiling.shared is None:
                    continue
                break  # tiles rise, and so do their buffers
            if work * tiling.work * works[depth + 1] <= limit * (1 + 1e-9):
                choose((*chosen, tiling), extent * tiling.extent, work * tiling.work)

    choose((), 1, 1.0)
    return found


class Legality:
    """The plans of fusing the block `a` with the later block `b`; `pairs` of their views order them.

    `private` gives the buffers outside that no other statement uses, `tiles` the values of an index for one fused
    point, and `max_recompute` the most work of `a`, in multiples of its own.
    """

    def __init__(
        self,
        a: Block,
        b: Block,
        pairs: tuple[ViewPair, ...],
        private: Callable[[], frozenset[str]] = frozenset,
        tiles: Mapping[str, int] | None = None,
        max_recompute: float = 1.0,
    ) -> None:
        self.pairs = pairs
        self._a = a
        self._flows = [pair for pair in pairs if pair.flows]
        self._links = self._flows or list(pairs)
        self._private = private
        self._tiles = tiles or {}
        self._max_recompute = max_recompute
        self._kept = indices_of(affine for ref in b.outputs for affine in ref.access)
        self._order = {index.name: place for place, index in enumerate(a.indices)}

    @cached_property
    def _written(self) -> frozenset[str]:
        return frozenset(ref.source for ref in self._a.outputs)

    def plan(self) -> FusionPlan | Refusal:
        """The shared indices, with recomputing where that is allowed and anything overlaps."""
        halos = self._halos(frozenset())
        if halos and self._max_recompute > 1:
            found = self._recomputed(halos)
            if isinstance(found, FusionPlan) or not self._exact:
                return found
        if self._exact:
            return FusionPlan(self._exact)
        return Refusal(self._why_not(halos))

    def local_plan(self, inside: frozenset[str]) -> FusionPlan | Refusal:
        """The shared indices with all outputs of `a` in buffers of the fused block, and no halo along `inside`."""
        needed = self._needed_outside()
        if needed is not None:
            return Refusal(f"{needed} is needed outside too")
        halos = self._halos(inside)
        found = self._recomputed(halos) if halos and self._max_recompute > 1 else None
        return found if isinstance(found, FusionPlan) else FusionPlan(self._exact, self._written)

    @property
    def exact_indices(self) -> frozenset[str]:
        """The indices of both blocks that walk shared buffers in step."""
        return frozenset(name for entry in self._exact for name in (entry.a_index, entry.b_index))

    @cached_property
    def _exact(self) -> tuple[SharedIndex, ...]:
        """A shared index for each dimension that both blocks walk in step, in the order of the first block's
        indices."""
        found: dict[str, SharedIndex] = {}
        taken: set[str] = set()
        for a, b in (match for pair in self._links for match in self._matches(pair)):
            is_free = a.index not in found and b.index not in taken
            if is_free and (shared := self._shared(a, b)) is not None:
                found[a.index] = shared
                taken.add(b.index)
        return tuple(sorted(found.values(), key=lambda shared: self._order[shared.a_index]))

    def _matches(self, pair: ViewPair) -> list[tuple[Reach, Reach]]:
        """The indices that step through a common dimension: first indices that the result of `b` keeps, then the
        longer."""

        def preference(match: tuple[Reach, Reach]) -> tuple[int, bool, int, str, int]:
            a, b = match
            return a.dim, b.index not in self._kept, -b.range, b.index, a.high - a.low

        return sorted(pair.matches(), key=preference)

    def _shared(self, a: Reach, b: Reach) -> SharedIndex | None:
        """The two indices as a shared index, where every pair of views allows it."""
        tile = self._tile(a, b)
        possible = shifts(a, b, tile) if tile is not None else None
        if tile is None or possible is None:
            return None
        shift = min(max(0, possible[0]), possible[1])  # the nearest to 0
        a_tile, b_tile = tile // a.step, tile // b.step
        for pair in self.pairs:
            agreeing = (
                shifts(p, q, p.step * a_tile)
                for p, q in pair.seen_from(a.index, b.index)
                if p.step * a_tile == q.step * b_tile
            )
            if not any(also is not None and also[0] <= shift <= also[1] for also in agreeing):
                return None
        first = min(0, shift)
        count = max(ceil(a.range / a_tile), ceil(b.range / b_tile) + shift) - first
        if count < 2:
            return None
        a_split = Split(min(a_tile, a.range), count, a_tile, shift=a_tile * first)
        b_split = Split(min(b_tile, b.range), count, b_tile, shift=b_tile * (first - shift))
        return SharedIndex(a.index, count, a.index, a_split, b.index, b_split)

    def _tile(self, a: Reach, b: Reach) -> int | None:
        """Elements of the dimension for one fused point; None where the dimension stays inside.

        A dimension that the second block reduces stays inside unless it is tiled already, or the user says so: shared,
        it would merge partial results into its output for each fused point.
        """
        unit = lcm(a.step, b.step)
        wanted = self._tiles.get(a.index, 0) * a.step or self._tiles.get(b.index, 0) * b.step
        if not wanted and b.index not in self._kept and unit == 1:
            return None
        return unit * max(1, ceil(wanted / unit))

    def _halos(self, inside: frozenset[str]) -> list[_Halo]:
        """Indices of the second block's result that step through a dimension with overlaps and are not in `inside`."""
        found: list[_Halo] = []
        used = {key for s in self._exact for key in (("a", s.a_index), ("b", s.b_index))}
        for a, b in (match for pair in self._flows for match in self._matches(pair)):
            if {("a", a.index), ("b", b.index)} & used or b.index not in self._kept:
                continue
            views = [next(other.seen_from(a.index, b.index), None) for other in self._flows]
            known = tuple(view for view in views if view is not None)
            if len(known) == len(views):
                found.append(_Halo(a, b, known))
                used |= {("a", a.index), ("b", b.index)}
        return [halo for halo in found if not {halo.a.index, halo.b.index} & inside]

    def _needed_outside(self) -> str | None:
        """A buffer that the first block writes and that cannot be the fused block's own."""
        tied = [pair.a.source for pair in self.pairs if not pair.flows or pair.b.dir.writes]
        return next(iter([*sorted(self._written - self._private()), *tied]), None)

    def _why_not(self, halos: list[_Halo]) -> str:
        """The reason why no index is shared."""
        names = ", ".join(sorted({pair.a.source for pair in self._links}))
        if halos:
            parts = "; ".join(f"{halo} of dimension {halo.b.dim} of {names}" for halo in halos)
            return f"{parts}: fusing takes recomputing, and max_recompute is {self._max_recompute:g}"
        matches = [match for pair in self._links for match in self._matches(pair)]
        reduced = sorted({b.index for a, b in matches if self._tile(a, b) is None})
        if reduced:
            return f"{', '.join(reduced)}, which walks {names}, is reduced: only an entry of tiles shares it"
        return f"no index walks {names} in step in both blocks"

    def _recomputed(self, halos: list[_Halo]) -> FusionPlan | Refusal:
        """The plan with the smallest local buffers whose recomputing keeps the limit."""
        needed = self._needed_outside()
        if needed is not None:
            return Refusal(f"{needed} would be computed again for each point, but it is needed outside too")
        wanted = [self._tiles.get(halo.a.index) or self._tiles.get(halo.b.index) for halo in halos]
        choices = [list(halo.tilings(tile)) for halo, tile in zip(halos, wanted, strict=True)]
        best = _smallest(choices, self._max_recompute + 1e-9)
        if best is not None:
            made = [tiling.shared for tiling in best if tiling.shared is not None]
            shared = sorted((*self._exact, *made), key=lambda entry: self._order[entry.a_index])
            return FusionPlan(tuple(shared), self._written, prod(tiling.work for tiling in best))
        works = [[tiling.work for tiling in tilings if tiling.shared is not None] for tilings in choices]
        if not any(works) or not all(choices):
            names = ", ".join(halo.b.index for halo in halos)
            return Refusal(f"no tile of {names} is smaller than the range and moves by whole steps")
        # At least one index is tiled.
        bounds = [min(tiling.work for tiling in tilings) for tilings in choices]
        least = min(
            min(tiled) * prod(bounds[:number]) * prod(bounds[number + 1 :])
            for number, tiled in enumerate(works)
            if tiled
        )
        return Refusal(
            f"recomputing takes at least {least:.4g} times the work, max_recompute is {self._max_recompute:g}"
        )
