"""Where allocations live: local arrays, the workspace, and one arena per location for what a pass has placed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from stripe.emit.c.names import Names
from stripe.ir import Affine, Block, Interval, Program, Refinement, StripeError

ALIGNMENT = 64
"""Alignment in bytes of buffers in the workspace and of arenas: a cache line, and the widest vector of today."""

_LIMIT = 1 << 62
"""More bytes than any machine has, and safe to compute with in int64_t."""


def align(count: int) -> int:
    """`count` bytes rounded up to the alignment."""
    return -(-count // ALIGNMENT) * ALIGNMENT


def check_size(ref: Refinement) -> None:
    """Raises StripeError for an allocation whose addresses int64_t cannot hold."""
    if ref.bytes >= _LIMIT:
        raise StripeError(
            f"'{ref.name}' takes {ref.bytes} bytes, which no address can reach",
            hint="use smaller sizes or strides",
        )


@dataclass(frozen=True, slots=True)
class Arena:
    """The memory of one location, unit after unit: `extents` units per axis, each of `unit_bytes`."""

    name: str
    location: str
    extents: tuple[int, ...]
    unit_bytes: int

    @property
    def bytes(self) -> int:
        return prod(self.extents) * self.unit_bytes

    def unit(self, units: tuple[Affine, ...]) -> Affine:
        """The number of a unit in the row-major order of `extents`."""
        number = Affine()
        for place, extent in enumerate(self.extents):
            number = number * extent + (units[place] if place < len(units) else Affine())
        return number

    def strides(self, ref: Refinement) -> tuple[int, ...]:
        """Element strides of `ref` here: a step along its bank dimension is a step to the next unit."""
        step = self.unit_bytes // ref.dtype.bytes
        return tuple(step if d == ref.bank_dim else dim.stride for d, dim in enumerate(ref.dims))


def is_placed(ref: Refinement) -> bool:
    """Whether memory placement has given the allocation an address."""
    return ref.is_alloc and "placed" in ref.tags and bool(ref.location)


def bytes_in_unit(ref: Refinement) -> int:
    """Bytes of an allocation within one unit: all of them, or those of one bank."""
    if ref.bank_dim is None:
        return ref.bytes
    rest = 1 + sum((dim.size - 1) * abs(dim.stride) for d, dim in enumerate(ref.dims) if d != ref.bank_dim)
    return rest * ref.dtype.bytes


def arena_key(ref: Refinement) -> str:
    """The names of the devices of the location, which tell arenas apart."""
    return "/".join(device.name for device in ref.location.devices)


def units_of(ref: Refinement) -> tuple[Affine, ...]:
    """The unit numbers of the location, of all its devices in order."""
    return tuple(unit for device in ref.location.devices for unit in device.units)


def plan_arenas(program: Program, names: Names) -> dict[str, Arena]:
    """The arenas that the placed allocations of `program` need, by `arena_key`."""
    extents: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    for ref, intervals in _placed(program.entry, {}):
        check_size(ref)
        key = arena_key(ref)
        axes = extents.setdefault(key, [1])
        spans = _unit_spans(ref, intervals)
        axes.extend([1] * (len(spans) - len(axes)))
        for place, last in enumerate(spans):
            axes[place] = max(axes[place], last + 1)
        sizes[key] = max(sizes.get(key, 0), ref.offset + bytes_in_unit(ref))
    return {
        key: Arena(names.take(f"arena_{key}"), key, tuple(axes), align(sizes[key]))
        for key, axes in extents.items()
    }


def _unit_spans(ref: Refinement, intervals: Mapping[str, Interval]) -> list[int]:
    """The highest unit number per axis; the banks of `ref` are units of the last axis."""
    spans: list[int] = []
    for unit in units_of(ref):
        low, high = unit.bounds(intervals)
        if low < 0:
            raise StripeError(f"'{ref.name}' lies in unit {unit} of {ref.location}, which can be negative")
        spans.append(high)
    if ref.bank_dim is not None:
        spans = spans or [0]
        spans[-1] += ref.dims[ref.bank_dim].size - 1
    return spans


def _placed(block: Block, outer: dict[str, Interval]) -> Iterator[tuple[Refinement, dict[str, Interval]]]:
    intervals = block.intervals(outer)
    for ref in block.refinements:
        if is_placed(ref):
            yield ref, intervals
    for inner in block.blocks:
        yield from _placed(inner, intervals)
