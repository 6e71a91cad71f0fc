"""The specials on whole arrays, exactly as `stripe.ir.intrinsics` defines them, and running them in every lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from stripe.exec.arith import Array
from stripe.exec.frame import Frame, PointsView, element_offsets
from stripe.exec.storage import Strided
from stripe.ir import Special


def gather(outputs: list[Array], inputs: list[Array]) -> None:
    """O[i..., j...] = D[clamp(I[i...]), j...]."""
    (out,), (data, index) = outputs, inputs
    if out.shape != index.shape + data.shape[1:]:
        raise ValueError(
            f"gather of {data.shape} at {index.shape} gives {index.shape + data.shape[1:]}, not {out.shape}"
        )
    out[...] = data[np.clip(_signed(index), 0, data.shape[0] - 1)]


def scatter(outputs: list[Array], inputs: list[Array]) -> None:
    """O[I[i...], j...] += E[i..., j...] from zero; indices outside are dropped."""
    (out,), (updates, index, _) = outputs, inputs
    if updates.shape != index.shape + out.shape[1:]:
        raise ValueError(
            f"scatter into {out.shape} at {index.shape} takes {index.shape + out.shape[1:]}, not {updates.shape}"
        )
    where = _signed(index)
    inside = (where >= 0) & (where < out.shape[0])
    total = np.zeros(out.shape, out.dtype)  # the output's own memory may be strided, or an input
    add = np.logical_or if out.dtype == np.bool_ else np.add
    add.at(total, where[inside], updates[inside])
    out[...] = total


def _signed(index: Array) -> Array:
    """Indices as i64, u64 beyond it as its highest."""
    if index.dtype == np.uint64:
        index = np.minimum(index, np.asarray(np.iinfo(np.int64).max, np.uint64))
    return index.astype(np.int64)


def prng_step(outputs: list[Array], inputs: list[Array]) -> None:
    """Uniform fp32 numbers and the state after them."""
    (state_out, value), (state,) = outputs, inputs
    if state.ndim != 2 or state.shape[0] != 3 or state_out.shape != state.shape:
        raise ValueError(f"a generator's state is u32[3, columns], not {state.shape} and {state_out.shape}")
    s1, s2, s3 = (row.copy() for row in state)
    flat = np.empty(value.size, np.float32)
    for start in range(0, value.size, s1.size):
        now = slice(0, min(s1.size, value.size - start))  # the last round may leave columns as they are
        a, b, c = s1[now], s2[now], s3[now]
        s1[now] = ((a & np.uint32(4294967294)) << np.uint32(12)) ^ (
            ((a << np.uint32(13)) ^ a) >> np.uint32(19)
        )
        s2[now] = ((b & np.uint32(4294967288)) << np.uint32(4)) ^ (((b << np.uint32(2)) ^ b) >> np.uint32(25))
        s3[now] = ((c & np.uint32(4294967280)) << np.uint32(17)) ^ (
            ((c << np.uint32(3)) ^ c) >> np.uint32(11)
        )
        bits = s1[now] ^ s2[now] ^ s3[now]
        flat[start : start + bits.size] = bits.astype(np.float32) * np.float32(2.0**-32)
    state_out[...] = np.stack([s1, s2, s3])
    value[...] = flat.reshape(value.shape)


_SPECIALS: Mapping[str, Callable[[list[Array], list[Array]], None]] = {
    "gather": gather, "scatter": scatter, "prng_step": prng_step,
}  # fmt: skip


def run_special(frame: Frame, statement: Special, writer: int) -> None:
    """Runs the special once in every live lane, one after the other."""
    outputs = [frame.views[name] for name in statement.outputs]
    inputs = [frame.views[name] for name in statement.inputs]
    live = np.broadcast_to(np.ones((), np.bool_) if frame.mask is None else frame.mask, frame.extents)
    for lane in np.ndindex(*frame.extents):
        if not live[lane]:
            continue
        sources = [_whole(frame, view, lane, None).copy() for view in inputs]
        targets = [_whole(frame, view, lane, writer) for view in outputs]
        try:
            _SPECIALS[statement.op](targets, sources)
        except ValueError as error:
            raise frame.fault(f"{statement.op}: {error},", lane) from None


def _whole(frame: Frame, view: PointsView, lane: tuple[int, ...], writer: int | None) -> Array:
    """The elements of `view` in one lane: checked to be readable, or marked as assigned by `writer`."""
    view.buffer.touch()
    verb = "special reads" if writer is None else "special writes"
    for box in view.boxes:
        for place, dim, size in zip(box.place, box.ref.dims, view.ref.sizes, strict=True):
            start = place.at(lane)
            if start < 0 or start + size > dim.size:
                raise frame.fault(f"{verb} '{view.ref.name}', which reaches out of '{box.ref.name}',", lane)
    selection = Strided(element_offsets(frame, view).at(lane), view.buffer.strides, view.ref.sizes)
    if writer is None:
        if view.buffer.undefined(selection) is not None:
            why = view.buffer.why_undefined
            raise frame.fault(f"{verb} elements of '{view.ref.name}', {why},", lane)
    else:
        if view.buffer.assigned_by(selection, writer) is not None:
            raise frame.fault(f"{verb} '{view.ref.name}', which another point has written,", lane)
        view.buffer.mark(selection, writer)
    return selection.view(view.buffer.data)
