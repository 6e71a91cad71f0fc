"""Stores whose contribution is the only one of each element that they write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache, partial

from stripe.ir import Agg, Block, Buffer, Nest, Role, determined, indices_of, nest_at
from stripe.poly.access import Access, TouchedElements, accesses, element_names
from stripe.poly.deps import touched_at
from stripe.poly.limits import within
from stripe.poly.relations import Relation
from stripe.poly.sets import Points, union

_OPERATIONS = 2_000_000
"""isl operations for each of two questions about a store, and for one about a buffer, before it stays as it is."""


def single_writes(entry: Block) -> Iterator[Access]:
    """The aggregating stores of `entry`, the entry of a program, for which each element that they write gets one
    contribution while its buffer lives, nothing reads it before, and nothing counts on the identity of another element.

    Stores into user tensors with contents of the caller are none: they merge with these.
    """
    by_buffer: dict[Buffer, list[Access]] = defaultdict(list)
    for access in accesses(entry):
        by_buffer[access.buffer].append(access)
    for buffer, found in by_buffer.items():
        if not any(access.is_write and access.agg is not Agg.ASSIGN for access in found):
            continue
        holder = nest_at(entry, buffer.path)
        passed_in = any(
            ref.source == buffer.name and ref.dir.reads for b in entry.blocks for ref in b.refinements
        )
        if passed_in and holder.block.ref(buffer.name).role is Role.USER:
            continue
        fixed = holder.prefix(holder.depth)
        merging = [access for access in found if access.is_write and access.agg is not Agg.ASSIGN]
        single: list[Access] = []
        for access in merging:
            others = [o for o in found if o is not access and (o.is_write or o.path < access.path)]
            once = within(_OPERATIONS, partial(_once, TouchedElements.of([access]), fixed))
            if once and within(_OPERATIONS, partial(_is_apart, access, others, fixed)):
                single.append(access)
        # Without any merging store the buffer begins undefined: no element may count on the identity.
        if len(single) < len(merging) or within(_OPERATIONS, partial(_is_written, found, holder, fixed)):
            yield from single


def _is_apart(access: Access, others: list[Access], fixed: tuple[str, ...]) -> bool:
    """Whether `others` touch none of the elements of `access` at points that agree in the indices `fixed`."""
    mine = touched_at(access, fixed)
    return all(mine.disjoint(touched_at(other, fixed)) for other in others)


@lru_cache(maxsize=2048)
def _once(write: TouchedElements, fixed: tuple[str, ...]) -> bool:
    """Whether no element is written at two points that agree in the indices `fixed`; equal layers share the answer."""
    (access,) = write.parts
    domain = access.nest.domain
    running = domain.names[len(fixed) :]
    told = indices_of((*access.index, *domain.constraints))
    if any(name not in told and domain.ranges[name][0] < domain.ranges[name][1] for name in running):
        return False  # all values of the index write the same elements
    known = determined(zip(access.index, access.sizes, strict=True), domain.ranges, fixed)
    if known.issuperset(domain.ranges):
        return True
    elements = element_names(len(access.index))
    return Relation.from_points(access.relation.points(), running, (*fixed, *elements)).injective


def _is_written(found: list[Access], holder: Nest, fixed: tuple[str, ...]) -> bool:
    """Whether `found`, all accesses to a buffer that `holder` allocates, write all elements that they read, or that the
    caller gets."""
    ref = holder.block.ref(found[0].buffer.name)
    names = (*fixed, *element_names(ref.rank))
    written = union((touched_at(access, fixed) for access in found if access.is_write), names)
    if ref.role is Role.USER:
        box = {name: (0, size - 1) for name, size in zip(element_names(ref.rank), ref.sizes, strict=True)}
        return Points.build(names, box).subset_of(written)
    return union((touched_at(access, fixed) for access in found if not access.is_write), names).subset_of(
        written
    )
