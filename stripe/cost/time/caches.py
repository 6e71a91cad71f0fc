"""Traffic below transparent caches: footprints of the loops of a kernel.

The loops are those of the kernel's blocks, the first index of a block outermost. Where an iteration of a loop touches
no more than a cache holds, the next one finds there all that both touch. So the outermost loop whose iterations fit
brings each of its lines once, and loops outside it bring them again in each iteration. At the border of two parts, or
of two iterations that do not fit, the cache still has the end of the first one. Of lines that share a set of the cache,
as many stay as it has ways.

Units that have a cache each see the iterations of their own, units that share one bring theirs at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod
from typing import NamedTuple, TypeAlias

from stripe.cost.counts.transfers import own_accesses
from stripe.hw.schema import MemUnit
from stripe.ir import Buffer, Nest, Path
from stripe.ir.frozen import replace
from stripe.poly import Access, distinct_values


class _StridedCoordinate(NamedTuple):
    """A coordinate of an access: offset + the sum of factor * index, of so many elements, and the bytes between
    neighbours. Terms are (name, factor, first, last) by name."""

    offset: int
    terms: tuple[tuple[str, int, int, int], ...]
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of a kernel, with the bytes of an element and of the whole buffer."""

    access: Access
    coordinates: tuple[_StridedCoordinate, ...]
    element: int
    whole: int

    @property
    def buffer(self) -> Buffer:
        return self.access.buffer


class _BoxSide(NamedTuple):
    """The side of a box: its least coordinate, low + the sum of factor * index outside, and its length."""

    low: int
    outside: tuple[tuple[str, int], ...]
    length: int


@dataclass(frozen=True, slots=True)
class LoopRegion:
    """The lines that a loop touches of a buffer: their bytes, the lines of a run without gaps, the steps in bytes at
    which runs lie, with their counts, and the box around the elements."""

    bytes: int
    across: int
    steps: tuple[tuple[int, int], ...]
    box: tuple[_BoxSide, ...]

    def shared(self, other: LoopRegion) -> float:
        """Bytes of `other` that lie in this region; 0 where that depends on indices outside."""
        part = 1.0
        for here, there in zip(self.box, other.box, strict=True):
            if here.outside != there.outside:
                return 0.0
            common = min(here.low + here.length, there.low + there.length) - max(here.low, there.low)
            part *= max(0, common) / there.length
        return part * other.bytes

    def at(self, name: str, value: int) -> LoopRegion:
        """The region for one value of an index outside."""
        return self._with_box(name, value, keeps=False)

    def later(self, name: str) -> LoopRegion:
        """The region in the next iteration of the loop `name`."""
        return self._with_box(name, 1, keeps=True)

    def _with_box(self, name: str, value: int, *, keeps: bool) -> LoopRegion:
        sides = (
            _BoxSide(
                side.low + sum(factor * value for other, factor in side.outside if other == name),
                side.outside if keeps else tuple(term for term in side.outside if term[0] != name),
                side.length,
            )
            for side in self.box
        )
        return replace(self, box=tuple(sides))


Regions: TypeAlias = Mapping[Buffer, LoopRegion]
Bytes: TypeAlias = dict[tuple[Buffer, Path], float]
"""Bytes of a buffer by the block that touches them first, which is where they come in."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelLoop:
    """A loop, or parts one after the other where it has no `name`, with all accesses inside."""

    name: str
    count: int
    parts: tuple[KernelLoop, ...]
    touches: tuple[Touch, ...]

    @property
    def owners(self) -> dict[Buffer, Path]:
        """For each buffer the block that touches it first."""
        return {touch.buffer: touch.access.nest.path for touch in reversed(self.touches)}


def kernel_loops(
    nest: Nest, touches: Mapping[tuple[int, ...], Sequence[Touch]], *, split_leaves: bool
) -> KernelLoop:
    """The loops of the innermost block of `nest`; `touches` by the path of the block whose statements they are. Loops
    of a block without blocks inside count where it is to be split: else registers hold the elements in between."""
    parts = [kernel_loops(child, touches, split_leaves=split_leaves) for _, child in nest.children()]
    own = tuple(touches.get(nest.path, ()))
    if not parts and not split_leaves:
        return KernelLoop("", 1, (), own)
    if own:
        parts.insert(0, KernelLoop("", 1, (), own))
    inner = tuple(touch for part in parts for touch in part.touches)
    loop = parts[0] if len(parts) == 1 else KernelLoop("", 1, tuple(parts), inner)
    for name in reversed(nest.own):
        low, high = nest.domain.ranges[name]
        if high > low:
            loop = KernelLoop(name, high - low + 1, (loop,), inner)
    return loop


def kernel_touches(nest: Nest, registers: int) -> dict[tuple[int, ...], list[Touch]]:
    """The accesses inside by the path of their block; none to allocations of the kernel that take no more than
    `registers` bytes."""
    found: dict[tuple[int, ...], list[Touch]] = {}
    for inner in nest.walk():
        for access in own_accesses(inner):
            touch = _touch(access)
            if len(access.buffer.path) < len(nest.path) or touch.whole > registers:
                found.setdefault(inner.path, []).append(touch)
    return found


def _touch(access: Access) -> Touch:
    ref = access.nest.block.ref(access.ref)
    ranges = access.nest.domain.ranges
    coordinates: list[_StridedCoordinate] = []
    for affine, size, stride in zip(access.index, access.sizes, ref.strides, strict=True):
        names = sorted(affine.names()) if affine.is_linear else ()
        offset, length = affine.offset, size
        if not affine.is_linear:  # the whole interval of floors and remainders
            offset, last = affine.bounds(ranges)
            length += last - offset
        terms = tuple((name, affine.coeff(name), *ranges[name]) for name in names)
        coordinates.append(_StridedCoordinate(offset, terms, length, abs(stride) * ref.dtype.bytes))
    whole = access.nest.blocks[len(access.buffer.path) - 1].ref(access.buffer.name).bytes
    return Touch(access, tuple(coordinates), ref.dtype.bytes, whole)


class LoopRegions:
    """The lines of `line` bytes that loops touch. `apart` are indices with one value for a cache: those from outside
    and those that number units with a cache each; `together` number units that share it.
    """

    def __init__(self, line: int, apart: frozenset[str], together: frozenset[str]) -> None:
        self.line, self.apart, self.together = line, apart, together
        self._known: dict[KernelLoop, Regions] = {}

    def inside(self, loop: KernelLoop, outer: frozenset[str]) -> frozenset[str]:
        """The indices that have one value in an iteration of the loop."""
        return outer | {loop.name} if loop.name and loop.name not in self.together else outer

    def repeats(self, loop: KernelLoop) -> bool:
        """Whether the iterations of the loop follow one another in front of a cache."""
        return bool(loop.name) and loop.name not in self.apart and loop.name not in self.together

    def copies(self, loop: KernelLoop) -> int:
        """The number of caches in front of which the loop runs, beside indices outside it."""
        inside = max((self.copies(part) for part in loop.parts), default=1)
        return inside * loop.count if loop.name in self.apart else inside

    def of(self, loop: KernelLoop, outer: frozenset[str]) -> Regions:
        """The regions that one run of the loop touches, by buffer; `outer` are the indices of the loops around it."""
        found = self._known.get(loop)
        if found is None:
            fixed = outer | self.apart
            kinds: dict[Buffer, dict[tuple[_StridedCoordinate, ...], LoopRegion]] = {}
            for touch in loop.touches:
                known = kinds.setdefault(touch.buffer, {})
                if touch.coordinates not in known:
                    known[touch.coordinates] = self._region(touch, fixed)
            found = {buffer: _joined(list(regions.values())) for buffer, regions in kinds.items()}
            self._known[loop] = found
        return found

    def _region(self, touch: Touch, outer: frozenset[str]) -> LoopRegion:
        steps: dict[int, int] = {}
        box: list[_BoxSide] = []
        for offset, terms, size, stride in touch.coordinates:
            low, length = offset, size
            outside: list[tuple[str, int]] = []
            if size > 1:
                steps[stride] = steps.get(stride, 1) + size - 1
            for name, factor, first, last in terms:
                if name in outer:
                    outside.append((name, factor))
                    continue
                low += factor * (first if factor > 0 else last)
                length += abs(factor) * (last - first)
                step = abs(factor) * stride
                steps[step] = steps.get(step, 1) + last - first
            box.append(_BoxSide(low, tuple(outside), length))
        run = touch.element
        apart: list[tuple[int, int]] = []
        for step, count in sorted(steps.items()):
            if step <= max(run, self.line):
                run += step * (count - 1)
            elif count > 1:
                apart.append((step, count))
        across = ceil(run / self.line)
        lines = across * (distinct_values(apart) or prod(count for _, count in apart))
        size = min(lines, ceil(touch.whole / self.line)) * self.line
        return LoopRegion(size, across, tuple(apart), tuple(box))


def _joined(regions: Sequence[LoopRegion]) -> LoopRegion:
    """The region of several accesses to one buffer: their box, or their sum where that is less or the box unknown."""
    first = max(regions, key=lambda region: region.bytes)
    if len(regions) == 1:
        return first
    total = sum(region.bytes for region in regions)
    box: list[_BoxSide] = []
    for sides in zip(*(region.box for region in regions), strict=True):
        if len({side.outside for side in sides}) > 1:
            return replace(first, bytes=total)
        low = min(side.low for side in sides)
        box.append(_BoxSide(low, sides[0].outside, max(side.low + side.length for side in sides) - low))
    hull = first.bytes * prod(new.length / old.length for new, old in zip(box, first.box, strict=True))
    return replace(first, bytes=min(total, ceil(hull)), box=tuple(box))


class CacheTraffic:
    """Bytes that a kernel brings into a cache of `capacity` bytes, by buffer."""

    def __init__(self, cache: MemUnit, capacity: int, regions: LoopRegions) -> None:
        self.capacity, self.ways = capacity, cache.ways or 0
        self.period = capacity // self.ways if self.ways else 0
        """Bytes after which addresses come to the same set again."""
        self.regions = regions

    def once(self, loop: KernelLoop, buffer: Buffer) -> float:
        """Bytes of a buffer that the whole kernel touches, in all caches."""
        return self.regions.of(loop, frozenset())[buffer].bytes * self.regions.copies(loop)

    def fetched(self, loop: KernelLoop, outer: frozenset[str] = frozenset()) -> Bytes:
        """Bytes that one run of a loop brings in."""
        found = self.regions.of(loop, outer)
        inner = self.regions.inside(loop, outer)
        repeats = self.regions.repeats(loop)
        if self._fits(found) or (repeats and self._fits(self.regions.of(loop.parts[0], inner))):
            return self._with_conflicts(loop, outer, found)
        if not loop.parts:
            owners = loop.owners
            return {(buffer, owners[buffer]): float(region.bytes) for buffer, region in found.items()}
        if not loop.name:
            return self._in_turn(loop, outer)
        (body,) = loop.parts
        each = self.fetched(body, inner)
        if loop.name in self.regions.together:
            return each
        kept: dict[Buffer, float] = {}
        if repeats:
            following = {b: region.later(loop.name) for b, region in self._end(body, inner, 0).items()}
            kept = self._kept(self._end(body, inner, -1), following)
        less = _without(each, kept)
        return {key: size + (loop.count - 1) * less[key] for key, size in each.items()}

    def _in_turn(self, loop: KernelLoop, outer: frozenset[str]) -> Bytes:
        """Bytes of parts that do not fit together."""
        total: Bytes = {}
        before: KernelLoop | None = None
        for part in loop.parts:
            kept: dict[Buffer, float] = {}
            if before is not None:
                kept = self._kept(self._end(before, outer, -1), self._end(part, outer, 0))
            for key, size in _without(self.fetched(part, outer), kept).items():
                total[key] = total.get(key, 0.0) + size
            before = part
        return total

    def _with_conflicts(self, loop: KernelLoop, outer: frozenset[str], found: Regions) -> Bytes:
        """Bytes of a loop whose iterations fit: each line once, and again the lines that conflicts in sets evict."""
        copies = self.regions.copies(loop)
        owners = loop.owners
        total = {(buffer, owners[buffer]): float(copies * region.bytes) for buffer, region in found.items()}
        if not self.ways:
            return total
        for inner, around, times in self._loops_below(loop, outer, 1):
            whole = self.regions.of(inner, around)
            for buffer, region in self.regions.of(inner.parts[0], self.regions.inside(inner, around)).items():
                lost = self._lost(region)
                if lost > 0:
                    again = times * lost * max(0, inner.count * region.bytes - whole[buffer].bytes)
                    key = buffer, inner.owners[buffer]
                    total[key] = total.get(key, 0.0) + again
        return total

    def _loops_below(
        self, loop: KernelLoop, outer: frozenset[str], times: int
    ) -> Iterator[tuple[KernelLoop, frozenset[str], int]]:
        """The loops whose iterations follow one another, with the indices around and the number of runs."""
        if self.regions.repeats(loop):
            yield loop, outer, times
        count = 1 if loop.name in self.regions.together else loop.count
        for part in loop.parts:
            yield from self._loops_below(part, self.regions.inside(loop, outer), times * count)

    def _lost(self, region: LoopRegion) -> float:
        """The share of the lines of a region for which their sets have no ways."""
        places = prod(min(count, self.period // gcd(step, self.period)) for step, count in region.steps)
        sets = min(self.period // self.regions.line, region.across * places)
        return max(0.0, 1 - self.ways * sets * self.regions.line / region.bytes)

    def _fits(self, regions: Regions) -> bool:
        return sum(region.bytes for region in regions.values()) <= self.capacity

    def _end(self, loop: KernelLoop, outer: frozenset[str], which: int) -> Regions:
        """The last (-1) or first (0) that the cache holds at a time of a run of the loop."""
        found = self.regions.of(loop, outer)
        if self._fits(found) or not loop.parts:
            return found
        regions = self._end(loop.parts[which], self.regions.inside(loop, outer), which)
        if not self.regions.repeats(loop):
            return regions
        return {
            buffer: region.at(loop.name, loop.count - 1 if which else 0) for buffer, region in regions.items()
        }

    def _kept(self, before: Regions, after: Regions) -> dict[Buffer, float]:
        """Bytes of `after` that are still there from `before`."""
        both = {**after, **before}
        return {b: before[b].shared(after[b]) for b in after if b in before} if self._fits(both) else {}


def _without(sizes: Bytes, kept: Mapping[Buffer, float]) -> Bytes:
    """Bytes without the bytes that a cache has kept, which the first block that touches a buffer finds there."""
    left = dict(kept)
    found: Bytes = {}
    for (buffer, path), size in sizes.items():
        spared = min(size, left.pop(buffer, 0.0))
        found[buffer, path] = size - spared
    return found
