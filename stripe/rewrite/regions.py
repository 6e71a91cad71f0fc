"""The elements that views of a block touch at each of its points, as regions for transfers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from stripe.ir import Affine, Buffer, Domain, Interval, Nest, nest_at
from stripe.poly import (
    Access,
    Points,
    TouchedElements,
    element_names,
    pieces,
    through_view,
    touched_at,
    union,
    untouched,
)

Region: TypeAlias = tuple[Affine, ...]
"""Elements to transfer, at which all affines are 0 or more: over the names of the nest's domain and `element_names`,
relative to the view's origin."""

EVERYTHING: Region = ()
"""All elements of the box."""


def regions_of(
    nest: Nest, name: str, parts: Sequence[Access], box: Sequence[Interval], *, exact: bool
) -> list[Region]:
    """The elements that `parts`, the accesses through the view `name`, touch at each point of the block.

    A single region where the touched set is convex; else, when `exact` or where the source may hold undefined elements,
    disjoint regions; else the part of `box` inside the buffer.
    """
    if not parts:
        return []
    prefix = nest.prefix(nest.depth)
    if any(_fills(part, nest, box) for part in parts):
        return [EVERYTHING]
    found = _pieces(TouchedElements.of(parts), prefix, nest.domain, tuple(box))
    view = nest.views[name]
    if len(found) == 1 or exact or not _is_whole(nest, view.buffer):
        return list(found)
    names = element_names(len(box))
    known = _known(prefix, nest.domain, box)
    sizes = nest_at(nest.blocks[0], view.buffer.path).block.ref(view.buffer.name).sizes
    inside: list[Affine] = []
    for element, origin, size in zip(names, view.origin, sizes, strict=True):
        inside += [origin + Affine.var(element), size - 1 - origin - Affine.var(element)]
    return [_simplified(Points.build(known.names, {}, inside), known)]


@lru_cache(maxsize=2048)
def _pieces(
    touch: TouchedElements, prefix: tuple[str, ...], domain: Domain, box: tuple[Interval, ...]
) -> tuple[Region, ...]:
    """The convex pieces of the elements touched at each point of `domain`, simplified under its constraints."""
    names = (*prefix, *element_names(len(box)))
    touched = union((touched_at(part, prefix) for part in touch.parts), names).coalesced()
    known = _known(prefix, domain, box)
    return tuple([_simplified(piece, known) for piece in pieces(touched)])


def _known(prefix: Sequence[str], domain: Domain, box: Sequence[Interval]) -> Points:
    """The elements of the box at each point of `domain`."""
    names = element_names(len(box))
    bounds = dict(zip(names, box, strict=True))
    return Points.build((*prefix, *names), {**domain.ranges, **bounds}, domain.constraints)


def _is_whole(nest: Nest, buffer: Buffer) -> bool:
    """Whether all elements of a buffer have a value where a block begins: the buffer is a tensor that the program is
    given, or a temporary of the entry that statements before the block write as a whole."""
    if len(buffer.path) != 1:
        return False
    owner = nest_at(nest.blocks[0], buffer.path)
    ref = owner.block.ref(buffer.name)
    writes = [part for part in through_view(owner, buffer.name) if part.is_write]
    before = [part for part in writes if _precedes(part.nest, nest)]
    given = ref.is_kept and not writes and not ref.has_undefined_holes
    return given or untouched(ref.sizes, before).is_empty


def _precedes(first: Nest, second: Nest) -> bool:
    """Whether all points of a block come before all points of another: blocks around both have one point."""
    around = (a for a, b in zip(first.blocks, second.blocks, strict=False) if a is b)
    return all(block.points == 1 for block in around) and first.path[: len(second.path)] < second.path


def _fills(part: Access, nest: Nest, box: Sequence[Interval]) -> bool:
    """Whether the part touches the whole box at each point of the nest's block: no constraint inside cuts it, and in
    each dimension its own indices leave no gap. False where only integer sets decide."""
    domain = part.nest.domain
    if domain.constraints != nest.domain.constraints:
        return False
    used = set(nest.prefix(nest.depth))
    for affine, size, ends in zip(part.index, part.sizes, box, strict=True):
        extent = size
        for atom, step in sorted(affine.terms, key=lambda term: abs(term[1])):
            if not isinstance(atom, str) or atom in used or abs(step) > extent:
                return False
            used.add(atom)
            low, high = domain.ranges[atom]
            extent += abs(step) * (high - low)
        first = affine.bounds(domain.ranges)[0]
        if (first, first + extent - 1) != ends:
            return False
    return True


def _simplified(region: Points, known: Points) -> Region:
    gist = region.gist(known).coalesced()
    return gist.affines() if len(list(pieces(gist))) == 1 else region.affines()
