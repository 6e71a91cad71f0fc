"""Which indices two blocks share when fused, in what tiles, and what is computed more than once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import ceil, lcm, prod

from stripe.ir import Block
from stripe.passes.fusion.match import Pair, Reach, Window, find_shift, find_window, fits_shift
from stripe.rewrite.refusal import Refusal
from stripe.rewrite.tile import Split


@dataclass(frozen=True, slots=True)
class Shared:
    """One index of the fused block, and how the indices of both blocks are split by it."""

    name: str
    count: int
    a_index: str
    a_split: Split
    b_index: str
    b_split: Split

    def is_even(self, a: Block, b: Block) -> bool:
        """Whether both ranges divide into whole tiles, the same number of them."""
        return all(
            split.extent * self.count == block.index(index).range and split.shift == 0
            for block, index, split in ((a, self.a_index, self.a_split), (b, self.b_index, self.b_split))
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The shared indices. With `local`, the buffers of that name become allocations of the fused block,
    because parts of them are computed more than once, `recompute` times the work of the first block in all.
    """

    shared: tuple[Shared, ...]
    local: frozenset[str] = frozenset()
    recompute: float = 1.0


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the user decides: points of an index per fused point, elements of a dimension that the second block
    reduces, and how much may be computed again."""

    tiles: Mapping[str, int] = field(default_factory=dict[str, int])
    reduction_tile: int = 0
    max_recompute: float = 1.0


def make_plan(
    a: Block, b: Block, pairs: tuple[Pair, ...], private: frozenset[str], options: PlanOptions
) -> Plan | Refusal:
    """How to fuse `a` with the later block `b`, or why not. `private` names the buffers outside that nobody else uses.

    Without recomputing, every conflicting access to one element by both blocks falls into the same fused point: for
    each shared index there is a dimension, for each pair of views, whose coordinate determines it on both sides alike.
    So whatever `b` reads is complete, because the points of `a` that write it stand before it in that fused point.
    With recomputing, a fused point computes all that it reads into buffers of its own.
    """
    planner = _Planner(a, b, pairs, options)
    exact = planner.exact()
    halos = planner.halos(exact)
    if halos and options.max_recompute > 1:
        found = _with_halos(planner, exact, halos, private)
        if isinstance(found, Plan) or not exact:
            return found
    if exact:
        return Plan(tuple(exact))
    return Refusal(planner.why_not(halos))


def shared_exactly(a: Block, b: Block, pairs: tuple[Pair, ...], options: PlanOptions) -> frozenset[str]:
    """The indices of both blocks that walk what they share in step."""
    exact = _Planner(a, b, pairs, options).exact()
    return frozenset(name for entry in exact for name in (entry.a_index, entry.b_index))


def make_local_plan(
    a: Block,
    b: Block,
    pairs: tuple[Pair, ...],
    private: frozenset[str],
    options: PlanOptions,
    inside: frozenset[str],
) -> Plan | Refusal:
    """As `make_plan`, with all that `a` writes in buffers of the fused block, and no halo along `inside`."""
    planner = _Planner(a, b, pairs, options)
    exact = planner.exact()
    needed = planner.needed_outside(private)
    if needed is not None:
        return Refusal(f"{needed} is needed outside too")
    halos = [halo for halo in planner.halos(exact) if not {halo.a.index, halo.b.index} & inside]
    if halos and options.max_recompute > 1:
        found = _with_halos(planner, exact, halos, private)
        if isinstance(found, Plan):
            return found
    return Plan(tuple(exact), planner.written)


@dataclass(frozen=True, slots=True)
class _Halo:
    """A pair of indices whose tiles overlap, with the dimensions of each pair of views that they step through."""

    a: Reach
    b: Reach
    views: tuple[tuple[Reach, Reach], ...]

    def window(self, tile: int) -> Window | None:
        """The union of what all views need."""
        windows = [find_window(a, b, tile) for a, b in self.views]
        known = [window for window in windows if window is not None]
        if len(known) < len(windows) or len({window.step for window in known}) != 1:
            return None
        return Window(known[0].step, min(w.low for w in known), max(w.high for w in known))


@dataclass(frozen=True, slots=True)
class _Piece:
    """One way to tile a halo: the tile of the second block's index, or None where it stays inside as a whole."""

    tile: int | None
    extent: int
    ratio: float
    window: Window | None


class _Planner:
    """The matches between two blocks."""

    def __init__(self, a: Block, b: Block, pairs: tuple[Pair, ...], options: PlanOptions) -> None:
        self.pairs = pairs
        self.options = options
        self.flows = [pair for pair in pairs if pair.flows]
        self.links = self.flows or list(pairs)
        self.written = frozenset(ref.source for ref in a.outputs)
        self.kept = frozenset[str]().union(*(affine.names() for ref in b.outputs for affine in ref.access))
        self.order = {index.name: place for place, index in enumerate(a.indices)}

    def exact(self) -> list[Shared]:
        """A shared index for each dimension that both blocks walk in step, in the order of the first block's
        indices."""
        found: dict[str, Shared] = {}
        taken: set[str] = set()
        for pair in self.links:
            for a, b in self._matches(pair):
                if a.index in found or b.index in taken:
                    continue
                shared = self._share(a, b)
                if shared is not None:
                    found[a.index] = shared
                    taken.add(b.index)
        return sorted(found.values(), key=lambda shared: self.order[shared.a_index])

    def _matches(self, pair: Pair) -> list[tuple[Reach, Reach]]:
        """Pairs of indices that step through one dimension: first those that the result of `b` keeps, then
        longer ones."""
        both = [
            (a, b) for a in pair.a_reaches for b in pair.b_reaches if (a.dim, a.symbol) == (b.dim, b.symbol)
        ]
        return sorted(
            both,
            key=lambda m: (
                m[0].dim,
                m[1].index not in self.kept,
                -m[1].range,
                m[1].index,
                m[0].high - m[0].low,
            ),
        )

    def _share(self, a: Reach, b: Reach) -> Shared | None:
        """The two indices as one, where every pair of views allows it."""
        tile = self.tile_of(a, b)
        if tile is None:
            return None
        shift = find_shift(a, b, tile)
        if shift is None:
            return None
        a_tile, b_tile = tile // a.step, tile // b.step
        for pair in self.pairs:
            sights = pair.seen_from(a.index, b.index)
            if not any(
                p.step * a_tile == q.step * b_tile and fits_shift(p, q, p.step * a_tile, shift)
                for p, q in sights
            ):
                return None
        first = min(0, shift)
        count = max(ceil(a.range / a_tile), ceil(b.range / b_tile) + shift) - first
        if count < 2:
            return None
        return Shared(
            a.index,
            count,
            a.index,
            Split(min(a_tile, a.range), count, a_tile, shift=a_tile * first),
            b.index,
            Split(min(b_tile, b.range), count, b_tile, shift=b_tile * (first - shift)),
        )

    def tile_of(self, a: Reach, b: Reach) -> int | None:
        """Elements of the dimension for one fused point; None where the dimension stays inside.

        What the second block reduces stays inside unless it is tiled already, or the user says so: shared, it would
        merge partial results into its output for each fused point.
        """
        unit = lcm(a.step, b.step)
        tiles = self.options.tiles
        wanted = tiles.get(a.index, 0) * a.step or tiles.get(b.index, 0) * b.step
        if not wanted and b.index not in self.kept:
            wanted = self.options.reduction_tile
            if not wanted and unit == 1:
                return None
        return unit * max(1, ceil(wanted / unit))

    def halos(self, exact: list[Shared]) -> list[_Halo]:
        """Indices of the second block's result that step through a dimension with overlaps."""
        found: list[_Halo] = []
        used_a = {shared.a_index for shared in exact}
        used_b = {shared.b_index for shared in exact}
        for pair in self.flows:
            for a, b in self._matches(pair):
                if a.index in used_a or b.index in used_b or b.index not in self.kept:
                    continue
                views = [next(other.seen_from(a.index, b.index), None) for other in self.flows]
                known = tuple(view for view in views if view is not None)
                if len(known) == len(views):
                    found.append(_Halo(a, b, known))
                    used_a.add(a.index)
                    used_b.add(b.index)
        return found

    def needed_outside(self, private: frozenset[str]) -> str | None:
        """A buffer that the first block writes and that cannot be the fused block's own."""
        tied = [pair.a.source for pair in self.pairs if not pair.flows or pair.b.dir.writes]
        return next(iter([*sorted(self.written - private), *tied]), None)

    def why_not(self, halos: list[_Halo]) -> str:
        """The reason why no index is shared."""
        names = ", ".join(sorted({pair.a.source for pair in self.links}))
        if halos:
            parts = [f"{_overlap(halo)} of dimension {halo.b.dim} of {names}" for halo in halos]
            return (
                f"{'; '.join(parts)}: fusing takes recomputing, and max_recompute is "
                f"{self.options.max_recompute:g}"
            )
        reduced = sorted(
            {b.index for pair in self.links for a, b in self._matches(pair) if self.tile_of(a, b) is None}
        )
        if reduced:
            return f"{', '.join(reduced)}, which walks {names}, is reduced: only reduction_tile shares it"
        return f"no index walks {names} in step in both blocks"


def _overlap(halo: _Halo) -> str:
    for reach, what in ((halo.b, "reads"), (halo.a, "writes")):
        if reach.overlaps:
            return f"{reach.index} {what} {reach.high - reach.low + 1} elements at steps of {reach.step}"
    return f"{halo.b.index} is out of step elsewhere, along the steps of {halo.b.step}"


def _with_halos(
    planner: _Planner, exact: list[Shared], halos: list[_Halo], private: frozenset[str]
) -> Plan | Refusal:
    """The plan with the smallest local buffers whose recomputing keeps the limit."""
    needed = planner.needed_outside(private)
    if needed is not None:
        return Refusal(f"{needed} would be computed again for each point, but it is needed outside too")
    limit = planner.options.max_recompute + 1e-9
    best: tuple[int, float, tuple[_Piece, ...]] | None = None
    least = float("inf")
    for pieces in product(*(list(_pieces(halo, planner.options)) for halo in halos)):
        if all(piece.tile is None for piece in pieces):
            continue
        ratio = prod(piece.ratio for piece in pieces)
        least = min(least, ratio)
        size = prod(piece.extent for piece in pieces)
        if ratio <= limit and (best is None or (size, ratio) < best[:2]):
            best = (size, ratio, pieces)
    if best is None:
        return Refusal(
            f"recomputing takes at least {least:.4g} times the work, max_recompute is "
            f"{planner.options.max_recompute:g}"
        )
    made = [_halo_shared(halo, piece) for halo, piece in zip(halos, best[2], strict=True)]
    shared = [*exact, *(entry for entry in made if entry is not None)]
    shared.sort(key=lambda entry: planner.order[entry.a_index])
    return Plan(tuple(shared), planner.written, best[1])


def _pieces(halo: _Halo, options: PlanOptions) -> Iterator[_Piece]:
    """The ways to tile one halo: whole, and one tile for each number of tiles."""
    size, wanted = halo.b.range, options.tiles.get(halo.a.index) or options.tiles.get(halo.b.index)
    if not wanted:
        yield _Piece(None, halo.a.range, 1.0, None)
    tiles = [min(wanted, size)] if wanted else sorted({ceil(size / count) for count in range(2, size + 1)})
    for tile in tiles:
        window = halo.window(tile)
        count = ceil(size / tile)
        if window is not None and count > 1:
            ratio = window.work(count, halo.a.range) / halo.a.range
            yield _Piece(tile, window.extent, ratio, window)


def _halo_shared(halo: _Halo, piece: _Piece) -> Shared | None:
    if piece.tile is None or piece.window is None:
        return None
    count = ceil(halo.b.range / piece.tile)
    window = piece.window
    return Shared(
        halo.a.index,
        count,
        halo.a.index,
        Split(window.extent, count, window.step, shift=window.low),
        halo.b.index,
        Split(piece.tile, count, piece.tile),
    )
