"""The names, indices and buffers that are visible at a place of the emitted code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

from stripe.ir import Affine, Block, DType, Interval, Refinement, is_dense, linearized

ALL_LOCAL_BYTES = 1 << 17
"""All local arrays of a function and of those that it calls: small against the stack of any thread."""


@dataclass(slots=True)
class Stack:
    """The stack of a function that `caller` calls: the bytes of its local arrays and the most of a function that it has
    called. Arrays of blocks beside each other share no bytes: clang -O0 never lets them, and gcc 12 may not, for it
    loses stores where they do (bugs 109925 and 111422).
    """

    caller: Stack | None = None
    arrays: int = 0
    called: int = 0

    def take(self, size: int) -> bool:
        """Whether an array of so many bytes fits beside all others, which takes them."""
        around, each = 0, self.caller
        while each:
            around, each = around + each.arrays, each.caller
        if around + self.arrays + size + self.called > ALL_LOCAL_BYTES:
            return False
        self.arrays += size
        inner = self
        while outer := inner.caller:
            outer.called = max(outer.called, inner.arrays + inner.called)
            inner = outer
        return True


class Names:
    """The identifiers that are visible at a place, so that nothing shadows anything. `spell` makes an identifier of the
    language of any text.
    """

    def __init__(self, spell: Callable[[str], str], taken: Iterable[str] = ()) -> None:
        self._spell = spell
        self._taken = set(taken)

    def child(self) -> Names:
        """A copy for an inner scope: a name taken there stays free outside."""
        return Names(self._spell, self._taken)

    def __contains__(self, name: object) -> bool:
        return name in self._taken

    def take(self, wanted: str) -> str:
        """A free identifier like `wanted`, taken from now on."""
        base = self._spell(wanted)
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}{'' if base.endswith('_') else '_'}{number}"
        self._taken.add(name)
        return name


@dataclass(frozen=True, slots=True, eq=False)
class Pointer:
    """A pointer or array and the elements that it reaches. `arena`: the name of an arena, and first and last byte.
    `registers`: there is no memory, and variables hold the elements; their names by first element and lanes. `is_raw`:
    at other times its bytes hold elements of other dtypes.
    """

    name: str
    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    arena: tuple[str, int, int] | None = None
    registers: Mapping[tuple[int, int], str] | None = None
    is_raw: bool = False

    @staticmethod
    def of(name: str, ref: Refinement) -> Pointer:
        """The memory of the allocation `ref`."""
        return Pointer(name, ref.dtype, ref.sizes, ref.strides)

    @property
    def elements(self) -> int:
        """Number of elements of the box."""
        return prod(self.sizes)

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie without gaps."""
        return is_dense(self.sizes, self.strides)

    def may_alias(self, other: Pointer) -> bool:
        """Whether two may share bytes."""
        if self is other:
            return True
        if self.arena is None or other.arena is None or self.arena[0] != other.arena[0]:
            return False
        return self.arena[1] < other.arena[2] and other.arena[1] < self.arena[2]

    def whole(self) -> Area:
        """All of it. With negative strides the origin lies above the lowest element, where the pointer points."""
        dims = zip(self.sizes, self.strides, strict=True)
        lowest = sum((size - 1) * -stride for size, stride in dims if stride < 0)
        return Area(self, Affine(lowest), self.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """A refinement: a box of the elements of a pointer, whose first element is an affine over variables."""

    pointer: Pointer
    origin: Affine
    sizes: tuple[int, ...]

    def at(self, coordinates: Iterable[Affine]) -> Affine:
        """The element of the memory at `coordinates` of the area."""
        return self.origin + linearized(coordinates, self.pointer.strides)

    def stays_inside(self, intervals: Mapping[str, Interval]) -> bool:
        """Whether the first element is one of the buffer's own wherever the variables are: no byte of a gap, nor of
        what lies behind the buffer.
        """
        low, high = self.origin.bounds(intervals)
        return low >= 0 and high < self.pointer.elements and self.pointer.is_dense


Fill: TypeAlias = tuple[Area, bool | int | float]
"""An area and the value of all its elements."""


@dataclass(slots=True)
class CodeScope:
    """The inside of a block: its indices as affines over variables, and its refinements as areas.

    `pending` has the areas in arenas that still get their first value, before the first use: until then their bytes
    may be another buffer's. `fresh` has the variables of buffers in registers that nothing has touched. Inner scopes
    share both. `workspace` bytes of the workspace are taken outside; `private`: a
    parallel loop is around, so that the workspace is the thread's own.
    """

    names: Names
    intervals: Mapping[str, Interval] = field(default_factory=dict[str, Interval])
    indices: dict[str, Affine] = field(default_factory=dict[str, Affine])
    areas: dict[str, Area] = field(default_factory=dict[str, Area])
    pending: dict[str, Fill] = field(default_factory=dict[str, Fill])
    fresh: set[str] = field(default_factory=set[str])
    stack: Stack = field(default_factory=Stack)
    workspace: int = 0
    private: bool = False

    def affine(self, affine: Affine) -> Affine:
        """An affine over the block's indices as one over variables."""
        return affine.subs(self.indices).simplified(self.intervals)

    def wanted_name(self, scalar: str) -> str:
        """A name for the variable of a scalar, which is often called as the buffer that it comes from, or begins with
        an underscore."""
        return f"{scalar}_v" if scalar in self.areas else scalar.lstrip("_") or scalar

    def inside(self, block: Block) -> tuple[CodeScope, dict[str, str]]:
        """The scope in `block` without its refinements, and the variable of each index that needs a loop."""
        names = self.names.child()
        indices: dict[str, Affine] = {}
        variables: dict[str, str] = {}
        for index in block.indices:
            if index.affine is not None:
                indices[index.name] = self.affine(index.affine)
            elif index.range == 1:
                indices[index.name] = Affine()
            else:
                variables[index.name] = names.take(index.name)
                indices[index.name] = Affine.var(variables[index.name])
        return replace(self, names=names, indices=indices, areas={}), variables

    def area(self, ref: Refinement, outer: CodeScope) -> Area:
        """The area `ref` of a refinement of the scope `outer`, its access over the indices of this one."""
        source = outer.areas[ref.source]
        origin = source.at(access.subs(self.indices) for access in ref.access)
        return Area(source.pointer, origin.simplified(self.intervals), ref.sizes)
