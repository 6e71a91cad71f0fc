"""Buffers: the storage of one allocation, for all lanes of the block that holds it, and selections of its elements.

A buffer is one flat array. `base` gives where each lane's copy begins, `strides` how coordinates lead on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.exec.arith import Array
from stripe.exec.lanes import Extents, IntArray, LaneValue
from stripe.exec.layout import strided
from stripe.ir import Refinement, Role

Stamps: TypeAlias = npt.NDArray[np.int32]
Owners: TypeAlias = npt.NDArray[np.int64]
Marks: TypeAlias = Stamps | Owners
INITIAL = 1
"""The number of elements that came with their value, or were merged into. 0 is unwritten; statements that assign have
numbers above."""


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

    `stamps` has one number per element: the assignment that wrote it last, `INITIAL` for contents that it came with or
    merges, 0 for none. It is None where nothing is checked.
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
        self.output = ref.role is Role.USER
        """Whether the buffer may be an output, of which each element is written."""
        self.unmarked = 0
        """The number of an element that nothing has written; those of writers count on from there."""

    def planes(self) -> Sequence[Marks]:
        """The numbers of the elements' first bytes, and where they are kept apart those of further ones."""
        return [] if self.stamps is None else [self.stamps]

    def undefined(self, selection: Selection) -> npt.NDArray[np.bool_] | None:
        """Where selected elements have no value that may be read; None when all have."""
        if self.defined or self.stamps is None:
            return None
        missing = selection.read(self.stamps) == 0
        return missing if missing.any() else None

    def unwritten(self) -> npt.NDArray[np.bool_] | None:
        """Where elements hold nothing, or the identity that they began with; None when all were written."""
        missing = self.undefined(self.whole)
        for plane in self.planes():
            bare = self.whole.read(plane) == self.unmarked
            missing = bare if missing is None else missing | bare
        return missing if missing is not None and missing.any() else None

    def assigned_by(self, selection: Selection, writer: int) -> npt.NDArray[np.bool_] | None:
        """Where the statement `writer` has assigned selected elements before; None when nowhere."""
        planes = self.planes()
        if not planes:
            return None
        again = selection.read(planes[0]) == self.unmarked + writer
        return again if again.any() else None

    def mark(self, selection: Selection, writer: int, where: npt.NDArray[np.bool_] | None = None) -> None:
        """Notes that `writer` assigned the selected elements (a strided selection: those `where` it is true)."""
        number = self.unmarked + writer
        for plane in self.planes():
            if isinstance(selection, Strided) and where is not None:
                np.copyto(selection.view(plane), np.asarray(number, plane.dtype), where=where)
            else:
                selection.write(plane, np.asarray(number, plane.dtype))

    def mark_merged(self, selection: Selection, where: npt.NDArray[np.bool_] | None = None) -> None:
        """Notes that selected elements of an output were merged into, which an assignment before outlasts."""
        for plane in self.planes() if self.output else ():
            written = np.maximum(selection.read(plane), np.asarray(self.unmarked + INITIAL, plane.dtype))
            if isinstance(selection, Strided) and where is not None:
                np.copyto(selection.view(plane), written, where=where)
            else:
                selection.write(plane, written)

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
