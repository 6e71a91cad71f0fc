"""Elements that tiles of a block touch through one view, exactly, for many tile sizes at once.

Arrays have a row for each candidate and a column for each iterated index of the block; results have a value for each
row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stripe.ir import Affine, Block, FloorDiv, Interval, Refinement, coordinates
from stripe.ir.nest import UNKNOWN
from stripe.poly.count.separable import tile_elements

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


def product(values: Ints, columns: Sequence[int] | None = None) -> Floats:
    """The product of each row, or of some columns of it."""
    chosen = values if columns is None else values[:, list(columns)]
    return np.multiply.reduce(chosen.astype(np.float64), axis=1)


class TileCounts:
    """The number of tiles along each index of `ranges`, for one array of sizes."""

    def __init__(self, ranges: Ints, sizes: Ints) -> None:
        self.sizes = sizes
        self.along = -(-ranges // sizes)
        self._products: dict[tuple[int, ...], Floats] = {}

    def product(self, columns: Iterable[int]) -> Floats:
        """The number of tiles along some indices."""
        chosen = tuple(columns)
        if chosen not in self._products:
            self._products[chosen] = product(self.along, chosen)
        return self._products[chosen]

    @property
    def tiles(self) -> Floats:
        """The number of all tiles."""
        return self.product(range(self.along.shape[1]))


@dataclass(frozen=True, slots=True)
class _Term:
    """stride * index for an index of the tile, `size + extra` values wide; without a column always `extra + 1`."""

    stride: int
    column: int | None
    extra: int = 0

    def excess(self, sizes: Ints, ranges: Sequence[int], over: int) -> Ints | int:
        """The sum over all tiles along this index of max(0, extent - over); the last tile may be smaller."""
        if self.column is None:
            return max(0, self.extra + 1 - over)
        size, whole = sizes[:, self.column], ranges[self.column]
        beyond = self.extra - over
        if not beyond:
            return whole
        count, rest = np.divmod(whole, size)
        last = np.maximum(0, rest + beyond)
        return count * np.maximum(0, size + beyond) + (last if beyond < 0 else np.where(rest > 0, last, 0))


@dataclass(frozen=True, slots=True)
class _StrideRun:
    """The values that indices of one stride reach together: 1 + `extra` + the sum of (size - 1) over `columns`."""

    stride: int
    columns: tuple[int, ...]
    extra: int

    def values(self, sizes: Ints) -> Ints | int:
        """Their number in one full tile."""
        found: Ints | int = self.extra + 1 - len(self.columns)
        for column in self.columns:
            found = found + sizes[:, column]
        return found


@dataclass(frozen=True, slots=True)
class _Dimension:
    """One coordinate of a view: its access and size, the elements that a step of it moves in memory, and the columns of
    the indices that move it."""

    access: Affine
    size: int
    stride: int
    columns: Mapping[str, int]
    overhang: int
    """Coordinates of the box around all points that constraints of the block leave out, at both ends."""
    terms: Sequence[_Term] | None
    """The strided indices, the view's own size joined to an index of stride 1; None without a closed form."""
    runs: Sequence[_StrideRun]
    """The strides of a linear access."""

    @staticmethod
    def of(access: Affine, size: int, stride: int, columns: Mapping[str, int], overhang: int) -> _Dimension:
        """The dimension with its strides."""
        strides = {name: abs(access.coeff(name)) for name in columns}
        terms = [_Term(strides[name], column) for name, column in columns.items()]
        by_stride: dict[int, list[int]] = {1: []} if size > 1 else {}
        for name, column in columns.items():
            if strides[name]:
                by_stride.setdefault(strides[name], []).append(column)
        runs = [
            _StrideRun(each, tuple(by_stride[each]), size - 1 if each == 1 else 0)
            for each in sorted(by_stride)
        ]
        if size > 1:
            unit = next((term for term in terms if term.stride == 1), None)
            if unit is not None:
                terms.remove(unit)
            terms.append(_Term(1, None if unit is None else unit.column, size - 1))
        is_closed = access.is_linear and len(terms) <= 2
        return _Dimension(access, size, stride, columns, overhang, terms if is_closed else None, runs)

    def extent(self, sizes: Ints) -> Ints:
        """The length of the box around one full tile."""
        return self.size + _span(self.access, self.columns, sizes)

    def elements(self, sizes: Ints) -> Ints | int:
        """The number of distinct coordinates in one full tile; the box where floors or remainders occur."""
        if not self.access.is_linear:
            return self.extent(sizes)
        match self.runs:
            case []:
                return 1
            case [only]:
                return only.values(sizes)
            case [first, second]:
                common = gcd(first.stride, second.stride)
                a, b = first.values(sizes), second.values(sizes)
                return a * b - np.maximum(0, a - second.stride // common) * np.maximum(
                    0, b - first.stride // common
                )
            case _:
                tiles = {name: sizes[:, column] for name, column in self.columns.items()}
                return tile_elements([self.access], [self.size], tiles)

    def total(self, sizes: Ints, ranges: Sequence[int]) -> Ints | int | None:
        """`elements` summed over all tiles along the indices of this dimension, the last ones cut at the range.

        It never grows with a tile size: for one index the sum of max(0, extent - c) over its tiles is, with n
        tiles, that of its range less at most n*c, and fewer tiles lose less; for two, a*b - max(0, a -
        s)*max(0, b - t) sums to R1*R2 - P1*P2 with R the sums of extents and P these sums of excesses. None
        without a closed form.
        """
        match self.terms:
            case []:
                return 1
            case [only]:
                return only.excess(sizes, ranges, 0)
            case [first, second]:
                common = gcd(first.stride, second.stride)
                over_first = first.excess(sizes, ranges, second.stride // common)
                over_second = second.excess(sizes, ranges, first.stride // common)
                whole = first.excess(sizes, ranges, 0) * second.excess(sizes, ranges, 0)
                return whole - over_first * over_second
            case _:
                return None


def _span(access: Affine, columns: Mapping[str, int], sizes: Ints) -> Ints:
    """The largest less the smallest value of an affine over a tile, or more where floors or remainders occur."""
    total = np.zeros(len(sizes), dtype=np.int64)
    for atom, coefficient in access.terms:
        if isinstance(atom, str):
            inner = sizes[:, columns[atom]] - 1 if atom in columns else 0
        elif isinstance(atom, FloorDiv):
            inner = -(-_span(atom.arg, columns, sizes) // atom.divisor)
        else:
            inner = np.minimum(_span(atom.arg, columns, sizes), atom.modulus - 1)
        total = total + abs(coefficient) * inner
    return total


def _overhang(access: Affine, block: Block, intervals: Mapping[str, Interval]) -> int:
    """The coordinates past the bounds by the constraints of `block`, which cut windows at the edges."""
    low, high = access.bounds(intervals)
    least, most = low, high
    for constraint in block.constraints:
        below, above = constraint.affine - access, constraint.affine + access
        if below.is_constant:
            least = max(least, -below.offset)
        if above.is_constant:
            most = min(most, above.offset)
    return least - low + high - most if access.names() else 0


class TileFootprint:
    """Elements that tiles of `block` touch through the view `ref`."""

    def __init__(self, block: Block, ref: Refinement) -> None:
        self.ref = ref
        self.ranges = [index.range for index in block.iterated]
        columns = {index.name: column for column, index in enumerate(block.iterated)}
        intervals = {i.name: UNKNOWN if i.is_passed else (0, i.range - 1) for i in block.indices}
        self.dimensions = [
            _Dimension.of(
                found.affine,
                found.size,
                abs(ref.strides[found.dim]),
                {n: columns[n] for n in sorted(found.affine.names()) if n in columns},
                _overhang(found.affine, block, intervals),
            )
            for found in coordinates([affine.simplified(intervals) for affine in ref.access], ref.sizes)
        ]
        used = [column for dimension in self.dimensions for column in dimension.columns.values()]
        self.columns = frozenset(used)
        self.others = [column for column in range(len(self.ranges)) if column not in self.columns]
        """The indices that do not move the view."""
        self.separates = len(used) == len(self.columns)
        """Whether no index moves two dimensions, so that elements are products over the dimensions."""
        self.is_exact = self.separates and all(dimension.access.is_linear for dimension in self.dimensions)
        """Whether `elements` counts exactly; where not, it counts too many."""
        self._latest: list[tuple[Ints, Ints]] = []

    def elements(self, sizes: Ints) -> Ints:
        """Distinct elements of one full tile. Never shrinks as a tile size grows.

        The latest answers are kept: limits, transfers and operands ask about the same arrays, which stay as they are.
        """
        for asked, answer in self._latest:
            if asked is sizes:
                return answer
        found = np.ones(len(sizes), dtype=np.int64)
        for dimension in self.dimensions:
            found = found * dimension.elements(sizes)
        self._latest = [(sizes, found), *self._latest[:1]]
        return found

    def bytes(self, sizes: Ints) -> Ints:
        """`elements` in bytes."""
        return self.elements(sizes) * self.ref.dtype.bytes

    def extents(self, sizes: Ints) -> list[Ints]:
        """The sides of the box around one full tile."""
        return [dimension.extent(sizes) for dimension in self.dimensions]

    def moved(self, low: Ints, high: Ints) -> Ints:
        """As `total`, without the elements past the bounds that constraints of the block set: nothing moves there."""
        total = self.total(low, high)
        if not any(dimension.overhang for dimension in self.dimensions):
            return total
        kept = np.ones(len(low), dtype=np.float64)
        for dimension in self.dimensions:
            part = dimension.total(high, self.ranges) if dimension.overhang else None
            if part is not None:
                kept = kept * np.maximum(1, part - dimension.overhang) / part
        return np.ceil(total * kept - 1e-6).astype(np.int64) if kept.min() < 1 else total

    def total(self, low: Ints, high: Ints) -> Ints:
        """Elements touched, summed over the tiles along the indices that move the view: the distinct elements of each
        tile, cut tiles counted as they are. A lower bound for all sizes between `low` and `high`, exact where these
        are equal.
        """
        known = self._closed_total(high)
        if known is not None:
            return known  # closed forms never grow with a size
        tiles = np.ones(len(low), dtype=np.int64)
        for column in sorted(self.columns):
            tiles = tiles * -(-self.ranges[column] // high[:, column])
        return self.elements(low) * tiles

    def _closed_total(self, sizes: Ints) -> Ints | None:
        found = np.ones(len(sizes), dtype=np.int64)
        for dimension in self.dimensions:
            part = dimension.total(sizes, self.ranges) if self.separates else None
            if part is None:
                return None
            found = found * part
        return found
