"""What tiles of a block touch through one view, exactly, for many tile sizes at once.

All functions take arrays with a row for each candidate and a column for each iterated index of the block, and
give an array with a value for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, TypeAlias

from stripe.ir import Affine, Block, FloorDiv, Refinement
from stripe.poly.count.separable import tile_elements

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Term:
    """stride * index for an index of the tile, which is `size + extra` values wide; without a column always
    `extra + 1`.
    """

    stride: int
    column: int | None
    extra: int = 0

    def extent(self, sizes: Ints) -> Ints | int:
        return self.extra + 1 if self.column is None else sizes[:, self.column] + self.extra

    def excess(self, sizes: Ints, ranges: Sequence[int], over: int) -> Ints | int:
        """The sum over all tiles along this index of max(0, extent - over); the last tile may be smaller."""
        import numpy as np

        if self.column is None:
            return max(0, self.extra + 1 - over)
        size, whole = sizes[:, self.column], ranges[self.column]
        rest = whole % size
        full = (whole // size) * np.maximum(0, size + self.extra - over)
        return full + np.where(rest > 0, np.maximum(0, rest + self.extra - over), 0)


@dataclass(frozen=True, slots=True)
class _Dimension:
    """One dimension of a view: its access and size, and the indices of the block that move it."""

    access: Affine
    size: int
    names: tuple[str, ...]
    columns: tuple[int, ...]
    terms: tuple[_Term, ...] | None
    """None when the elements of a tile have no closed form in the table of terms."""

    def extent(self, sizes: Ints) -> Ints:
        """The length of the box around one full tile."""
        return self.size + _span(self.access, dict(zip(self.names, self.columns, strict=True)), sizes)

    def elements(self, sizes: Ints) -> Ints:
        """The number of distinct coordinates in one full tile; the box where floors or remainders occur."""
        import numpy as np

        if self.terms is None:
            if not self.access.is_linear:
                return self.extent(sizes)
            tiles = {name: sizes[:, c] for name, c in zip(self.names, self.columns, strict=True)}
            return tile_elements([self.access], [self.size], tiles)
        ones = np.ones(len(sizes), dtype=np.int64)
        extents = [term.extent(sizes) * ones for term in self.terms]
        if not extents:
            return ones
        if len(extents) == 1:
            return extents[0]
        (first, second), (a, b) = self.terms, extents
        common = gcd(first.stride, second.stride)
        overlap = np.maximum(0, a - second.stride // common) * np.maximum(0, b - first.stride // common)
        return a * b - overlap

    def total(self, sizes: Ints, ranges: Sequence[int]) -> Ints | None:
        """`elements` summed over all tiles along the indices of this dimension, the last ones cut at the range.

        It never grows with a tile size: for one index the sum of max(0, extent - c) over its tiles is, with n
        tiles, that of its range less at most n*c, and fewer tiles lose less; for two, a*b - max(0, a -
        s)*max(0, b - t) sums to R1*R2 - P1*P2 with R the sums of extents and P these sums of excesses. None
        where there is no closed form.
        """
        import numpy as np

        if self.terms is None:
            return None
        ones = np.ones(len(sizes), dtype=np.int64)
        if not self.terms:
            return ones
        sums = [term.excess(sizes, ranges, 0) * ones for term in self.terms]
        if len(sums) == 1:
            return sums[0]
        first, second = self.terms
        common = gcd(first.stride, second.stride)
        over_first = first.excess(sizes, ranges, second.stride // common)
        over_second = second.excess(sizes, ranges, first.stride // common)
        return sums[0] * sums[1] - over_first * over_second


def _span(access: Affine, columns: dict[str, int], sizes: Ints) -> Ints:
    """The largest less the smallest value of an affine over a tile, or more where floors or remainders occur."""
    import numpy as np

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


class Footprint:
    """What tiles of `block` touch through the view `ref`."""

    def __init__(self, block: Block, ref: Refinement) -> None:
        self.ref = ref
        self.ranges = [index.range for index in block.iterated]
        columns = {index.name: column for column, index in enumerate(block.iterated)}
        self.dimensions = [
            _dimension(access, dim.size, columns) for access, dim in zip(ref.access, ref.dims, strict=True)
        ]
        used = [column for dimension in self.dimensions for column in dimension.columns]
        self.columns = frozenset(used)
        self.separates = len(used) == len(self.columns)
        """Whether no index moves two dimensions, so that elements are products over the dimensions."""
        self.is_exact = self.separates and all(dimension.access.is_linear for dimension in self.dimensions)
        """Whether `elements` counts exactly; where not, it counts too many."""

    def elements(self, sizes: Ints) -> Ints:
        """Distinct elements of one full tile. Never shrinks as a tile size grows."""
        import numpy as np

        found = np.ones(len(sizes), dtype=np.int64)
        for dimension in self.dimensions:
            found = found * dimension.elements(sizes)
        return found

    def box(self, sizes: Ints, *, odd: bool = False) -> Ints:
        """Elements of the box around one full tile, each side rounded up to an odd number on request."""
        import numpy as np

        found = np.ones(len(sizes), dtype=np.int64)
        for extent in self.extents(sizes):
            found = found * (extent | 1 if odd else extent)
        return found

    def extents(self, sizes: Ints) -> list[Ints]:
        """The sides of the box around one full tile."""
        return [dimension.extent(sizes) for dimension in self.dimensions]

    def total(self, sizes: Ints) -> Ints:
        """Elements touched, summed over the tiles along the indices that move the view: each tile's distinct
        elements, cut tiles counted as they are.
        """
        known = self._closed_total(sizes)
        return known if known is not None else self.elements(sizes) * self._tiles(sizes)

    def least_total(self, low: Ints, high: Ints) -> Ints:
        """A lower bound of `total` for all sizes between `low` and `high`: closed forms never grow with a
        size.
        """
        known = self._closed_total(high)
        return known if known is not None else self.elements(low) * self._tiles(high)

    def _closed_total(self, sizes: Ints) -> Ints | None:
        import numpy as np

        if not self.separates:
            return None
        found = np.ones(len(sizes), dtype=np.int64)
        for dimension in self.dimensions:
            part = dimension.total(sizes, self.ranges)
            if part is None:
                return None
            found = found * part
        return found

    def _tiles(self, sizes: Ints) -> Ints:
        import numpy as np

        found = np.ones(len(sizes), dtype=np.int64)
        for column in sorted(self.columns):
            found = found * -(-self.ranges[column] // sizes[:, column])
        return found


def _dimension(access: Affine, size: int, columns: dict[str, int]) -> _Dimension:
    names = tuple(name for name in sorted(access.names()) if name in columns)
    terms = _terms(access, size, columns) if access.is_linear else None
    return _Dimension(access, size, names, tuple(columns[name] for name in names), terms)


def _terms(access: Affine, size: int, columns: dict[str, int]) -> tuple[_Term, ...] | None:
    """The strided indices of one dimension, the view's own size joined to one that steps by 1; None for more
    than two.
    """
    terms = [
        _Term(abs(access.coeff(name)), columns[name]) for name in sorted(access.names()) if name in columns
    ]
    if size > 1:
        unit = next((place for place, term in enumerate(terms) if term.stride == 1), None)
        if unit is None:
            terms.append(_Term(1, None, size - 1))
        else:
            terms[unit] = _Term(1, terms[unit].column, size - 1)
    return tuple(terms) if len(terms) <= 2 else None
