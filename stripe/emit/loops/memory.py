"""The memory of allocations: stack, heap, workspace, and one arena per location for placed buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

from stripe.emit.loops.scope import Area, CodeScope, Fill, Names, Pointer
from stripe.ir import (
    Affine,
    Agg,
    Block,
    Interval,
    Nest,
    Program,
    Refinement,
    Statement,
    StripeError,
    nest_at,
    reads_of,
    uses_by_name,
    walk,
    writes_of,
)

ALIGNMENT = 64
"""Alignment in bytes of buffers in the workspace and of arenas: a cache line, and the widest vector of today."""

_LIMIT = 1 << 62
"""More bytes than any machine has, and safe to compute with in 64 bits."""


def align(count: int) -> int:
    """`count` bytes rounded up to the alignment."""
    return -(-count // ALIGNMENT) * ALIGNMENT


def require_addressable(ref: Refinement) -> None:
    """Raises StripeError for an allocation whose addresses 64 bits cannot hold."""
    if ref.bytes >= _LIMIT:
        raise StripeError(
            f"'{ref.name}' takes {ref.bytes} bytes, which no address can reach",
            hint="use smaller sizes or strides",
        )


class Home(Enum):
    """The memory of an allocation."""

    STACK = auto()
    HEAP = auto()
    WORKSPACE = auto()


@dataclass(slots=True)
class Homes:
    """Gives each allocation that is in no arena its memory. `stack_bytes` is the largest on the stack; `separate` gives
    each larger one a piece of the heap of its own. The others share the workspace. At the end `shared_bytes` and
    `thread_bytes` are the sizes of the workspaces of the function and of each thread of a parallel loop.
    """

    stack_bytes: int
    separate: bool
    shared_bytes: int = 0
    thread_bytes: int = 0
    has_local: bool = False

    def find(self, ref: Refinement, scope: CodeScope) -> Home:
        """The memory of `ref`; the stack is taken from `scope`."""
        size = align(ref.bytes)
        if ref.bytes <= self.stack_bytes and scope.stack.take(size):
            self.has_local = True
            return Home.STACK
        return Home.HEAP if self.separate else Home.WORKSPACE

    def share(self, pieces: Sequence[tuple[int, Interval]], scope: CodeScope) -> list[int]:
        """Offsets in the workspace for pieces of these bytes, each with the first and the last statement that uses it.

        Those that are alive at one statement lie apart. Larger ones come first, each at the lowest place that is free.
        """
        placed: dict[int, tuple[int, int]] = {}  # by number: begin and end
        for number in sorted(range(len(pieces)), key=lambda n: -pieces[n][0]):
            size, (first, last) = align(pieces[number][0]), pieces[number][1]
            near = (n for n in placed if pieces[n][1][0] <= last and first <= pieces[n][1][1])
            begin = scope.workspace
            for low, high in sorted(placed[n] for n in near):
                if begin + size <= low:
                    break
                begin = max(begin, high)
            placed[number] = begin, begin + size
        scope.workspace = max((end for _, end in placed.values()), default=scope.workspace)
        if scope.private:
            self.thread_bytes = max(self.thread_bytes, scope.workspace)
        else:
            self.shared_bytes = max(self.shared_bytes, scope.workspace)
        return [placed[number][0] for number in range(len(pieces))]


def lifetimes(block: Block) -> dict[str, Interval]:
    """The first and the last statement that use each refinement of `block`; of the entry, statements of main, if that
    runs once."""
    lives = {name: (min(numbers), max(numbers)) for name, numbers in uses_by_name(block).items()}
    main = next((inner for inner in block.blocks if inner.is_main), None)
    if main is not None and main.points == 1:
        inside = lifetimes(main)
        spans: dict[str, list[int]] = {name: [] for name in lives}
        for view in main.refinements:
            if view.source in spans:
                spans[view.source] += inside.get(view.name, ())
        lives = {name: (min(span, default=0), max(span, default=0)) for name, span in spans.items()}
    return lives


@dataclass(frozen=True, slots=True)
class LocationMemory:
    """The arena `name` of one location, unit after unit: `extents` units per axis, each of `unit_bytes`."""

    name: str
    extents: tuple[int, ...]
    unit_bytes: int

    @property
    def bytes(self) -> int:
        return prod(self.extents) * self.unit_bytes

    def area(self, ref: Refinement, name: str, scope: CodeScope) -> Area:
        """The placed allocation `ref` behind a pointer `name` to its offset in the first unit. A step along its bank
        dimension is a step to the next unit.
        """
        step = self.unit_bytes // ref.dtype.bytes
        strides = tuple(step if d == ref.bank_dim else dim.stride for d, dim in enumerate(ref.dims))
        extent = (self.name, ref.address, ref.address + ref.bytes)
        whole = Pointer(name, ref.dtype, ref.sizes, strides, extent, is_raw=True).whole()
        unit = Affine()  # its number, in row-major order of the extents
        units = [scope.affine(unit) for unit in _units(ref)]
        for place, extent in enumerate(self.extents):
            unit = unit * extent + (units[place] if place < len(units) else Affine())
        return Area(whole.pointer, unit * step + whole.origin, ref.sizes)


def arena_key(ref: Refinement) -> str:
    """The names of the devices of the location: each has an arena."""
    return "/".join(device.name for device in ref.location.devices)


def plan_arenas(program: Program, names: Names) -> dict[str, LocationMemory]:
    """The arenas that the placed allocations of `program` need, by `arena_key`."""
    extents: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    placed = (
        (path, ref) for path, block in walk(program.entry) for ref in block.refinements if ref.is_placed
    )
    for path, ref in placed:
        require_addressable(ref)
        key = arena_key(ref)
        axes = extents.setdefault(key, [1])
        spans = _unit_spans(ref, nest_at(program.entry, path) if ref.location.names() else None)
        axes.extend([1] * (len(spans) - len(axes)))
        for place, last in enumerate(spans):
            axes[place] = max(axes[place], last + 1)
        dims = [dim for d, dim in enumerate(ref.dims) if d != ref.bank_dim]
        in_unit = (1 + sum((dim.size - 1) * abs(dim.stride) for dim in dims)) * ref.dtype.bytes
        sizes[key] = max(sizes.get(key, 0), ref.address + in_unit)
    return {
        key: LocationMemory(names.take(f"arena_{key}"), tuple(axes), align(sizes[key]))
        for key, axes in extents.items()
    }


def _units(ref: Refinement) -> tuple[Affine, ...]:
    return tuple(unit for device in ref.location.devices for unit in device.units)


def _unit_spans(ref: Refinement, nest: Nest | None) -> list[int]:
    """The highest unit number per axis; the banks of `ref` are units of the last axis."""
    spans: list[int] = []
    for unit in _units(ref):
        low, high = nest.domain.reach(unit.subs(nest.local)) if nest else (unit.offset, unit.offset)
        if low < 0:
            raise StripeError(f"'{ref.name}' lies in unit {unit} of {ref.location}, which can be negative")
        spans.append(high)
    if ref.bank_dim is not None:
        spans = spans or [0]
        spans[-1] += ref.dims[ref.bank_dim].size - 1
    return spans


def first_fill(area: Area, agg: Agg, scope: CodeScope) -> Fill | None:
    """The identity of `agg`, with which a new buffer starts; a buffer in an arena gets it before its first use."""
    if agg is Agg.ASSIGN:
        return None
    fill = (area, agg.identity(area.pointer.dtype))
    if area.pointer.arena is None:
        return fill
    scope.pending[area.pointer.name] = fill
    return None


def due_fills(statement: Statement, scope: CodeScope) -> list[Fill]:
    """The pending fills of buffers that `statement` uses. A block that runs once sees to them deeper inside."""
    runs_once = isinstance(statement, Block) and not statement.constraints and statement.points == 1
    if not scope.pending or runs_once:
        return []
    used = {scope.areas[name].pointer.name for name in (*reads_of(statement), *writes_of(statement))}
    return [scope.pending.pop(name) for name in sorted(used & scope.pending.keys())]
