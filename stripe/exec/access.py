"""Loads and stores of one element per lane."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from stripe.exec.arith import Array, aggregation
from stripe.exec.frame import Frame, PointsView, check_bounds, element_offsets, element_text, live_lanes
from stripe.exec.lanes import BoolArray, Extents, IntArray, LaneValue, first_lane
from stripe.exec.storage import Gathered, Selection, Strided
from stripe.ir import Agg


def load(frame: Frame, view: PointsView, *, keep: bool) -> Array:
    """The element at the origin of `view` in every lane, with extent 1 on axes that it does not depend on.

    Dead lanes get some value. With `keep` the result stays as it is when the buffer is written later.
    """
    view.buffer.touch()
    safe = check_bounds(frame, view, "load of")
    place = element_offsets(frame, view)
    selection: Selection
    if safe and place.extra is None:
        selection = _strided(place, frame.extents)
    else:
        positions = place.array(frame.extents)
        if not safe:
            positions = np.where(_shrink(live_lanes(frame), positions.shape), positions, 0)
        selection = Gathered(positions)
    missing = view.buffer.undefined(selection)
    if missing is not None:
        undefined = missing if frame.mask is None else missing & frame.mask
        if undefined.any():
            lane = first_lane(undefined, frame.extents)
            why = f"reads {element_text(view, lane)}, {view.buffer.why_undefined}"
            raise frame.fault(f"load of '{view.ref.name}' {why},", lane)
    data = selection.read(view.buffer.data)
    return data.copy() if keep and isinstance(selection, Strided) else data


def _strided(place: LaneValue, extents: Extents) -> Strided:
    steps = place.coefficients
    shape = tuple(extent if step else 1 for extent, step in zip(extents, steps, strict=True))
    return Strided(place.offset, steps, shape)


def _shrink(mask: BoolArray, shape: Extents) -> BoolArray:
    """`mask` made small: on axes where `shape` has extent 1, whether any lane is live."""
    axes = tuple(axis for axis, extent in enumerate(shape) if extent == 1 and mask.shape[axis] > 1)
    return np.logical_or.reduce(mask, axis=axes, keepdims=True) if axes else mask


def store(frame: Frame, view: PointsView, value: Array, writer: int) -> None:
    """Merges `value` into the element at the origin of `view` in every live lane, by the view's aggregation.

    `writer` is the number of the statement, for the check that it assigns each element once.
    """
    view.buffer.touch()
    safe = check_bounds(frame, view, "store to")
    place = element_offsets(frame, view)
    if view.ref.agg is Agg.ASSIGN:
        _assign(frame, view, place, value, writer, safe)
    else:
        _merge(frame, view, place, value, safe)


def _merge(frame: Frame, view: PointsView, place: LaneValue, value: Array, safe: bool) -> None:
    """Reduces over the axes on which the address does not depend, then merges the rest into memory."""
    agg, dtype = view.ref.agg, view.ref.dtype
    ufunc = aggregation(agg, dtype)
    # -0.0 leaves a sum of floats as it is, its sign included
    zero = -0.0 if agg is Agg.ADD and dtype.is_float else agg.identity(dtype)
    neutral = np.asarray(zero, value.dtype)
    mask = frame.mask
    if mask is not None:
        value = np.where(mask, value, neutral)
    free = tuple(a for a, n in enumerate(frame.extents) if n > 1 and not place.depends_on(a))
    if free:
        shape = tuple(frame.extents[a] if a in free else n for a, n in enumerate(value.shape))
        value = ufunc.reduce(
            np.broadcast_to(value, shape), axis=free, keepdims=True, dtype=value.dtype, initial=neutral[()]
        )
        mask = None if mask is None else _shrink(mask, value.shape)
    bound = tuple(a for a, n in enumerate(frame.extents) if n > 1 and a not in free)
    if safe and place.distinct(bound, frame.extents):
        # Dead lanes bring the identity, and their addresses are elements, each of one lane: they change nothing.
        selection = _strided(place, frame.extents)
        _check_merged(frame, view, selection, mask)
        target = selection.view(view.buffer.data)
        ufunc(target, value, out=target)
        return
    positions, values, _ = _live(place, value, mask, frame.extents, free)
    chosen = Gathered(positions)
    _check_merged(frame, view, chosen, None)
    if place.distinct(bound, frame.extents):
        chosen.write(view.buffer.data, ufunc(chosen.read(view.buffer.data), values))
    else:
        ufunc.at(view.buffer.data, positions, values)


def _check_merged(frame: Frame, view: PointsView, selection: Selection, mask: BoolArray | None) -> None:
    """An allocation that is merged into starts defined; only memory that another buffer took can be undefined here, and
    a hole of a layout without a pad."""
    missing = view.buffer.undefined(selection)
    if missing is None:
        return
    if mask is not None:
        missing = missing & mask
    if missing.any():
        lane = (
            first_lane(missing, frame.extents)
            if missing.ndim == len(frame.extents)
            else (0,) * len(frame.extents)
        )
        layout = view.buffer.ref.layout
        where = "memory that another buffer has taken," if layout is None else "a hole without a pad,"
        raise frame.fault(f"store to '{view.ref.name}' merges into {where}", lane)


def _live(
    place: LaneValue, value: Array, mask: BoolArray | None, extents: Extents, free: tuple[int, ...]
) -> tuple[IntArray, Array, BoolArray]:
    """Positions and values of the live lanes, flat, without the axes `free`; and which lanes those are."""
    shape = tuple(1 if axis in free else extent for axis, extent in enumerate(extents))
    live = np.broadcast_to(np.ones((), np.bool_) if mask is None else mask, shape)
    return np.broadcast_to(place.array(extents), shape)[live], np.broadcast_to(value, shape)[live], live


def _assign(frame: Frame, view: PointsView, place: LaneValue, value: Array, writer: int, safe: bool) -> None:
    buffer, extents = view.buffer, frame.extents
    axes = tuple(axis for axis, extent in enumerate(extents) if extent > 1)
    if safe and place.distinct(axes, extents):
        selection = _strided(place, extents)
        again = buffer.assigned_by(selection, writer)
        if again is not None:
            live = again if frame.mask is None else again & frame.mask
            if live.any():
                _collide(frame, view, first_lane(live, extents))
        if frame.mask is None:
            selection.write(buffer.data, value)
        else:
            np.copyto(selection.view(buffer.data), value, where=frame.mask)
        buffer.mark(selection, writer, frame.mask)
        return
    positions, values, live = _live(place, value, frame.mask, extents, ())
    if buffer.stamps is not None and np.unique(positions).size < positions.size:
        order = np.argsort(positions, kind="stable")
        repeated = np.flatnonzero(np.diff(positions[order]) == 0)
        _collide(frame, view, _lane_of(live, int(order[repeated + 1].min())))
    chosen = Gathered(positions)
    again = buffer.assigned_by(chosen, writer)
    if again is not None:
        _collide(frame, view, _lane_of(live, int(np.argmax(again))))
    chosen.write(buffer.data, values)
    buffer.mark(chosen, writer)


def _lane_of(live: BoolArray, number: int) -> tuple[int, ...]:
    """The live lane number `number`."""
    flat = np.flatnonzero(live)
    return tuple(int(p) for p in np.unravel_index(int(flat[number]), live.shape)) if live.shape else ()


def _collide(frame: Frame, view: PointsView, lane: tuple[int, ...]) -> NoReturn:
    raise frame.fault(
        f"store to '{view.ref.name}' assigns {element_text(view, lane)}, which another point has assigned,",
        lane,
        "aggregate with :add or another, or write each element once",
    )
