"""A view cached in a nearer memory: the copy, and the blocks that transfer exactly the elements touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import add, sub

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Buffer,
    Constraint,
    Direction,
    Index,
    IndexMap,
    Interval,
    Load,
    Location,
    Nest,
    Path,
    Refinement,
    Tags,
    aggregations_of,
    beginnings,
    block_at,
    fresh,
    map_views,
    moved_down,
    nest_at,
    own_aggregation,
    refs_used,
    replace_at,
    views_moved,
)
from stripe.ir.frozen import replace
from stripe.poly import Access, box_of, element_names, through_view, touched_at, union
from stripe.poly.deps import common_depth, overlap
from stripe.poly.relations import Relation
from stripe.rewrite.copy import Element, copy_block
from stripe.rewrite.locate import placed_as, unknown_unit
from stripe.rewrite.options import TagSet
from stripe.rewrite.pass_in import pass_index
from stripe.rewrite.refusal import Refusal
from stripe.rewrite.regions import Region, regions_of


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """The form of a copy: its memory (the view's own where empty), the unit of its copy blocks, its layout by a map
    without floors (None: row-major), and the tags of its copy blocks."""

    memory: Location = Location()
    transfer: Location = Location()
    layout: IndexMap | None = None
    load_set: TagSet = ("cache", "cache_load")
    store_set: TagSet = ("cache", "cache_store")


@dataclass(frozen=True, slots=True)
class Cached:
    """An entry in which a view is cached, and the size of the copy in words."""

    entry: Block
    summary: str


def cache_view(entry: Block, path: Path, name: str, options: CacheOptions) -> Cached | Refusal:
    """The entry in which the block at `path` works on a copy of its view `name`; a refusal where other accesses would
    meet the copy's elements meanwhile, where the copy would lack values that are read or merged with, and where a unit
    uses an index that a copy block lacks."""
    nest = nest_at(entry, path)
    parts = through_view(nest, name)
    box = box_of(parts)
    if box is None:
        return Refusal("nothing is touched through it")
    buffer = nest.views[name].buffer
    for other in [ref.name for ref in nest.block.refinements if ref.name != name]:
        theirs = _through(nest, name, other) if nest.views[other].buffer == buffer else []
        if any(_meet_while_copied(*pair, nest) for pair in product(parts, theirs)):
            return Refusal(f"'{other}' touches the same elements meanwhile")
    loads = regions_of(nest, name, [part for part in parts if not part.is_write], box, exact=False)
    writes = [part for part in parts if part.is_write]
    agg = _merged_by(entry, nest, parts)
    if isinstance(agg, Refusal):
        return agg
    stores = regions_of(nest, name, writes, box, exact=agg is Agg.ASSIGN)
    if writes and loads:
        if not _written_first(nest, parts):
            return Refusal("it is read before it is written inside")
        loads = []
    if loads and _merges_gaps(entry, path, parts):
        return Refusal("unwritten elements are merged on, and a copy would read them")
    entry, loads = _made_visible(entry, path, loads)
    entry, stores = _made_visible(entry, path, stores)
    cached = replace_at(entry, path, lambda block: _cached(block, name, box, loads, stores, agg, options))
    lacking = unknown_unit(block_at(cached, path))
    if lacking is not None:
        return Refusal(f"a unit uses the index '{lacking}', not known inside")
    sizes = tuple(high - low + 1 for low, high in box)
    size = prod(sizes) * nest.block.ref(name).dtype.bytes
    where = options.memory or "a copy"
    return Cached(cached, f"{name}: {size} bytes in {where}, {'x'.join(map(str, sizes)) or '1'}")


def _through(nest: Nest, name: str, other: str) -> list[Access]:
    """The accesses through the view `other`, relative to the origin of `name`, another view of the buffer."""
    shift = list(map(sub, nest.views[other].origin, nest.views[name].origin))
    parts = through_view(nest, other)
    return [replace(part, index=tuple(map(add, part.index, shift))) for part in parts]


def _meet_while_copied(mine: Access, other: Access, nest: Nest) -> bool:
    """Whether a copy for `mine`, loaded first and stored last, hides a write from `mine` or from `other`."""
    if mine.is_write:
        merge = other.is_write and mine.agg is other.agg and mine.agg is not Agg.ASSIGN
        hidden = mine.path < other.path and not merge
    else:
        hidden = other.is_write and other.path < mine.path
    prefix = nest.prefix(nest.depth)
    return hidden and not touched_at(mine, prefix).disjoint(touched_at(other, prefix))


def _merged_by(entry: Block, nest: Nest, parts: Sequence[Access]) -> Agg | Refusal:
    """The aggregation by which a copy without earlier contents is stored. Elements that are assigned first inside hold
    their last values there; others hold the contributions merged inside.
    """
    writes = [part for part in parts if part.is_write]
    merges = [part for part in writes if part.agg is not Agg.ASSIGN]
    if all(assigned_before(merge, writes) for merge in merges):
        return Agg.ASSIGN
    agg = merges[0].agg
    is_mixed = any(part.agg is not agg for part in writes)
    if (is_mixed or len(writes) < len(parts)) and not begins_inside(entry, nest, parts[0].buffer, agg):
        return Refusal(
            f"some elements are merged by {agg.value} inside, others in another way"
            if is_mixed
            else f"it is read inside, where a copy lacks the values that {agg.value} merges with"
        )
    return Agg.ASSIGN if is_mixed else agg


def assigned_before(merge: Access, writes: Sequence[Access]) -> bool:
    """Whether each point of a block around assigns, in statements before, all elements that it merges."""
    return covered_before(merge, [part for part in writes if part.agg is Agg.ASSIGN])


def covered_before(access: Access, writes: Sequence[Access]) -> bool:
    """Whether each point of a block around writes, in statements before, all elements that an access touches."""
    earlier = [(common_depth(part, access), part) for part in writes if part.path < access.path]
    return any(
        _covered([access], [part for shared, part in earlier if shared >= depth], access.nest.prefix(depth))
        for depth in {depth for depth, _ in earlier}
    )


def writes_before(nest: Nest, buffer: Buffer) -> list[Access]:
    """The writes outside of a block that may come before it: those of statements before, and all others inside of a
    block of several points around both."""
    owner, path = nest_at(nest.blocks[0], buffer.path), nest.path
    repeated = [depth for depth in range(len(buffer.path), len(path) - 1) if nest.blocks[depth].points > 1]
    return [
        part
        for part in through_view(owner, buffer.name)
        if part.is_write
        and part.path[: len(path)] != path
        and (part.path < path or any(part.path[: depth + 1] == path[: depth + 1] for depth in repeated))
    ]


def begins_inside(entry: Block, nest: Nest, buffer: Buffer, agg: Agg) -> bool:
    """Whether each element of a buffer that the block touches begins at the identity of `agg`, and one point of the
    block alone touches it until the block ends."""
    owner = nest_at(entry, buffer.path)
    if beginnings(owner.block)[buffer.name] is not agg or owner.block.ref(buffer.name).is_kept:
        return False
    everywhere = through_view(owner, buffer.name)
    inside = [part for part in everywhere if part.path[: len(nest.path)] == nest.path]
    earlier = writes_before(nest, buffer)
    around, prefix = owner.prefix(owner.depth), nest.prefix(nest.depth)
    names = element_names(len(inside[0].index))
    touched = union((touched_at(part, prefix) for part in inside), (*prefix, *names))
    return (
        all(overlap(part, mine).is_empty for part in earlier for mine in inside)
        and Relation.from_points(touched, prefix[len(around) :], (*around, *names)).injective
    )


def _written_first(nest: Nest, parts: Sequence[Access]) -> bool:
    """Whether all writing statements of the block stand before all reading statements, and write all elements read."""
    depth = len(nest.path)
    readers = [part for part in parts if not part.is_write]
    writers = [part for part in parts if part.is_write]
    first_read = min(part.path[depth] for part in readers)
    return max(part.path[depth] for part in writers) < first_read and _covered(
        readers, writers, nest.prefix(nest.depth)
    )


def _merges_gaps(entry: Block, path: Path, parts: Sequence[Access]) -> bool:
    """Whether the block at `path` merges on unwritten elements of an accumulator."""
    loads = ((part.nest.block, part.statement) for part in parts)
    if all(
        Agg.ASSIGN in aggregations_of(block, load.into) for block, load in loads if isinstance(load, Load)
    ):
        return False
    owner = nest_at(entry, parts[0].buffer.path)
    everywhere = through_view(owner, parts[0].buffer.name)
    inside = [part for part in everywhere if not part.is_write and part.path[: len(path)] == path]
    writers = [part for part in everywhere if part.is_write]
    earlier = [part for part in writers if part.path[: len(path)] <= path]
    return any(part.agg is not Agg.ASSIGN for part in writers) and not _covered(
        inside, earlier, owner.prefix(owner.depth)
    )


def _covered(reads: Sequence[Access], writers: Sequence[Access], prefix: Sequence[str]) -> bool:
    """Whether, at each point of the indices `prefix`, all elements read are written."""
    names = (*prefix, *element_names(len(reads[0].index)))
    read, written = (union((touched_at(part, prefix) for part in side), names) for side in (reads, writers))
    return read.subset_of(written)


def _made_visible(entry: Block, path: Path, regions: list[Region]) -> tuple[Block, list[Region]]:
    """The regions in the block's own index names; indices further out are passed in."""
    result: list[Region] = []
    for region in regions:
        outer = sorted({n for affine in region for n in affine.names() if "@" in n})
        mapping: dict[str, Affine] = {}
        for qualified in outer:
            index, _, depth = qualified.partition("@")
            entry, own = pass_index(entry, path, int(depth), index)
            mapping[qualified] = Affine.var(own)
        result.append(tuple([affine.subs(mapping) for affine in region]))
    return entry, result


def _cached(
    block: Block,
    name: str,
    box: Sequence[Interval],
    loads: Sequence[Region],
    stores: Sequence[Region],
    agg: Agg,
    options: CacheOptions,
) -> Block:
    view = block.ref(name)
    raw_name = fresh(f"{name}_raw", {ref.name for ref in block.refinements})
    direction = Direction.INOUT if loads and stores else Direction.OUT if stores else Direction.IN
    raw = replace(view, name=raw_name, dir=direction)
    # the allocation holds the box
    sizes = [high - low + 1 for low, high in box]
    memory, merged = options.memory or view.location, own_aggregation(block, name)
    copy = Refinement.alloc(
        view.name, view.dtype, tuple(sizes), agg=merged, location=memory, tags=Tags.of("cached")
    )
    strides = copy.strides if options.layout is None else options.layout.strides(sizes)
    copy = copy.with_strides(strides)
    lows = [low for low, _ in box]
    block = map_views(block, {name: lambda ref: placed_as(ref, copy)})
    # views of the copy count from its first element
    inner = [views_moved(statement, {name: [-low for low in lows]}) for statement in block.statements]
    loading = [transfer_block(block, raw, copy, lows, region, options, load=True) for region in loads]
    storing = [
        transfer_block(block, raw, copy, lows, region, options, load=False, agg=agg) for region in stores
    ]
    # copies of other views stay in front
    first = next(
        (n for n, s in enumerate(inner) if not s.tags.has_all(options.load_set) or name in refs_used(s)), 0
    )
    inner = [moved_down(statement, len(loading), first) for statement in inner]
    refs: list[Refinement] = []
    for ref in block.refinements:
        refs += [raw, copy] if ref.name == name else [ref]
    return replace(
        block, refinements=tuple(refs), statements=(*inner[:first], *loading, *inner[first:], *storing)
    )


def transfer_block(
    block: Block,
    raw: Refinement,
    copy: Refinement,
    lows: Sequence[int],
    region: Region,
    options: CacheOptions,
    *,
    load: bool,
    agg: Agg = Agg.ASSIGN,
) -> Block:
    """The copy block for `block` that moves a region from the far view `raw` to the near `copy` (`load`), or back.

    Element e of the copy is element `lows` + e of the view; stores merge by `agg`.
    """
    taken = {index.name for index in block.indices}
    own = [fresh(f"d{dim}", taken) for dim in range(copy.rank)]
    elements = zip(element_names(copy.rank), own, lows, strict=True)
    back = {element: Affine.var(name) + low for element, name, low in elements}
    constraints = tuple(Constraint(affine.subs(back)) for affine in region)
    passed_names = sorted({n for c in constraints for n in c.affine.names()} - set(own))
    # the smallest stride of the far memory is innermost
    dims = sorted(range(copy.rank), key=lambda dim: -abs(raw.strides[dim]))
    indices = [Index(own[dim], copy.sizes[dim]) for dim in dims]
    passed = (Index(name, 1, Affine.var(name)) for name in passed_names)
    near = Element(copy, tuple(Affine.var(name) for name in own))
    far = Element(raw, tuple(Affine.var(name) + low for name, low in zip(own, lows, strict=True)))
    tags = Tags.of(*(options.load_set if load else options.store_set))
    return copy_block(
        f"load_{copy.name}" if load else f"store_{copy.name}",
        (*indices, *passed),
        *((far, near) if load else (near, far)),
        tags,
        agg=agg,
        location=options.transfer,
        constraints=constraints,
        scalar=copy.name,
    )
