"""Work of a core on named vectors: operations, loads and stores, sums that wait, and registers that do not suffice.

The rule follows the code that emission makes of a block tagged with the lanes of a vector. The loops of a tile whose
results registers hold are written out; each round of the loops outside them is a *step*. In a step each vector of an
operand is loaded once, and an operand that the vector does not run along is loaded as one element for all lanes. Sums
go on from step to step where the loops outside sum; each of their additions waits for the one before. Vectors beyond
the registers are stored and loaded again in each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from stripe.cost.counts.transfers import location_of, own_accesses
from stripe.cost.time.pieces import Stream
from stripe.hw.schema import ExecUnit
from stripe.ir import Agg, Buffer, Location, Nest, vectors_along
from stripe.ir.lanes import SUM_COPIES, TILE_VECTORS
from stripe.poly import Access, distinct_values

HELD_BYTES = 2048
"""The largest allocation of a kernel that emission names as variables."""


@dataclass(frozen=True, slots=True)
class CoreWork:
    """One run of a block on a core: `share` of the lanes is useful, `chain` additions to a sum follow one another, and
    there are so many loads; `streams` are the bytes loaded and stored."""

    share: float
    chain: int
    loads: int
    streams: tuple[Stream, ...]


class _UnrolledTile:
    """The loops of a block that are written out, and those outside them. `held` are accesses to allocations that
    registers may hold."""

    def __init__(self, leaf: Nest, lanes: int, held: Sequence[Access], written: Sequence[Access]) -> None:
        bound = frozenset(name for c in leaf.block.constraints for name in c.affine.subs(leaf.local).names())
        self.own = leaf.own
        self.ranges = {name: leaf.domain.ranges[name][1] + 1 for name in self.own}
        self.last = self.own[-1]
        self.pieces = vectors_along(self.ranges[self.last], lanes)
        self.share = self.ranges[self.last] / (self.pieces * lanes)
        moving = _moving(written, self.own)
        level = self._level(moving, _moving(held, self.own) if held else None)
        first = level
        while first and self.own[first - 1] not in moving:
            first -= 1
        if all(name in moving for name in self.own[:first]) and self._copies(first) <= SUM_COPIES:
            level = first
        self.is_plain = bound.isdisjoint(self.own[level:])
        """Whether no bound of the written-out loops varies, so that they can be written out."""
        level = level if self.is_plain else len(self.own) - 1
        self.outer, self.inner = self.own[:level], self.own[level:-1]
        self.steps = prod(self.ranges[name] for name in self.outer)
        again = max((n + 1 for n, name in enumerate(self.outer) if name in moving), default=0)
        self.visits = prod(self.ranges[name] for name in self.outer[:again])
        """The number of times that the results of a step change."""

    def _copies(self, level: int) -> int:
        return prod(self.ranges[name] for name in self.own[level:-1]) * self.pieces

    def _level(self, moving: frozenset[str], in_registers: frozenset[str] | None) -> int:
        last = len(self.own) - 1
        if in_registers is not None:
            return min((n for n, name in enumerate(self.own) if name in in_registers), default=last)
        level = last
        while level and self.own[level - 1] in moving:
            level -= 1
        sums = any(name not in moving for name in self.own[:level])
        return level if sums and self._copies(level) <= TILE_VECTORS else last

    @property
    def sums_go_on(self) -> bool:
        """Whether the next step adds to the results of a step."""
        return self.steps > self.visits

    def vectors(self, access: Access) -> int:
        """Vectors, or single elements, of an access in a step."""
        number = self.pieces if self.is_vector(access) else 1
        for affine in access.index:
            terms = [(affine.coeff(name), self.ranges[name]) for name in self.inner]
            number *= distinct_values(terms) or prod(count for factor, count in terms if factor)
        return number

    def is_vector(self, access: Access) -> bool:
        return any(affine.coeff(self.last) for affine in access.index)


def _moving(accesses: Iterable[Access], names: Sequence[str]) -> frozenset[str]:
    """The indices that move some of the accesses."""
    indices = [affine for access in accesses for affine in access.index]
    return frozenset(name for name in names if any(affine.coeff(name) for affine in indices))


def core_work(leaf: Nest, depth: int, unit: ExecUnit) -> CoreWork | None:
    """The work of one run of `leaf`, in a kernel whose path has `depth` numbers; None where it has no vector form."""
    lanes = leaf.block.tags.lanes("vector")
    if lanes < 2 or not leaf.own or unit.registers is None:
        return None
    accesses = list(own_accesses(leaf))
    held = frozenset(
        a.buffer for a in accesses if len(a.buffer.path) >= depth and _bytes(leaf, a) <= HELD_BYTES
    )
    written = [a for a in accesses if a.is_write]
    tile = _UnrolledTile(leaf, lanes, [a for a in accesses if a.buffer in held], written)
    held = held if tile.is_plain else frozenset[Buffer]()
    loads = 0
    streams: list[Stream] = []

    def add(access: Access, vectors: int, *, writes: bool) -> None:
        elements = tile.ranges[tile.last] / tile.pieces if tile.is_vector(access) else 1
        size = round(vectors * elements * leaf.block.ref(access.ref).dtype.bytes)
        streams.append(Stream(access.buffer.name, location_of(access), writes, size))

    operands = [a for a in accesses if not a.is_write and a.buffer not in held]
    for access in operands:
        vectors = tile.vectors(access) * tile.steps
        loads += vectors
        add(access, vectors, writes=False)
    results = chain = 0
    for access in written:
        vectors = tile.vectors(access)
        sums = access.agg is not Agg.ASSIGN
        results += vectors
        if sums and tile.sums_go_on:
            points = prod(tile.ranges[name] for name in tile.inner) * tile.pieces
            chain = max(chain, tile.steps * (points // vectors))
        if access.buffer in held:
            continue
        times = tile.visits if sums and tile.sums_go_on else tile.steps
        add(access, vectors * times, writes=True)
        if sums:
            loads += vectors * times
            add(access, vectors * times, writes=False)
    # beside the results one vector of each operand but the last, and one that the last operand passes through
    others = sorted(tile.vectors(a) for a in operands)[:-1] if tile.sums_go_on else []
    spilled = max(0, results + sum(others) + 1 - unit.registers) * tile.steps if tile.sums_go_on else 0
    if spilled:
        loads += spilled
        size = spilled * (unit.register_bytes or unit.vector_bytes or 0)
        streams += [Stream("spilled registers", Location(), writes, size) for writes in (False, True)]
    return CoreWork(tile.share, chain, loads, tuple(streams))


def _bytes(leaf: Nest, access: Access) -> int:
    """Bytes of the allocation of an access inside the kernel."""
    block = leaf.blocks[len(access.buffer.path) - 1]
    return next((ref.bytes for ref in block.allocs if ref.name == access.buffer.name), HELD_BYTES + 1)
