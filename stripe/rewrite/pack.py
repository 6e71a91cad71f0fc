"""Packed layouts: a buffer whose dimensions are permuted, cut into digits or folded, and the new views of it.

An index map gives the place of an element by digits of its coordinates: floor(a/place) mod count. Origins of nested
views add up and floors do not, so that an outer view moves by whole blocks only, and the rest of its origin is handed
inwards as *pending*, down to the block that loads or stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import TypeAlias

from stripe.ir import (
    Affine,
    Agg,
    Block,
    ConfigError,
    Dim,
    DType,
    Interval,
    Load,
    Path,
    Refinement,
    Special,
    Store,
    compact_strides,
    fresh,
    indices_of,
    own_aggregation,
    retarget,
    with_statements,
)
from stripe.ir.check.magnitude import LARGEST
from stripe.ir.digits import Digit, digits_of_fold, digits_of_map
from stripe.ir.frozen import replace
from stripe.ir.index_map import IndexMap
from stripe.poly.index_maps import collision, physical_sizes
from stripe.rewrite.pass_in import passed_into
from stripe.rewrite.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Packing:
    """The dimensions of a buffer by digits of the logical ones: a dimension for each digit, in their order.

    `terms` gives for each digit its physical coordinate, and the elements along it that a step of the digit moves. The
    highest digit of a logical dimension counts its blocks; without it the dimension is folded.
    """

    digits: tuple[Digit, ...]
    terms: tuple[tuple[int, int], ...]

    @staticmethod
    def of(index_map: IndexMap, sizes: Sequence[int]) -> Packing | Refusal:
        """The layout that an injective map of a tensor of `sizes` describes."""
        found = digits_of_map(index_map, sizes)
        if found is None:
            return Refusal(f"the results of {index_map} are no sums of digits of its indices")
        digits: list[Digit] = []
        terms: list[tuple[int, int]] = []
        for number, result in enumerate(found):
            for digit, factor in sorted(result, key=lambda term: -term[1]):
                digits.append(digit)
                terms.append((number, factor))
        return Packing(tuple(digits), tuple(terms))

    @staticmethod
    def fold(index_map: IndexMap) -> Packing:
        """The layout of a map that takes indices modulo a length, which reuses its elements: right only where no two
        logical elements of a place are alive at one time."""
        digits = digits_of_fold(index_map)
        return Packing(digits, tuple((digit.dim, 1) for digit in digits))

    def map(self, index_map: IndexMap, sizes: Sequence[int]) -> IndexMap:
        """The map from logical elements to elements of the packed buffer, with names and axes of its source
        `index_map`."""
        results = [
            digit.of(Affine.var(index_map.names[digit.dim]), sizes[digit.dim]) for digit in self.digits
        ]
        ends = [0, *accumulate(index_map.axes)]
        axes = [sum(low <= number < high for number, _ in self.terms) for low, high in pairwise(ends)]
        return IndexMap(index_map.names, tuple(results), tuple(axes))

    @property
    def widths(self) -> dict[int, int]:
        """Elements per block of each logical dimension that is blocked or folded."""
        found: dict[int, int] = {}
        for digit in self.digits:
            if digit.count is not None or digit.place > 1:
                found[digit.dim] = max(digit.place * (digit.count or 1), found.get(digit.dim, 1))
        return found

    def sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Sizes of the packed buffer; the last block of a dimension may be partly empty."""
        return tuple(digit.values(sizes[digit.dim]) for digit in self.digits)

    def physical(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """The sizes of the physical coordinates."""
        found = [1] * (1 + max((number for number, _ in self.terms), default=-1))
        for (number, factor), size in zip(self.terms, self.sizes(sizes), strict=True):
            found[number] += factor * (size - 1)
        return tuple(found)

    def strides(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Strides of the packed buffer: the physical coordinates lie in row-major order."""
        physical = self.physical(sizes)
        steps = compact_strides(physical, range(len(physical)))
        return tuple(factor * steps[number] for number, factor in self.terms)

    def place(self, block: Sequence[Affine], within: Mapping[int, Affine]) -> tuple[Affine, ...]:
        """Packed coordinates, from the block and the place within it along each dimension."""
        return tuple(
            block[digit.dim] if digit.count is None else digit.of(within[digit.dim], self.widths[digit.dim])
            for digit in self.digits
        )

    def box(self, blocks: Sequence[int], within: Mapping[int, int]) -> tuple[int, ...]:
        """The sizes of a view of so many blocks, and elements of a block, of each dimension."""
        return tuple(
            blocks[digit.dim] if digit.count is None else digit.values(within[digit.dim])
            for digit in self.digits
        )


@dataclass(frozen=True, slots=True)
class _PackedOrigin:
    """The origin of a view in a logical dimension, relative to its source: `whole` blocks and `rest` elements, which
    lie from block number `first` to element `last`."""

    whole: Affine
    rest: Affine
    width: int
    first: int
    last: int

    @staticmethod
    def of(total: Affine, width: int, intervals: Mapping[str, Interval]) -> _PackedOrigin:
        # the terms that are whole multiples of the width move by blocks
        terms = total.terms
        whole = Affine(total.offset // width, tuple((a, c // width) for a, c in terms if c % width == 0))
        rest = Affine(total.offset % width, tuple((a, c) for a, c in terms if c % width))
        low, high = rest.bounds(intervals)
        return _PackedOrigin(whole, rest, width, low // width, high)

    @property
    def pending(self) -> Affine:
        """The part that a view moving by whole blocks leaves to the views inside it; never negative."""
        return self.rest - self.first * self.width

    @property
    def blocks(self) -> Affine:
        """The number of whole blocks in `rest`."""
        return Affine(self.first) if self._stays else self.rest.floordiv(self.width)

    @property
    def within(self) -> Affine:
        """The place of `rest` in its block."""
        return self.pending if self._stays else self.rest.mod(self.width)

    @property
    def _stays(self) -> bool:
        """Whether `rest` lies in one block, so that it takes no division."""
        return self.last // self.width == self.first

    def box(self, size: int) -> tuple[int, int]:
        """Blocks, and elements of a block, of a view of `size` logical elements that moves by whole blocks."""
        reach = self.last - self.first * self.width + size
        return -(-reach // self.width), min(reach, self.width)


Packings: TypeAlias = Mapping[Path, Mapping[str, Packing]]
"""The layouts of allocations to pack, by the path of the block that holds them and their names."""


def repacked(root: Block, packings: Packings, outside: Mapping[str, Interval] | None = None) -> Block:
    """`root`, which has the path (0,), with allocations packed, and all views of them below. `outside` has the
    intervals of indices that are passed into the root."""
    return _inside(root, (0,), {}, outside or {}, packings) if packings else root


def packable(block: Block, ref: Refinement, index_map: IndexMap) -> Packing | Refusal:
    """The layout of the allocation `ref` of `block` by a map; a refusal names elements, or the special that uses it."""
    refusal = unpackable(block, ref.name)
    if refusal is not None:
        return refusal
    try:
        physical_sizes(index_map, ref.sizes)
    except ConfigError as error:
        return Refusal(error.reason)
    packing = Packing.of(index_map, ref.sizes)
    if isinstance(packing, Refusal) and (found := collision(index_map, ref.sizes)) is not None:
        first, second = (list(point.values()) for point in (found.first, found.second))
        return Refusal(f"{index_map} puts its elements {first} and {second} both at {list(found.element)}")
    if isinstance(packing, Packing):
        physical = packing.physical(ref.sizes)
        size = prod(physical) * ref.dtype.bytes
        if size > LARGEST:
            axis = max(range(len(physical)), key=physical.__getitem__)
            return Refusal(
                f"the axis {index_map.results[axis]} has {physical[axis]} places, so that it takes {size} bytes"
            )
    return packing


def unpackable(block: Block, name: str) -> Refusal | None:
    """The special that uses the refinement `name` of `block`, or a view of it, as a whole."""
    for statement in block.statements:
        if isinstance(statement, Special) and name in (*statement.inputs, *statement.outputs):
            return Refusal(f"the special {statement.op} uses it as a whole")
        if isinstance(statement, Block):
            for ref in statement.refinements:
                if ref.source == name and (refusal := unpackable(statement, ref.name)) is not None:
                    return refusal
    return None


@dataclass(frozen=True, slots=True)
class _Packed:
    """A packed refinement whose views in the blocks inside follow: its layout, its new strides, and by dimension the
    pending part of its logical origin."""

    packing: Packing
    strides: tuple[int, ...]
    pending: Mapping[int, Affine]

    @staticmethod
    def alloc(ref: Refinement, packing: Packing, agg: Agg) -> tuple[Refinement, _Packed]:
        """An allocation packed, into which stores of its own block merge by `agg`."""
        sizes = packing.sizes(ref.sizes)
        new = Refinement.alloc(
            ref.name, ref.dtype, sizes, agg=agg, location=ref.location, tags=ref.tags, role=ref.role
        )
        new = new.with_strides(packing.strides(ref.sizes))
        return new, _Packed(packing, new.strides, dict.fromkeys(packing.widths, Affine()))

    @property
    def needs(self) -> frozenset[str]:
        """The indices in the pending part of the origin."""
        return indices_of(self.pending.values())

    def origins(
        self, ref: Refinement, names: Mapping[str, Affine], intervals: Mapping[str, Interval]
    ) -> dict[int, _PackedOrigin]:
        """The origin of a view of this refinement, by dimension, over the indices of its block."""
        return {
            dim: _PackedOrigin.of(self.pending[dim].subs(names) + ref.access[dim], width, intervals)
            for dim, width in self.packing.widths.items()
        }

    def views(self, block: Block, ref: Refinement, origins: Mapping[int, _PackedOrigin]) -> list[Refinement]:
        """The views in the place of the view `ref` of `block`: a view moving by whole blocks for the blocks inside, a
        view of the element itself for loads and stores, or both."""
        direct = any(isinstance(s, Load | Store) and s.ref == ref.name for s in block.statements)
        through = any(r.source == ref.name for inner in block.blocks for r in inner.refinements)
        sizes, reach = list(ref.sizes), dict[int, int]()
        for dim, origin in origins.items():
            sizes[dim], reach[dim] = origin.box(ref.dims[dim].size)
        firsts = {dim: origin.whole + origin.first for dim, origin in origins.items()}
        nowhere = dict.fromkeys(origins, Affine())
        whole = self._view(ref, firsts, nowhere, self.packing.box(sizes, reach))
        if not direct:
            return [whole]
        blocks = {dim: origin.whole + origin.blocks for dim, origin in origins.items()}
        within = {dim: origin.within for dim, origin in origins.items()}
        element = self._view(ref, blocks, within, (1,) * len(self.strides))
        if not through:
            return [element]
        if all(origin.pending == Affine() for origin in origins.values()):
            return [whole]  # no part of a block is pending, so that one view serves both
        taken = {other.name for other in block.refinements}
        return [whole, replace(element, name=fresh(f"{ref.name}_element", taken))]

    def _view(
        self,
        ref: Refinement,
        blocks: Mapping[int, Affine],
        within: Mapping[int, Affine],
        sizes: Sequence[int],
    ) -> Refinement:
        """`ref` packed, at the blocks and the places within them of its packed dimensions."""
        outer = [blocks.get(dim, affine) for dim, affine in enumerate(ref.access)]
        dims = tuple(Dim(size, stride) for size, stride in zip(sizes, self.strides, strict=True))
        return replace(ref, access=self.packing.place(outer, within), dims=dims)


def _inside(
    block: Block,
    path: Path,
    outside: Mapping[str, _Packed],
    intervals: Mapping[str, Interval],
    packings: Packings,
) -> Block:
    """`block` with its own allocations packed as `packings` says, and its views of buffers packed `outside`."""
    viewed = [ref for ref in block.refinements if ref.source in outside]
    block, names = passed_into(block, sorted({name for ref in viewed for name in outside[ref.source].needs}))
    own = block.intervals(dict(intervals))
    packed: dict[str, _Packed] = {}
    refs: list[Refinement] = []
    for ref in block.refinements:
        if ref.is_alloc and ref.name in packings.get(path, {}):
            merged = own_aggregation(block, ref.name)
            new, packed[ref.name] = _Packed.alloc(ref, packings[path][ref.name], merged)
            refs.append(new)
        elif ref.source in outside:
            how = outside[ref.source]
            origins = how.origins(ref, names, own)
            views = how.views(block, ref, origins)
            refs += views
            packed[ref.name] = replace(how, pending={dim: at.pending for dim, at in origins.items()})
            if len(views) > 1:  # loads and stores go to the element; blocks inside take the other view
                element = {ref.name: views[1].name}
                own_access = [
                    retarget(s, element) if isinstance(s, Load | Store) else s for s in block.statements
                ]
                block = with_statements(block, own_access)
        else:
            refs.append(ref)
    statements = [
        _inside(statement, (*path, number), packed, own, packings)
        if isinstance(statement, Block)
        else statement
        for number, statement in enumerate(block.statements)
    ]
    inner = with_statements(block, statements)
    return replace(inner, refinements=tuple(refs)) if packed else inner


def packed_data(
    data: bytes, sizes: Sequence[int], dtype: DType, packing: Packing, pad: bool | int | float | None = None
) -> bytes:
    """A constant of `sizes` packed, with `pad`, or zeros, where no element is."""
    import numpy as np

    array = np.frombuffer(data, f"V{dtype.bytes}").reshape(sizes)
    result = np.full(packing.sizes(sizes), 0 if pad is None else pad, dtype.numpy()).view(f"V{dtype.bytes}")
    place = np.indices(sizes, sparse=True)
    found = [
        place[d.dim] // d.place if d.count is None else place[d.dim] // d.place % d.count
        for d in packing.digits
    ]
    result[tuple(np.broadcast_arrays(*found))] = array
    return result.tobytes()
