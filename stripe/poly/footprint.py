"""Footprints: which elements of a buffer a block touches, exactly, and the box around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod

from stripe.ir import Affine, Block, Buffer, Domain, Interval, Nest
from stripe.poly.access import Access, AccessKind, accesses, element_names, leaf_accesses
from stripe.poly.count.count import count_union
from stripe.poly.sets import Points, union
from stripe.poly.simplify import bounds, feasible


@dataclass(frozen=True)
class Footprint:
    """The accesses of a block to one buffer: reads and writes."""

    buffer: Buffer
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]

    @property
    def rank(self) -> int:
        return len((self.reads + self.writes)[0].index)

    @cached_property
    def read(self) -> Points:
        """The elements that are read."""
        return elements(self.reads, self.rank)

    @cached_property
    def written(self) -> Points:
        """The elements that are written."""
        return elements(self.writes, self.rank)

    @cached_property
    def touched(self) -> Points:
        return (self.read | self.written).coalesced()

    @cached_property
    def elements_read(self) -> int:
        """The exact number of distinct elements that are read."""
        return count_union(self.reads)

    @cached_property
    def elements_written(self) -> int:
        """The exact number of distinct elements that are written."""
        return count_union(self.writes)

    @property
    def box(self) -> tuple[Interval, ...] | None:
        """The smallest box around all that is touched; None when nothing is."""
        return box_of(self.reads + self.writes)


def footprints(root: Block | Nest) -> dict[Buffer, Footprint]:
    """The footprint of each buffer that is accessed below `root`, also of buffers allocated inside (over all
    points of the blocks around them), in the order of first use.
    """
    found: dict[Buffer, list[Access]] = {}
    for access in accesses(root):
        found.setdefault(access.buffer, []).append(access)
    return {
        buffer: Footprint(
            buffer,
            tuple(access for access in parts if access.kind is AccessKind.READ),
            tuple(access for access in parts if access.kind is AccessKind.WRITE),
        )
        for buffer, parts in found.items()
    }


def elements(parts: Iterable[Access], rank: int) -> Points:
    """The union of the elements that accesses to one buffer touch."""
    return union((part.footprint for part in parts), element_names(rank)).coalesced()


def box_of(parts: Sequence[Access]) -> tuple[Interval, ...] | None:
    """The exact smallest box around all that the accesses touch; None when they never run."""
    boxes = [box for part in parts if (box := _box(part.index, part.sizes, part.nest.domain)) is not None]
    if not boxes:
        return None
    return tuple((min(b[0] for b in dim), max(b[1] for b in dim)) for dim in zip(*boxes, strict=True))


@lru_cache(maxsize=4096)
def _box(index: tuple[Affine, ...], sizes: tuple[int, ...], domain: Domain) -> tuple[Interval, ...] | None:
    """`box_of` an access with this content, which equal layers share."""
    if not (index or feasible(domain)):
        return None
    result: list[Interval] = []
    for affine, size in zip(index, sizes, strict=True):
        found = bounds(affine, domain)
        if found is None:
            return None
        result.append((found[0], found[1] + size - 1))
    return tuple(result)


def through_view(nest: Nest, name: str) -> tuple[Access, ...]:
    """The accesses that go through the refinement `name` of the innermost block, with `index` relative to the origin
    of that view: the elements that the view's box has to hold.
    """
    view = nest.views[name]
    return tuple(
        replace(access, index=tuple(a - b for a, b in zip(access.index, view.origin, strict=True)))
        for access in _through(nest, name)
    )


def _through(nest: Nest, name: str) -> Iterator[Access]:
    for number, statement in enumerate(nest.block.statements):
        if isinstance(statement, Block):
            for ref in statement.refinements:
                if ref.source == name:
                    yield from _through(nest.enter(number), ref.name)
        else:
            yield from (access for access in leaf_accesses(nest, number) if access.ref == name)


def view_box(nest: Nest, name: str) -> tuple[Interval, ...] | None:
    """The exact box, relative to the origin of the view `name`, of all that is touched through it at any point; None
    when nothing is. A view's sizes suffice when this lies in [0, size) in each dimension.
    """
    return box_of(through_view(nest, name))


def untouched(sizes: Sequence[int], writers: Iterable[Access]) -> Points:
    """The elements of a buffer of `sizes` that none of the accesses touches."""
    return (box_points(sizes) - elements(writers, len(sizes))).coalesced()


def box_points(sizes: Sequence[int]) -> Points:
    """All elements of a buffer of `sizes`, over `element_names`."""
    names = element_names(len(sizes))
    return Points.build(names, {name: (0, size - 1) for name, size in zip(names, sizes, strict=True)})


def box_volume(box: Sequence[Interval]) -> int:
    """The number of points of a box."""
    return prod(high - low + 1 for low, high in box)
