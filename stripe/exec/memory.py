"""The memory of a run: makes the buffers of its allocations."""

from __future__ import annotations

import os

import numpy as np

from stripe.exec.arith import Array
from stripe.exec.errors import ExecutionError
from stripe.exec.frame import Frame
from stripe.exec.lanes import lane_count, lane_numbers
from stripe.exec.layout import element_view, holes, to_flat
from stripe.exec.storage import INITIAL, RunBuffer, Stamps
from stripe.ir import Agg, Block, Refinement, aggregations


class Memory:
    """Makes the buffers of a run. This one gives every allocation memory of its own, one copy per lane."""

    def __init__(self, *, checks: bool) -> None:
        self.checks = checks

    def serial(self, block: Block) -> bool:
        """Whether the points of `block` must run one by one, because its allocations have one place in memory."""
        del block
        return False

    def allocate(self, frame: Frame, ref: Refinement, agg: Agg, initial: Array | None) -> RunBuffer:
        """A new buffer for each lane of `frame`, which holds `initial` (then there is one lane), or the identity of
        `agg`, or nothing that may be read when that is assign. Raises ExecutionError when there is not enough memory.
        """
        if initial is not None:
            data = to_flat(ref, initial)
        else:
            data = _new_memory(frame, ref, agg)
        layout = ref.layout if initial is not None else None
        has_holes = layout is not None and layout.pad is None
        defined = (initial is not None or agg is not Agg.ASSIGN) and not has_holes
        stamps: Stamps | None = None
        if self.checks and (not defined or _may_assign(frame, ref)):
            stamps = np.full(data.size, INITIAL if defined or has_holes else 0, np.int32)
            if layout is not None and has_holes:
                element_view(ref, stamps)[holes(ref.sizes, layout)] = 0
        return RunBuffer(ref, data, lane_numbers(frame.extents, ref.span), stamps, defined)


def _new_memory(frame: Frame, ref: Refinement, agg: Agg) -> Array:
    count = lane_count(frame.extents) * ref.span
    size = count * ref.dtype.bytes
    if size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise ExecutionError(
            f"the buffer '{ref.name}' takes {size} bytes, more than the memory of this machine",
            where=frame.where,
        )
    dtype = ref.dtype.numpy()
    if agg is Agg.ASSIGN:
        return np.zeros(count, dtype)
    return np.full(count, agg.identity(ref.dtype), dtype)


def _may_assign(frame: Frame, ref: Refinement) -> bool:
    """Whether a statement assigns elements of the allocation: then its stamps are needed."""
    return Agg.ASSIGN in aggregations(frame.block, (ref.name,)).get(ref.name, ())
