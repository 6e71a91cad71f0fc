"""Buffers: the storage of one allocation, for all lanes of the block that holds it, and selections of its elements.

A buffer is one flat array. `base` gives where each lane's copy begins, `strides` how coordinates lead on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.exec.arith import Array
from stripe.exec.lanes import Extents, IntArray, LaneValue
from stripe.exec.layout import strided
from stripe.ir import Refinement

Stamps: TypeAlias = npt.NDArray[np.int32]
INITIAL = 1
"""The stamp of elements that came with their value. 0 is undefined; statements that assign have numbers above."""


@dataclass(frozen=True, slots=True)
class Strided:
    """The elements at start + sum of step * position, one per lane; steps are 0 on the axes that do not matter."""

    start: int
    steps: tuple[int, ...]
    shape: Extents

    def view(self, flat: Array) -> Array:
        """The elements of `flat` without copying. The caller has made sure that they exist."""
        return strided(flat, self.start, self.shape, self.steps)

    def read(self, flat: Array) -> Array:
        return self.view(flat)

    def write(self, flat: Array, values: Array) -> None:
        self.view(flat)[...] = values


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """The elements at the given positions."""

    positions: IntArray

    def read(self, flat: Array) -> Array:
        return flat[self.positions]

    def write(self, flat: Array, values: Array) -> None:
        flat[self.positions] = values


Selection: TypeAlias = Strided | Gathered


class RunBuffer:
    """The storage of the allocation `ref`.

    `stamps` has one number per element: the assignment that wrote it last, 0 for none. It is None
    where nothing is checked.
    """

    def __init__(
        self, ref: Refinement, data: Array, base: LaneValue, stamps: Stamps | None, defined: bool
    ) -> None:
        self.ref = ref
        self.data = data
        self.base = base
        self.strides = ref.strides
        self.stamps = stamps
        self.defined = defined

    def undefined(self, selection: Selection) -> npt.NDArray[np.bool_] | None:
        """Where selected elements have no value that may be read; None when all have."""
        if self.defined or self.stamps is None:
            return None
        missing = selection.read(self.stamps) == 0
        return missing if missing.any() else None

    def assigned_by(self, selection: Selection, writer: int) -> npt.NDArray[np.bool_] | None:
        """Where the statement `writer` has assigned selected elements before; None when nowhere."""
        if self.stamps is None:
            return None
        again = selection.read(self.stamps) == writer
        return again if again.any() else None

    def mark(self, selection: Selection, writer: int, where: npt.NDArray[np.bool_] | None = None) -> None:
        """Notes that `writer` assigned the selected elements (a strided selection: those `where` it is true)."""
        if self.stamps is None:
            return
        if isinstance(selection, Strided) and where is not None:
            np.copyto(selection.view(self.stamps), np.int32(writer), where=where)
        else:
            selection.write(self.stamps, np.asarray(writer, np.int32))

    def touch(self) -> None:
        """Called before each access, for storage that comes into being with its first use."""

    @property
    def whole(self) -> Strided:
        """All elements in logical shape, of the first lane."""
        return Strided(self.base.offset, self.strides, self.ref.sizes)

    @property
    def why_undefined(self) -> str:
        """How an element of this buffer can be undefined, as a relative clause."""
        return "which is unwritten"
