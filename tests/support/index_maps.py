"""Random index maps: dimensions in any order, each cut into blocks of blocks, some of them merged."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from stripe.ir import Affine
from stripe.ir.index_map import IndexMap


@st.composite
def blocked_maps(draw: st.DrawFn, sizes: Sequence[int]) -> IndexMap:
    """A map of a tensor of `sizes`, of at most six dimensions, that keeps its elements apart."""
    names = tuple("ijklmn"[: len(sizes)])
    parts: list[tuple[Affine, int]] = []
    for name, size in zip(names, sizes, strict=True):
        rest, extent = Affine.var(name), size
        for width in draw(st.lists(st.integers(2, 4), max_size=2)):
            parts.append((rest.mod(width), width))
            rest, extent = rest.floordiv(width), -(-extent // width)
        parts.append((rest, extent))
    parts = draw(st.permutations(parts))
    if len(parts) > 1 and draw(st.booleans()):
        (first, _), (second, width) = parts[0], parts[1]
        parts = [(first * width + second, 0), *parts[2:]]
    return IndexMap.of(names, [part for part, _ in parts])
