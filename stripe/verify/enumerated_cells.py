"""Memory of the enumeration: elements of buffers that hold terms, and views as places in them.

Each access is noted by its point, so that races between the points of a block are found, and each place is looked at in
every box on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.ir import Agg, Refinement

Integers: TypeAlias = npt.NDArray[np.int64]
Position: TypeAlias = tuple[tuple[int, int], ...]
"""The runs of blocks around a statement, outermost first: the number of the run and the point in it."""


class InvalidProgram(Exception):
    """A program that does something undefined; the text says what, and for which element."""


@dataclass(slots=True)
class Cells:
    """An allocation in one run of its block: a term for each element that was touched, contributions that wait to be
    merged, and who touched an element at which point of which run of a block (None: at several points). `given` makes
    the term of an element of an input or a constant.
    """

    ref: Refinement
    agg: Agg
    level: int
    is_shared: bool
    given: Callable[[int], int] | None = None
    values: dict[int, int] = field(default_factory=dict[int, int])
    waiting: dict[int, tuple[Agg, list[int]]] = field(default_factory=dict[int, tuple[Agg, list[int]]])
    touched: dict[str, dict[tuple[int, int], int | None]] = field(
        default_factory=dict[str, dict[tuple[int, int], int | None]]
    )

    def touch(self, kind: str, flat: int, position: Position) -> str | None:
        """Notes an access; the kind of an access by another point that conflicts with it, if there is one.

        Two accesses conflict when they are at different points of one run of a block, unless both read or both merge by
        one aggregation.
        """
        found = None
        own = self.touched.setdefault(kind, {})
        for run, point in position[self.level :]:
            key = (flat, run)
            for other, points in self.touched.items():
                if (points is not own or kind == "assign") and points.get(key, point) != point:
                    found = other
            if own.setdefault(key, point) != point:
                own[key] = None
        return found


@dataclass(frozen=True, slots=True)
class CellView:
    """A refinement at one point: the buffer, and for each box on the way to it the place of the view's origin in it."""

    buffer: Cells
    boxes: tuple[tuple[Refinement, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Places:
    """A view at all points of a run: where its origin lies in the boxes on the way, the element of the buffer (in
    row-major order), and the first box that the origin lies outside of, by its number plus one.
    """

    source: CellView
    ref: Refinement
    step: Integers
    flat: list[int]
    outside: list[int]

    def at(self, point: int) -> CellView:
        step = self.step[:, point].tolist()
        outer = tuple(
            (ref, tuple(a + b for a, b in zip(place, step, strict=True))) for ref, place in self.source.boxes
        )
        return CellView(self.source.buffer, ((self.ref, (0,) * len(step)), *outer))


def places_of(ref: Refinement, source: CellView, env: Mapping[str, Any], points: int) -> Places:
    step = np.empty((ref.rank, points), np.int64)
    for dim, affine in enumerate(ref.access):
        step[dim] = affine.evaluate(env)
    outside = np.zeros(points, np.int64)
    flat = np.zeros(points, np.int64)
    boxes = [(ref, (0,) * ref.rank)]
    if not all(ref.sizes):
        outside[:] = 1
    for number, (box, place) in enumerate(source.boxes):
        boxes.append((box, place))
        last = number == len(source.boxes) - 1
        for dim, (size, origin) in enumerate(zip(box.sizes, place, strict=True)):
            at = step[dim] + origin
            outside[(outside == 0) & ((at < 0) | (at >= size))] = number + 2
            if last:
                flat = flat * size + at
    return Places(source, ref, step, flat.tolist(), outside.tolist())


def origin_of(view: CellView | tuple[Places, int]) -> tuple[Cells, int]:
    """The buffer and the element that the origin of a view is. Raises InvalidProgram where it lies outside of a box."""
    if isinstance(view, CellView):
        return view.buffer, _flat(view, (0,) * view.boxes[0][0].rank)
    places, point = view
    if places.outside[point]:
        _flat(places.at(point), (0,) * places.ref.rank)
    return places.source.buffer, places.flat[point]


def _flat(view: CellView, offset: Sequence[int]) -> int:
    flat = 0
    for ref, place in view.boxes:
        flat = 0
        for size, origin, more in zip(ref.sizes, place, offset, strict=True):
            if not 0 <= origin + more < size:
                element = [a + b for a, b in zip(place, offset, strict=True)]
                raise InvalidProgram(
                    f"'{view.boxes[0][0].name}' touches element {element} outside of '{ref.name}'"
                )
            flat = flat * size + origin + more
    return flat


def elements_of(view: CellView) -> list[int]:
    """The elements of the whole view, in row-major order."""
    sizes = view.boxes[0][0].sizes
    if not all(sizes):
        return []
    for corner in ((0,) * len(sizes), tuple(size - 1 for size in sizes)):
        _flat(view, corner)
    buffer, place = view.boxes[-1]
    strides = [prod(buffer.sizes[dim + 1 :]) for dim in range(buffer.rank)]
    first = sum(stride * origin for stride, origin in zip(strides, place, strict=True))
    flat = np.full(sizes, first, np.int64)
    for dim, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        flat += (stride * np.arange(size)).reshape(size, *(1,) * (len(sizes) - 1 - dim))
    return flat.reshape(-1).tolist()


def whole_view(view: CellView | tuple[Places, int]) -> CellView:
    return view if isinstance(view, CellView) else view[0].at(view[1])


def element_name(buffer: Cells, flat: int) -> str:
    place = (
        ", ".join(str(int(n)) for n in np.unravel_index(flat, buffer.ref.sizes)) if buffer.ref.rank else ""
    )
    return f"{buffer.ref.name}[{place}]"
