"""Index maps: where the elements of a logical tensor lie in a physical one.

    (n, h, w, c) -> (n, floor(c/4), h | w, c mod 4)

maps four logical indices to five physical ones, which make up two physical axes: within an axis elements lie in
row-major order, and `|` separates axes (of a texture, say). The expressions are those of Stripe's text. A named form,
read against letters for the logical indices, says the same for blocked layouts: `NHWC8h8w32c` against `NHWC` is

    (n, h, w, c) -> (floor(n), floor(h/8), floor(w/8), floor(c/32), h mod 8, w mod 8, c mod 32)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from typing_extensions import override

from stripe.ir.affine import Affine
from stripe.ir.dtypes import value_key
from stripe.ir.frozen import replace


@dataclass(frozen=True, slots=True)
class IndexMap:
    """A function from points of `names` to points of one coordinate for each of `results`.

    `axes` counts the results of each physical axis.
    """

    names: tuple[str, ...]
    results: tuple[Affine, ...]
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if sum(self.axes) != len(self.results) or any(axis < 0 for axis in self.axes):
            raise ValueError(f"the axes of {len(self.results)} results are {list(self.axes)}")

    @staticmethod
    def of(names: Sequence[str], results: Sequence[Affine]) -> IndexMap:
        """A map into one physical axis."""
        return IndexMap(tuple(names), tuple(results), (len(results),))

    @staticmethod
    def identity(names: Sequence[str]) -> IndexMap:
        return IndexMap.of(names, [Affine.var(name) for name in names])

    @staticmethod
    def blocked(order: Sequence[int], blocks: Mapping[int, int]) -> IndexMap:
        """Dimensions in `order`, the outermost first, then the elements in a block of each dimension of `blocks`."""
        names = [f"d{dim}" for dim in range(len(order))]
        outer = [Affine.var(names[dim]).floordiv(blocks.get(dim, 1)) for dim in order]
        return IndexMap.of(
            names, [*outer, *(Affine.var(names[dim]).mod(size) for dim, size in blocks.items())]
        )

    @staticmethod
    def fold(rank: int, dim: int, length: int) -> IndexMap:
        """Dimension `dim` modulo `length`: elements so far apart share a place, as in a ring."""
        whole = IndexMap.identity([f"d{number}" for number in range(rank)])
        return whole.with_result(dim, lambda result: result.mod(length))

    def with_result(self, place: int, change: Callable[[Affine], Affine]) -> IndexMap:
        """The map with another expression for one result."""
        results = [change(r) if number == place else r for number, r in enumerate(self.results)]
        return replace(self, results=tuple(results))

    def at(self, place: Sequence[Affine | int]) -> tuple[Affine, ...]:
        """The physical coordinates of a logical place."""
        values = {
            name: at if isinstance(at, Affine) else Affine(at)
            for name, at in zip(self.names, place, strict=True)
        }
        return tuple(result.subs(values) for result in self.results)

    def evaluate(self, point: Mapping[str, int]) -> tuple[int, ...]:
        """The physical point of a logical one."""
        return tuple(result.evaluate(point) for result in self.results)

    def then(self, other: IndexMap) -> IndexMap:
        """First this map, then `other`, whose indices are this one's results."""
        return IndexMap(self.names, other.at(self.results), other.axes)

    def strides(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """The strides of a buffer of `sizes` that lies by the map, its results in row-major order; for a map without
        floors and remainders."""
        assert all(result.is_linear for result in self.results)
        box = {name: (0, size - 1) for name, size in zip(self.names, sizes, strict=True)}
        strides, step = dict.fromkeys(self.names, 0), 1
        for result in reversed(self.results):
            for name in result.names():
                strides[name] += result.coeff(name) * step
            step *= max(1, result.bounds(box)[1] + 1)
        return tuple(strides.values())

    def __str__(self) -> str:
        axes = (", ".join(map(str, axis)) for axis in self._grouped())
        return f"({', '.join(self.names)}) -> ({' | '.join(axes)})"

    def _grouped(self) -> list[tuple[Affine, ...]]:
        ends = [0, *accumulate(self.axes)]
        return [self.results[first:last] for first, last in pairwise(ends)]


@dataclass(frozen=True, slots=True, eq=False)
class PhysicalLayout:
    """The layout of a tensor of the user: its logical `sizes`, and the map from logical elements to those of the
    allocation.

    Other elements of the allocation are holes. They hold `pad`: the caller promises it for inputs, the program owes it
    for outputs. Without a pad they are undefined. The pads 0.0 and -0.0 are two.
    """

    map: IndexMap
    sizes: tuple[int, ...]
    pad: bool | int | float | None = None

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, PhysicalLayout) and self._key == other._key

    @override
    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return (self.map, self.sizes, None if self.pad is None else value_key(self.pad))

    def __str__(self) -> str:
        indices = ", ".join(f"{name}:{size}" for name, size in zip(self.map.names, self.sizes, strict=True))
        return f"({indices}) -> {str(self.map).partition(' -> ')[2]}"
