"""The tiling primitive: splits a block into an outer block over tiles and an inner block within a tile.

    block [x:100] ( in I[x] … )          block [x:13] ( in I[8*x] (8:1) … ) {
      { … }                        =>      block [x:8, x.o = x] ( 99 - x - 8*x.o >= 0, in I[x] (1:1) … ) { … } }

Establishes: the points of the nest are those of the block under x = tile*x_outer + x_inner (interleaved:
x = x_outer + count*x_inner), each once. `split_block` is the general form, which fusion uses: shifted, or overlapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from stripe.ir import (
    Affine,
    Atom,
    Block,
    Constraint,
    Dim,
    FloorDiv,
    Index,
    Interval,
    LoadIndex,
    Location,
    Mod,
    Refinement,
    Tags,
    fresh,
    substitute,
)
from stripe.ir.frozen import replace
from stripe.poly.propagate import propagated


@dataclass(frozen=True, slots=True)
class Split:
    """The split of an index: index = outer_step * outer + inner_step * inner + shift, outer in [0, count), inner in
    [0, extent), and only where it lies in its range.

    With outer_step == extent and inner_step == 1 (or outer_step == 1 and inner_step == count) each value has one pair
    of halves; an extent over outer_step makes the pieces overlap.
    """

    extent: int
    count: int
    outer_step: int
    inner_step: int = 1
    shift: int = 0

    @staticmethod
    def whole(size: int) -> Split:
        """All of an index of range `size` inside."""
        return Split(size, 1, size)

    @staticmethod
    def tiles(size: int, tile: int, *, interleave: bool = False) -> Split:
        """An index of range `size` in tiles of `tile`; interleaved, a tile takes every count-th value."""
        count = -(-size // tile)
        return Split(tile, count, 1, count) if interleave else Split(tile, count, tile)

    def combined(self, outer: Affine, inner: Affine) -> Affine:
        """The index by its two halves; a half of range 1 is 0 and does not occur."""
        value = Affine(self.shift)
        if self.count > 1:
            value = value + self.outer_step * outer
        if self.extent > 1:
            value = value + self.inner_step * inner
        return value

    def bounds(self, combined: Affine, size: int) -> Iterator[Constraint]:
        """The constraints that keep the index in [0, size), where its halves alone do not."""
        last = self.shift + self.outer_step * (self.count - 1) + self.inner_step * (self.extent - 1)
        if self.shift < 0:
            yield Constraint(combined)
        if last >= size:
            yield Constraint(size - 1 - combined)


def even_tiles(size: int, most: int) -> Iterator[int]:
    """The smallest tile for each number of tiles of a range, up to `most` of them: each once, the whole range first."""
    count = 1
    while count <= most:
        tile = -(-size // count)
        yield tile
        if tile == 1:
            return
        count = -(-size // (tile - 1))


def tile_block(
    block: Block, sizes: Mapping[str, int], *, interleave: bool = False, inner_set: Iterable[str] = ()
) -> Block:
    """`block` tiled by `sizes` (elements per tile; an index that is not named gets its whole range inside).

    The outer block keeps name, tags, comments and location; it holds one inner block with the tags `inner_set`. Index
    names stay on both sides; an outer index that the inner block needs is passed in as `NAME.o`. Allocations move
    inside. A tile of the whole range leaves an outer range of 1, a tile of 1 an inner range of 1. Tiles before the
    first and behind the last value that the constraints of the block alone allow an index are left out.

    Raises:
        KeyError: a name in `sizes` is no iterated index.
        ValueError: a size below 1 or over the range.
    """
    ranges = {index.name: index.range for index in block.iterated}
    for name, size in sizes.items():
        if not 1 <= size <= ranges[name]:
            raise ValueError(f"tile {size} of index {name}, which has range {ranges[name]}")
    splits = {name: Split.tiles(ranges[name], size, interleave=interleave) for name, size in sizes.items()}
    first: tuple[Constraint, ...] = ()
    if block.constraints and not interleave:
        free = [c.affine for c in block.constraints if c.affine.names() <= ranges.keys()]
        box = propagated({name: (0, size - 1) for name, size in ranges.items()}, free)
        used = [(name, size, *box.ranges[name]) for name, size in sizes.items()] if box is not None else []
        for name, size, start, end in used:
            low, high = start // size, end // size
            splits[name] = replace(splits[name], count=high + 1)
            first += (Constraint(Affine.var(name) - low),) if low > 0 else ()
    outer = split_block(block, splits)
    words = tuple(inner_set)
    (inner,) = outer.blocks
    statements = (replace(inner, tags=Tags.of(*words)),) if words else outer.statements
    return replace(outer, constraints=first, statements=statements) if first or words else outer


def split_block(block: Block, chosen: Mapping[str, Split]) -> Block:
    """`block` as a nest of two: each index split as `chosen` says, or inside as a whole. Otherwise as `tile_block`.

    Establishes: the nest has the points of the block under the equations of `chosen`; where pieces overlap, a point
    occurs once for each piece, which the caller has to make harmless.
    """
    return _split_block(
        block, tuple([chosen.get(index.name, Split.whole(index.range)) for index in block.iterated])
    )


@lru_cache(maxsize=2048)
def _split_block(block: Block, chosen: tuple[Split, ...]) -> Block:
    """`split_block`. Answers are kept: a tile that was priced comes back in the program, and under other speeds of
    units and buses."""
    splits = {index.name: split for index, split in zip(block.iterated, chosen, strict=True)}
    taken = {index.name for index in block.indices}
    passed_names: dict[str, str] = {}
    for name in [*splits, *(index.name for index in block.passed)]:
        passed_names[name] = fresh(f"{name}.o", taken)
        taken.add(passed_names[name])
    outer_in_inner = {name: Affine.var(passed_names[name]) for name in passed_names}
    combined = {
        name: split.combined(outer_in_inner[name], Affine.var(name)) for name, split in splits.items()
    }
    mapping = {**combined, **{index.name: outer_in_inner[index.name] for index in block.passed}}
    inner = substitute(block, mapping)
    located_inside = any(splits[name].extent > 1 for name in block.location.names() & splits.keys())
    bounds = (
        bound
        for index in block.iterated
        for bound in splits[index.name].bounds(combined[index.name], index.range)
    )
    inner = replace(
        inner,
        indices=tuple(replace(index, range=splits[index.name].extent) for index in block.iterated),
        constraints=(*inner.constraints, *bounds),
        location=inner.location if located_inside else Location(),
        comments=(),
        deps=(),
        tags=Tags(),
    )
    back = {passed: name for name, passed in passed_names.items()}
    outer_refs, inner_refs = _split_refinements(inner, back)
    inner = replace(inner, refinements=inner_refs)
    used = used_indices(inner)
    passed = tuple(Index(name, 1, Affine.var(outer)) for name, outer in back.items() if name in used)
    inner = replace(inner, indices=(*inner.indices, *passed))
    outer_indices = tuple(
        index if index.is_passed else replace(index, range=splits[index.name].count)
        for index in block.indices
    )
    return replace(
        block,
        indices=outer_indices,
        constraints=(),
        refinements=outer_refs,
        statements=(inner,),
        location=Location() if located_inside else block.location,
    )


def _split_refinements(
    inner: Block, back: Mapping[str, str]
) -> tuple[tuple[Refinement, ...], tuple[Refinement, ...]]:
    """Splits each view into a part for the outer and a part for the inner block."""
    ranges: dict[str, Interval] = {index.name: (0, index.range - 1) for index in inner.indices}
    sides = _NestHalves(ranges, {passed: Affine.var(name) for passed, name in back.items()}, back)
    outer_refs: list[Refinement] = []
    inner_refs: list[Refinement] = []
    for ref in inner.refinements:
        if ref.is_alloc:
            inner_refs.append(ref)
            continue
        parts = [sides.split(access) for access in ref.access]
        origin = tuple([part.outer + part.low for part in parts])
        extents = [part.high - part.low for part in parts]
        dims = tuple([Dim(e + dim.size, dim.stride) for e, dim in zip(extents, ref.dims, strict=True)])
        is_inside = bool(ref.location.names() & ranges.keys())
        location = Location() if is_inside else ref.location.subs(sides.to_outer)
        outer_refs.append(replace(ref, access=origin, dims=dims, location=location))
        rest = tuple([part.rest - part.low for part in parts])
        inner_refs.append(replace(ref, source=ref.name, access=rest))
    return tuple(outer_refs), tuple(inner_refs)


@dataclass(frozen=True, slots=True)
class _SplitAffine:
    """An affine as `outer`, over the outer block's indices, plus `rest`, which lies in [low, high]."""

    outer: Affine
    rest: Affine
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class _NestHalves:
    """The two halves of a nest: the intervals of the indices inside, and the outer index for each index that is passed
    in (`back`, and as affines `to_outer`)."""

    ranges: Mapping[str, Interval]
    to_outer: Mapping[str, Affine]
    back: Mapping[str, str]

    def split(self, affine: Affine) -> _SplitAffine:
        """Splits exactly; where a floor mixes both sides its outer part is the floor at the lowest inner value."""
        if not affine.terms:
            return _SplitAffine(affine, Affine(), 0, 0)
        outward: list[tuple[Atom, int]] = []
        inward: list[tuple[Atom, int]] = []
        mixed: list[tuple[FloorDiv | Mod, int]] = []
        for atom, coefficient in affine.terms:
            if isinstance(atom, str):
                (outward if atom in self.back else inward).append((atom, coefficient))
            elif (names := atom.arg.names()) <= self.back.keys():
                outward.append((atom, coefficient))
            elif names <= self.ranges.keys():
                inward.append((atom, coefficient))
            else:
                mixed.append((atom, coefficient))
        outer = Affine(affine.offset, tuple(outward)).subs(self.to_outer)
        rest = Affine(0, tuple(inward))
        low, high = rest.bounds(self.ranges)
        for atom, coefficient in mixed:
            part = self._split_mixed(atom)
            outer = outer + part.outer * coefficient
            rest = rest + part.rest * coefficient
            ends = sorted((part.low * coefficient, part.high * coefficient))
            low, high = low + ends[0], high + ends[1]
        return _SplitAffine(outer, rest, low, high)

    def _split_mixed(self, atom: FloorDiv | Mod) -> _SplitAffine:
        term = Affine(0, ((atom, 1),))
        if isinstance(atom, Mod):
            return _SplitAffine(Affine(), term, 0, atom.modulus - 1)
        # floor((o + r)/n) - floor((o + low)/n) lies in [0, ceil((high - low)/n)]
        arg = self.split(atom.arg)
        outer = (arg.outer + arg.low).floordiv(atom.divisor)
        inward = {name: Affine.var(passed) for passed, name in self.back.items()}
        return _SplitAffine(outer, term - outer.subs(inward), 0, -(-(arg.high - arg.low) // atom.divisor))


def used_indices(block: Block) -> frozenset[str]:
    """The indices of `block` that its constraints, accesses, locations, load_index or the blocks inside use."""
    names: set[str] = set(block.location.names())
    for constraint in block.constraints:
        names |= constraint.affine.names()
    for ref in block.refinements:
        names |= ref.location.names()
        for affine in ref.access:
            names |= affine.names()
    for statement in block.statements:
        if isinstance(statement, LoadIndex):
            names |= statement.affine.names()
        elif isinstance(statement, Block):
            for index in statement.indices:
                if index.affine is not None:
                    names |= index.affine.names()
    return frozenset(names)
