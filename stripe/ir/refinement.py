"""Refinements: views of a buffer of the block outside, or new allocations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from math import prod

from stripe.ir.affine import Affine
from stripe.ir.dtypes import DType
from stripe.ir.frozen import frozen, replace
from stripe.ir.index_map import PhysicalLayout
from stripe.ir.intrinsics import INTRINSICS
from stripe.ir.location import Location
from stripe.ir.printable import Printable
from stripe.ir.tags import REFINEMENT_WORDS, Tags, TagValue, require_field_word


class Direction(Enum):
    """How a block uses a refinement; NONE is an allocation."""

    NONE = "none"
    IN = "in"
    OUT = "out"
    INOUT = "inout"

    reads: bool
    writes: bool

    def __init__(self, word: str) -> None:
        self.reads = word in ("in", "inout")
        self.writes = word in ("out", "inout")


class Role(Enum):
    """The owner of the contents of an allocation of the entry; the value is the word of the text."""

    USER = "user"
    """An input or output: its contents belong to the caller, before and after a run."""
    CONSTANT = "const"
    """Its contents are part of the program."""
    TEMPORARY = "tmp"
    """It lives between the statements that use it."""


class Agg(Enum):
    """The merge of a store with the value of the element. All but ASSIGN are commutative monoids; the value is the name
    of the intrinsic that merges.

    A row: that name, the operator of Tile, whether the same contribution twice counts as one, and the identity (of
    extrema a bound of the dtype).
    """

    ASSIGN = ("assign", "=", True, "none")
    ADD = ("add", "+", False, 0)
    MUL = ("mul", "*", False, 1)
    MIN = ("min", "<", True, "highest")
    MAX = ("max", ">", True, "lowest")

    _value_: str
    symbol: str
    _idempotent: bool
    _neutral: int | str

    def __new__(cls, name: str, symbol: str, idempotent: bool, neutral: int | str) -> Agg:
        member = object.__new__(cls)
        member._value_ = name
        member.symbol, member._idempotent, member._neutral = symbol, idempotent, neutral
        return member

    def identity(self, dtype: DType) -> bool | int | float:
        """The neutral element in `dtype`; raises ValueError for ASSIGN, which has none."""
        match self._neutral:
            case int(value):
                pass
            case "highest":
                value = dtype.max_value
            case "lowest":
                value = dtype.min_value
            case _:
                raise ValueError(f"{self.value} has no identity")
        if dtype.is_float:
            return float(value)
        return bool(value) if dtype.kind == "bool" else value

    def intrinsic(self, dtype: DType) -> str:
        """The name of the intrinsic that merges a contribution into an element: of bools `bit_or` or `bit_and`."""
        if self is Agg.ASSIGN:
            raise ValueError("assign does not merge")
        return INTRINSICS[self.value].on(dtype)

    def takes(self, dtype: DType) -> bool:
        """Whether elements of `dtype` merge: where its intrinsic has that dtype."""
        return self is Agg.ASSIGN or INTRINSICS[self.intrinsic(dtype)].takes(dtype)

    def counts(self, dtype: DType) -> bool:
        """Whether the number of equal contributions matters."""
        return not self._idempotent and dtype.kind != "bool"


@frozen
class Dim:
    """Extent of one dimension of a view and its stride, both in elements."""

    size: int
    stride: int


@frozen
class Refinement(Printable):
    """A view of `source` (a refinement of the block outside), or an allocation when `source` is empty.

    `access` places the origin of the view in the coordinates of the source, one affine per dimension over the indices
    of the block that holds the refinement; `dims` is the box that contains all that is touched through the view, with
    the strides of the allocation. `agg` says how stores that name this refinement merge. `offset` is the byte
    address of an allocation within its location, None before placement; `copies` is the number of instances that lie
    behind each other from there on, for tiles in flight and for units that share a block, and `pitch` the bytes from
    one to the next, None where each begins at the end of the other; `bank_dim` the dimension that runs over the banks
    of a memory. Role, offset, copies and pitch belong to allocations alone, `layout` to tensors of the user: where
    the elements lie that their caller knows by logical coordinates.
    """

    name: str
    dir: Direction
    source: str
    access: tuple[Affine, ...]
    dtype: DType
    dims: tuple[Dim, ...]
    agg: Agg = Agg.ASSIGN
    location: Location = Location()
    offset: int | None = None
    bank_dim: int | None = None
    tags: Tags = Tags()
    role: Role | None = None
    copies: int = 1
    pitch: int | None = None
    layout: PhysicalLayout | None = None

    @staticmethod
    def alloc(
        name: str,
        dtype: DType,
        sizes: tuple[int, ...],
        *,
        agg: Agg = Agg.ASSIGN,
        location: Location = Location(),
        tags: Tags = Tags(),
        role: Role | None = None,
    ) -> Refinement:
        """A new buffer with compact row-major strides, into which stores of its own block merge by `agg`."""
        zeros = (Affine(),) * len(sizes)
        dims = row_major(sizes)
        return Refinement(name, Direction.NONE, "", zeros, dtype, dims, agg, location, tags=tags, role=role)

    @property
    def is_alloc(self) -> bool:
        return self.dir is Direction.NONE

    @property
    def is_kept(self) -> bool:
        """Whether its contents outlive the program: tensors of the user and constants."""
        return self.role in (Role.USER, Role.CONSTANT)

    @property
    def address(self) -> int:
        """The offset of a placed allocation."""
        assert self.offset is not None, f"{self.name} has no address"
        return self.offset

    @property
    def words(self) -> Tags:
        """The words by which passes select: the tags, and those of the text for role, address and copies."""
        words: list[tuple[str, TagValue | None]] = []
        if self.role is not None:
            words.append((self.role.value, None))
        if self.offset is not None:
            words.append(("placed", None))
        if self.copies > 1:
            words.append(("buffers", self.copies))
        if self.pitch is not None:
            words.append(("pitch", self.pitch))
        return Tags.from_pairs([*self.tags.entries, *words]) if words else self.tags

    def with_words(self, words: Tags) -> Refinement:
        """The refinement with the fields and tags that `words` denote; an address of 0 counts with the word `placed`
        alone. ValueError for two roles, and for a word with a wrong value.
        """
        for word in words:
            require_field_word(word, words.get(word))
        roles = [role for role in Role if role.value in words]
        if len(roles) > 1:
            raise ValueError(
                f"'{self.name}' is {' and '.join(f'#{r.value}' for r in roles)}: a tensor has one role"
            )
        offset = self.offset or 0 if "placed" in words else self.offset or None
        copies, pitch = words.get("buffers") or 1, words.get("pitch")
        assert isinstance(copies, int) and (pitch is None or isinstance(pitch, int))
        return replace(
            self,
            tags=words.remove(*REFINEMENT_WORDS),
            role=roles[0] if roles else None,
            offset=offset,
            copies=copies,
            pitch=pitch,
        )

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple([dim.size for dim in self.dims])

    @property
    def is_placed(self) -> bool:
        """Whether memory placement has given the allocation an address in a memory."""
        return self.offset is not None and bool(self.location)

    @property
    def logical_sizes(self) -> tuple[int, ...]:
        """The sizes of the tensor as its caller sees it."""
        return self.sizes if self.layout is None else self.layout.sizes

    @property
    def has_undefined_holes(self) -> bool:
        """Whether the allocation of a tensor of the caller has elements that hold no logical one, and no pad."""
        layout = self.layout
        return layout is not None and layout.pad is None and self.elements > prod(layout.sizes)

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

    @property
    def unit_bytes(self) -> int:
        """Bytes that one copy takes in a unit of its memory: in one bank, where it has banks."""
        if self.bank_dim is None:
            return self.bytes
        dims = tuple(dim for number, dim in enumerate(self.dims) if number != self.bank_dim)
        return replace(self, dims=dims, bank_dim=None).bytes

    @property
    def copy_distance(self) -> int:
        """Bytes from the begin of one copy to that of the next."""
        return self.unit_bytes if self.pitch is None else self.pitch

    @property
    def reserved_bytes(self) -> int:
        """Bytes from its address on that all its copies take in a unit of its memory."""
        return self.copy_distance * self.copies

    def moved(self, by: Iterable[Affine | int]) -> Refinement:
        """The same box with its origin moved, by one distance in elements for each dimension."""
        access = tuple([affine + distance for affine, distance in zip(self.access, by, strict=True)])
        return replace(self, access=access)

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
