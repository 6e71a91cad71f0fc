"""Placed programs: allocations that live at an address of a memory, so that overlapping placement has its effect.

A memory is one array of bytes per path of device names. The unit numbers of its location, of all devices in order,
count its units in row-major order; each unit is as large as the fullest. An allocation begins at its `offset` in the
unit that its location names. With a `bank_dim`, the coordinate in that dimension counts on from there in units, and the
other dimensions lie in each unit at their strides.

Every grain, which is the size of the memory's smallest elements, knows which allocation wrote it last, and by which
statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.exec.arith import Array
from stripe.exec.errors import ExecutionError
from stripe.exec.frame import Frame
from stripe.exec.lanes import LaneValue, evaluate
from stripe.exec.layout import element_view, holes, to_flat
from stripe.exec.memory import Memory
from stripe.exec.storage import INITIAL, Gathered, RunBuffer, Selection
from stripe.ir import Affine, Agg, Block, Location, Nest, Program, Refinement, nest_at, walk

Owners: TypeAlias = npt.NDArray[np.int64]
_WRITERS = 1 << 32
"""An owner is the number of the allocation times this, plus the number of the statement."""
_ALIGNMENT = 64


@dataclass(slots=True, eq=False)
class Arena:
    """The bytes of one memory and their owners; `capacity` bytes per unit, and the number of units along each axis."""

    capacity: int = 0
    grain: int = _ALIGNMENT
    axes: list[int] = field(default_factory=lambda: [1])
    content: npt.NDArray[np.uint8] | None = None
    owners: Owners | None = None

    def open(self, *, checks: bool) -> tuple[npt.NDArray[np.uint8], Owners | None]:
        """The bytes and owners, made on first use, when the size is known."""
        if self.content is None:
            self.content = np.zeros(self.capacity * prod(self.axes), np.uint8)
            self.owners = np.zeros(self.content.size // self.grain, np.int64) if checks else None
        return self.content, self.owners

    def reserve(self, ref: Refinement, nest: Nest | None) -> None:
        """Makes the memory large enough for `ref` wherever its location may lie; `nest` has the indices in it."""
        in_unit, banks = ref, 1
        if ref.bank_dim is not None:
            banks = ref.dims[ref.bank_dim].size
            in_unit = replace(ref, dims=tuple(dim for d, dim in enumerate(ref.dims) if d != ref.bank_dim))
        self.grain = min(self.grain, ref.dtype.bytes)
        end = ref.address + in_unit.bytes
        self.capacity = max(self.capacity, -(-end // _ALIGNMENT) * _ALIGNMENT)
        units = _units(ref.location)
        if nest is None:
            bounds = [(unit.offset, unit.offset) for unit in units] or [(0, 0)]
        else:
            bounds = [nest.domain.reach(unit.subs(nest.local)) for unit in units]
        if any(low < 0 for low, _ in bounds):
            raise ExecutionError(f"the location {ref.location} of '{ref.name}' has units below 0")
        last = [high for _, high in bounds]
        last[-1] += banks - 1
        self.axes += [1] * (len(last) - len(self.axes))
        for axis, number in enumerate(last):
            self.axes[axis] = max(self.axes[axis], number + 1)

    def unit(self, numbers: list[int]) -> int:
        """The position of a unit among all; missing numbers are 0."""
        position = 0
        for extent, number in zip_longest(self.axes, numbers, fillvalue=0):
            position = position * extent + number
        return position


class PlacedBuffer(RunBuffer):
    """An allocation in an arena. Its contents come into being with the first access, when its live range begins."""

    def __init__(
        self, ref: Refinement, arena: Arena, unit: int, number: int, agg: Agg, *, checks: bool
    ) -> None:
        content, owners = arena.open(checks=checks)
        size = ref.dtype.bytes
        start = (unit * arena.capacity + ref.address) // size
        super().__init__(ref, content.view(ref.dtype.numpy()), LaneValue(start), None, agg is not Agg.ASSIGN)
        # The owners of the first, second, ... grain of all elements of the arena.
        grains = size // arena.grain
        self._planes = [] if owners is None else [owners[n::grains] for n in range(grains)]
        self.number = number
        self.agg = agg
        self.started = False
        if ref.bank_dim is not None:
            strides = list(ref.strides)
            strides[ref.bank_dim] = arena.capacity // size
            self.strides = tuple(strides)

    def start(self, initial: Array | None) -> None:
        """Fills the allocation with its first values."""
        self.started = True
        if initial is None and self.agg is Agg.ASSIGN:
            return
        value = np.asarray(self.agg.identity(self.ref.dtype) if initial is None else initial)
        self.whole.write(self.data, value.astype(self.ref.dtype.numpy()))
        self.mark(self.whole, INITIAL)
        if initial is not None and self.ref.has_undefined_holes and self.ref.layout is not None:
            for plane in self._planes:
                self.whole.view(plane)[holes(self.ref.sizes, self.ref.layout)] = 0

    def touch(self) -> None:
        if not self.started:
            self.start(None)

    def undefined(self, selection: Selection) -> npt.NDArray[np.bool_] | None:
        # where a part of the selected elements was last written by another allocation than this
        missing: npt.NDArray[np.bool_] | None = None
        for plane in self._planes:
            other = selection.read(plane) // _WRITERS != self.number
            missing = other if missing is None else missing | other
        return missing if missing is not None and missing.any() else None

    def assigned_by(self, selection: Selection, writer: int) -> npt.NDArray[np.bool_] | None:
        if not self._planes:
            return None
        again = selection.read(self._planes[0]) == self.number * _WRITERS + writer
        return again if again.any() else None

    def mark(self, selection: Selection, writer: int, where: npt.NDArray[np.bool_] | None = None) -> None:
        owner = np.asarray(self.number * _WRITERS + writer, np.int64)
        for plane in self._planes:
            if isinstance(selection, Gathered) or where is None:
                selection.write(plane, owner)
            else:
                np.copyto(selection.view(plane), owner, where=where)

    @property
    def why_undefined(self) -> str:
        return f"which is unwritten, or overwritten through another buffer in {self.ref.location}"


class ArenaMemory(Memory):
    """Puts allocations that have a place there, and gives the others memory of their own."""

    def __init__(self, program: Program, *, checks: bool) -> None:
        super().__init__(checks=checks)
        self.arenas: dict[str, Arena] = {}
        self.allocations = 0
        for path, block in walk(program.entry):
            for ref in (ref for ref in block.allocs if ref.is_placed):
                nest = nest_at(program.entry, path) if ref.location.names() else None
                self.arenas.setdefault(_memory(ref.location), Arena()).reserve(ref, nest)

    def serial(self, block: Block) -> bool:
        return any(ref.is_placed for ref in block.allocs)

    def allocate(self, frame: Frame, ref: Refinement, agg: Agg, initial: Array | None) -> RunBuffer:
        if not ref.is_placed:
            return super().allocate(frame, ref, agg, initial)
        arena = self.arenas[_memory(ref.location)]
        # One lane, as the block runs serially: a value is its offset.
        units = [evaluate(unit, frame.values, frame.extents).at(()) for unit in _units(ref.location)]
        self.allocations += 1
        buffer = PlacedBuffer(ref, arena, arena.unit(units), self.allocations, agg, checks=self.checks)
        if initial is not None:
            buffer.start(element_view(ref, to_flat(ref, initial)))
        return buffer


def _memory(location: Location) -> str:
    """The path of device names, which tells memories apart."""
    return "/".join(device.name for device in location.devices)


def _units(location: Location) -> tuple[Affine, ...]:
    """The unit numbers of all devices in order."""
    return tuple(unit for device in location.devices for unit in device.units)
