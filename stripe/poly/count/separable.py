"""Closed forms for one dimension of an access: the number of distinct values of a sum of strided indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING, TypeAlias

from stripe.ir import Affine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts: TypeAlias = NDArray[np.int64]


def distinct_values(terms: Iterable[tuple[int, int]]) -> int | None:
    """The number of values of the sum of coefficient * index, index in [0, extent), for the given (coefficient,
    extent) pairs; None where no closed form is known.

    By growing strides: as long as the next stride is no longer than the run of values so far, the run stays gapless; a
    longer stride repeats the run apart, which multiplies when all later strides are its multiples. Two strides that
    are left have the exact count X*K - max(0, X - b)*max(0, K - a), a and b being the strides without their common
    divisor.
    """
    merged: dict[int, int] = {}
    for coefficient, extent in terms:
        if extent < 1:
            return 0
        if coefficient and extent > 1:
            stride = abs(coefficient)
            merged[stride] = merged.get(stride, 1) + extent - 1
    return _distinct(sorted(merged.items()))


def _distinct(terms: Sequence[tuple[int, int]]) -> int | None:
    if not terms:
        return 1
    common = gcd(*(stride for stride, _ in terms))
    terms = [(stride // common, extent) for stride, extent in terms]
    if len(terms) == 1:
        return terms[0][1]
    if len(terms) == 2:
        (a, first), (b, second) = terms
        return first * second - max(0, first - b) * max(0, second - a)
    (unit, run), rest = terms[0], terms[1:]
    while unit == 1 and rest and rest[0][0] <= run:
        run += rest[0][0] * (rest[0][1] - 1)
        rest = rest[1:]
    if not rest:
        return run
    stride = rest[0][0]
    if unit == 1 and all(other % stride == 0 for other, _ in rest):
        inner = _distinct(rest)
        return None if inner is None else run * inner
    return _distinct([(1, run), rest[0]]) if unit == 1 and len(rest) == 1 else None


def tile_elements(access: Sequence[Affine], sizes: Sequence[int], tiles: Mapping[str, Counts]) -> Counts:
    """The exact number of distinct elements that one full tile touches, for many candidate tiles at once.

    `access` and `sizes` are those of the view (elements access + [0, size)); dimensions must not share an index that
    is tiled.
    """
    import numpy as np

    total = np.ones(max(map(len, tiles.values()), default=1), dtype=np.int64)
    for affine, size in zip(access, sizes, strict=True):
        terms = [(abs(affine.coeff(name)), tiles[name]) for name in sorted(affine.names()) if name in tiles]
        total = total * _distinct_arrays(terms, size, len(total))
    return total


def _distinct_arrays(terms: Sequence[tuple[int, Counts]], size: int, length: int) -> Counts:
    """`distinct_values` elementwise: two strides by the exact formula, the general case value by value."""
    import numpy as np

    parts = [(c, np.broadcast_to(np.asarray(sizes, dtype=np.int64), (length,))) for c, sizes in terms if c]
    if size > 1:
        parts.append((1, np.full(length, size, dtype=np.int64)))
    merged: dict[int, Counts] = {}
    for stride, sizes in parts:
        merged[stride] = merged[stride] + sizes - 1 if stride in merged else sizes
    ordered = sorted(merged.items())
    if not ordered:
        return np.ones(length, dtype=np.int64)
    if len(ordered) == 1:
        return ordered[0][1]
    if len(ordered) == 2:
        (a, first), (b, second) = ordered
        common = gcd(a, b)
        overlap = np.maximum(0, first - b // common) * np.maximum(0, second - a // common)
        return first * second - overlap
    table, inverse = np.unique(np.stack([sizes for _, sizes in ordered]), axis=1, return_inverse=True)
    strides = [stride for stride, _ in ordered]
    counts = [_counted(list(zip(strides, map(int, column), strict=True))) for column in table.T]
    return np.asarray(counts, dtype=np.int64)[np.asarray(inverse).reshape(-1)]


def _counted(terms: Sequence[tuple[int, int]]) -> int:
    """The closed form, or else the values marked one by one: they lie in one dimension of one tile."""
    found = distinct_values(terms)
    if found is not None:
        return found
    import numpy as np

    values = np.zeros(1, dtype=np.int64)
    for stride, number in terms:
        values = np.unique((values[:, None] + stride * np.arange(number)[None, :]).reshape(-1))
    return len(values)
