"""A block in execution: its lanes, index values and views, and the message about a fault in one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stripe.exec.errors import ExecutionError
from stripe.exec.lanes import (
    BoolArray,
    Extents,
    LaneValue,
    constant_value,
    evaluate,
    first_lane,
    weighted_sum,
)
from stripe.exec.storage import RunBuffer
from stripe.ir import Block, Path, Refinement, path_text

Coordinates = tuple[LaneValue, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LaneBox:
    """A view that an access goes through, or the allocation at its root; `place` is the element relative to it."""

    ref: Refinement
    place: Coordinates


@dataclass(frozen=True, slots=True, eq=False)
class PointsView:
    """A refinement in execution. `boxes` are it and those it is taken from, innermost first; the last is the buffer.
    Boxes between that hold the one inside them in all lanes are left out. `inside`: all boxes lie within the buffer in
    all lanes.
    """

    ref: Refinement
    buffer: RunBuffer
    boxes: tuple[LaneBox, ...]
    inside: bool

    @property
    def origin(self) -> Coordinates:
        """The coordinates of the view's first element in the allocation."""
        return self.boxes[-1].place


@dataclass(slots=True, eq=False)
class Frame:
    """One chunk of the points of a block, in all lanes of the blocks around it.

    `mask` is false in lanes whose point the constraints of some block exclude; None when all lanes are live. `fresh`
    are the axes that this block added, the last of `extents`.
    """

    block: Block
    path: Path
    extents: Extents
    values: Mapping[str, LaneValue]
    mask: BoolArray | None
    parent: Frame | None
    views: dict[str, PointsView] = field(default_factory=dict[str, PointsView])

    def point(self, lane: tuple[int, ...]) -> str:
        """The index values of this block and those around it in one lane, outermost first."""
        frames: list[Frame] = []
        frame: Frame | None = self
        while frame is not None:
            frames.append(frame)
            frame = frame.parent
        texts = [
            f"{index.name}={inner.values[index.name].at(lane[: len(inner.extents)])}"
            for inner in reversed(frames)
            for index in inner.block.indices
            if not index.is_passed
        ]
        return f"the point {', '.join(texts)}" if texts else "its one point"

    def fault(self, what: str, lane: tuple[int, ...], hint: str | None = None) -> ExecutionError:
        """An error at one lane; `what` starts with the statement's verb."""
        return ExecutionError(f"{what} at {self.point(lane)}", where=self.where, hint=hint)

    @property
    def where(self) -> str:
        """The block as diagnostics name it."""
        name = f" ({self.block.name})" if self.block.name else ""
        return f"block {path_text(self.path)}{name}"


def open_view(frame: Frame, ref: Refinement, source: PointsView) -> PointsView:
    """The view `ref` of `source`, whose lanes are those of the frame outside."""
    rank = len(frame.extents)
    added = rank - len(frame.parent.extents) if frame.parent else rank
    step = [evaluate(affine, frame.values, frame.extents) for affine in ref.access]
    first, *others = source.boxes
    held = _holds(first.ref, ref, step, frame.extents)
    boxes = [LaneBox(ref, (constant_value(0, rank),) * ref.rank)]
    for box in others if others and held else source.boxes:
        moved = [
            there if place.is_zero else place.widen(added) + there
            for place, there in zip(box.place, step, strict=True)
        ]
        boxes.append(LaneBox(box.ref, tuple(moved)))
    return PointsView(ref, source.buffer, tuple(boxes), source.inside and held)


def _holds(outer: Refinement, inner: Refinement, origin: Sequence[LaneValue], extents: Extents) -> bool:
    """Whether the view `inner` lies within the view `outer` in all lanes, its first element at `origin` there."""
    for place, dim, room in zip(origin, inner.dims, outer.dims, strict=True):
        low, high = place.bounds(extents)
        if low < 0 or high + dim.size > room.size:
            return False
    return True


def check_bounds(frame: Frame, view: PointsView, verb: str) -> bool:
    """Checks that the element at the origin of `view` lies in all its boxes, in every live lane.

    Returns whether it does so in all lanes, live or not, which makes strided access safe. Raises ExecutionError.
    """
    if view.inside:
        return True
    safe = True
    for box in view.boxes:
        for dim, place in enumerate(box.place):
            low, high = place.bounds(frame.extents)
            if low >= 0 and high < box.ref.dims[dim].size:
                continue
            inside = place.array(frame.extents)
            outside = (inside < 0) | (inside >= box.ref.dims[dim].size)
            if not outside.any():
                continue
            safe = False
            live = outside if frame.mask is None else outside & frame.mask
            if live.any():
                raise _out_of_bounds(frame, view, box, verb, first_lane(live, frame.extents))
    return safe


def _out_of_bounds(
    frame: Frame, view: PointsView, box: LaneBox, verb: str, lane: tuple[int, ...]
) -> ExecutionError:
    element = [place.at(lane) for place in box.place]
    sizes = ", ".join(map(str, box.ref.sizes))
    what = "the allocation" if box.ref.is_alloc else "the view"
    return frame.fault(
        f"{verb} '{view.ref.name}' touches element {element} outside {what} '{box.ref.name}' of sizes ({sizes})",
        lane,
        "make the buffer larger, or leave the point out by a constraint",
    )


def element_text(view: PointsView, lane: tuple[int, ...]) -> str:
    """The element at the origin of a view in one lane, as `'A'[1, 2]` of the allocation."""
    return f"'{view.boxes[-1].ref.name}'{[place.at(lane) for place in view.origin]}"


def element_offsets(frame: Frame, view: PointsView) -> LaneValue:
    """The offset in the buffer's flat array, in elements, of the element at the origin of `view` in each lane."""
    rank = len(frame.extents)
    base = view.buffer.base
    steps = zip(view.origin, view.buffer.strides, strict=True)
    return weighted_sum(0, [(base.widen(rank - len(base.coefficients)), 1), *steps], rank)


def live_lanes(frame: Frame) -> BoolArray:
    """The live lanes, as a mask that broadcasts."""
    return np.ones((1,) * len(frame.extents), np.bool_) if frame.mask is None else frame.mask
