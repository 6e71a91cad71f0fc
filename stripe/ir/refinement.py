"""Refinements: views of a buffer of the block outside, or new allocations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from stripe.ir.affine import Affine
from stripe.ir.dtypes import DType
from stripe.ir.location import Location
from stripe.ir.tags import Tags


class Direction(Enum):
    """How a block uses a refinement; NONE is an allocation."""

    NONE = "none"
    IN = "in"
    OUT = "out"
    INOUT = "inout"

    @property
    def reads(self) -> bool:
        return self in (Direction.IN, Direction.INOUT)

    @property
    def writes(self) -> bool:
        return self in (Direction.OUT, Direction.INOUT)


class Agg(Enum):
    """How a store merges with what the element holds. All but ASSIGN are commutative monoids."""

    ASSIGN = "assign"
    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"

    def identity(self, dtype: DType) -> bool | int | float:
        """The neutral element in `dtype`; raises ValueError for ASSIGN, which has none."""
        if self is Agg.ASSIGN:
            raise ValueError("assign has no identity")
        values: dict[Agg, int | float] = {
            Agg.ADD: 0, Agg.MUL: 1, Agg.MIN: dtype.max_value, Agg.MAX: dtype.min_value,
        }  # fmt: skip
        value = values[self]
        if dtype.is_float:
            return float(value)
        return bool(value) if dtype.kind == "bool" else value


@dataclass(frozen=True, slots=True)
class Dim:
    """Extent of one dimension of a view and its stride, both in elements."""

    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class Refinement:
    """A view of `source` (a refinement of the block outside), or an allocation when `source` is empty.

    `access` places the origin of the view in the coordinates of the source, one affine per dimension over the indices
    of the block that holds the refinement; `dims` is the box that contains all that is touched through the view, with
    the strides of the allocation. `agg` says how stores that name this refinement merge. `offset` is the byte
    address of an allocation within its location; `bank_dim` the dimension that runs over the banks of a memory.
    """

    name: str
    dir: Direction
    source: str
    access: tuple[Affine, ...]
    dtype: DType
    dims: tuple[Dim, ...]
    agg: Agg = Agg.ASSIGN
    location: Location = Location()
    offset: int = 0
    bank_dim: int | None = None
    tags: Tags = Tags()

    @staticmethod
    def alloc(
        name: str,
        dtype: DType,
        sizes: tuple[int, ...],
        *,
        location: Location = Location(),
        tags: Tags = Tags(),
    ) -> Refinement:
        """A new buffer with compact row-major strides."""
        zeros = (Affine(),) * len(sizes)
        dims = row_major(sizes)
        return Refinement(name, Direction.NONE, "", zeros, dtype, dims, location=location, tags=tags)

    @property
    def is_alloc(self) -> bool:
        return self.dir is Direction.NONE

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple([dim.size for dim in self.dims])

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple([dim.stride for dim in self.dims])

    @property
    def elements(self) -> int:
        """Number of elements of the box."""
        count = 1
        for dim in self.dims:
            count *= dim.size
        return count

    @property
    def span(self) -> int:
        """Number of elements from the first to the last of the box in memory, gaps included; 0 for an empty one."""
        if self.elements == 0:
            return 0
        return 1 + sum((dim.size - 1) * abs(dim.stride) for dim in self.dims)

    @property
    def bytes(self) -> int:
        """Bytes from the first to the last element of the box, gaps included."""
        return self.span * self.dtype.bytes

    def with_strides(self, strides: Sequence[int]) -> Refinement:
        """The same box with other strides, in elements, one for each dimension; the same object when they are the
        same."""
        if tuple(strides) == self.strides:
            return self
        dims = tuple(Dim(dim.size, stride) for dim, stride in zip(self.dims, strides, strict=True))
        return replace(self, dims=dims)


def row_major(sizes: tuple[int, ...]) -> tuple[Dim, ...]:
    """Dimensions with compact strides, the last one contiguous."""
    return tuple(map(Dim, sizes, compact_strides(sizes, range(len(sizes)))))


def compact_strides(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides of a buffer without gaps whose dimensions lie in memory in `order`, the outermost first."""
    strides = [0] * len(sizes)
    stride = 1
    for dim in reversed(order):
        strides[dim] = stride
        stride *= max(sizes[dim], 1)
    return tuple(strides)
