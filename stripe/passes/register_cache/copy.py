"""How a copy in local memory becomes one in registers: the transfer is undone, then made again further in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from stripe.ir import (
    Block,
    Direction,
    Load,
    Location,
    Nest,
    Path,
    Refinement,
    Statement,
    Store,
    block_at,
    keep_statements,
    map_views,
    nest_at,
    replace_at,
    uses_of,
    walk,
)
from stripe.passes.base import PassContext, Refusal, TagSet
from stripe.poly import (
    PolyLimit,
    box_volume,
    count_accesses,
    count_domain,
    leaf_accesses,
    through_view,
    view_box,
)
from stripe.rewrite.cached import CacheOptions, cache_view
from stripe.rewrite.locate import placed_as


@dataclass(frozen=True, slots=True)
class RegisterOptions:
    """The options of the pass `register_cache`; see there."""

    reqs: tuple[str, ...]
    local: Location
    registers: Location
    loads: bool
    comp_parent_tag: str
    register_bytes: int
    align_bytes: int
    load_set: TagSet
    store_set: TagSet

    @property
    def cache(self) -> CacheOptions:
        return CacheOptions(self.registers, load_set=self.load_set, store_set=self.store_set)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Cycles of one access to far, local and register memory."""

    far: float
    local: float
    register: float


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy of `far` in local memory: statement `transfer` moves element e to or from element e + lows of `far`."""

    near: Refinement
    far: Refinement
    transfer: int
    user: int
    lows: tuple[int, ...]


def to_registers(
    entry: Block,
    options: RegisterOptions,
    latencies: Callable[[str], Latencies],
    context: PassContext,
) -> Block:
    """`entry` with the copies moved that gain by it. `latencies` gets the name of the far memory."""
    for path in [path for path, block in walk(entry) if block.tags.has_all(options.reqs)]:
        for name in [ref.name for ref in block_at(entry, path).allocs if ref.location == options.local]:
            try:
                entry = _moved(entry, path, name, options, latencies, context)
            except PolyLimit as limit:
                reason = f"its uses cannot be counted: {limit}"
                context.missed(block_at(entry, path), f"{name} stays in {options.local}: {reason}")
    return entry


def _moved(
    entry: Block,
    path: Path,
    name: str,
    options: RegisterOptions,
    latencies: Callable[[str], Latencies],
    context: PassContext,
) -> Block:
    block = block_at(entry, path)
    copy = _find_copy(block, name, options)
    if isinstance(copy, str):
        context.missed(block, f"{name} stays in {options.local}: {copy}")
        return entry
    target = _compute_path(block, path, copy, options)
    if target is None:
        context.missed(
            block,
            f"{name} stays in {options.local}: no block tagged '{options.comp_parent_tag}' uses it alone",
        )
        return entry
    where, inner_name = target
    near = nest_at(entry, where)
    needed, held = _registers(near, inner_name, copy, options)
    reason = _disagreement(entry, path, where, inner_name, copy)
    if needed + held > options.register_bytes:
        reason = (
            f"{needed} bytes for each point of {near.block.name}, beside {held} held, "
            f"but there are registers of {options.register_bytes} bytes"
        )
    if reason:
        context.missed(block, f"{name} stays in {options.local}: {reason}")
        return entry
    undone = replace_at(entry, path, lambda outer: _undone(outer, copy))
    # the transfer is gone, so that later statements moved up by one
    moved_up = where[len(path)] - (1 if copy.transfer < copy.user else 0)
    where_now = (*path, moved_up, *where[len(path) + 1 :])
    cached = cache_view(undone, where_now, inner_name, options.cache)
    if isinstance(cached, Refusal):
        context.missed(block, f"{name} stays in {options.local}: {inner_name} is not cached: {cached}")
        return entry
    result = cached.entry
    cost = latencies(_unit(copy.far))
    uses = sum(count_accesses(access) for access in through_view(near, inner_name))
    copies = count_domain(nest_at(entry, (*path, copy.transfer)).domain)
    new_copies = _transferred(result, where_now, inner_name, options)
    before = cost.local * uses + (cost.local + cost.far) * copies
    after = cost.register * uses + (cost.register + cost.far) * new_copies
    numbers = (
        f"{needed} of {options.register_bytes} bytes, {uses} uses, {copies} copies before, {new_copies} after, "
        f"{before:g} cycles before, {after:g} after"
    )
    if before == after == 0:
        context.missed(
            block, f"{name} stays in {options.local}: all latencies are 0, so that nothing can gain"
        )
        return entry
    if before < after:
        context.missed(block, f"{name} stays in {options.local}: no gain, {numbers}")
        return entry
    context.applied(block, f"{name} moved from {options.local} to {options.registers}: {numbers}")
    return result


def _transferred(entry: Block, path: Path, name: str, options: RegisterOptions) -> int:
    """How often the blocks run that move the elements of the copy `name` of the block at `path`."""
    tags = options.load_set if options.loads else options.store_set
    block = block_at(entry, path)
    numbers = [n for n in uses_of(block, name) if block.statements[n].tags.has_all(tags)]
    return sum(count_domain(nest_at(entry, (*path, number)).domain) for number in numbers)


def _registers(nest: Nest, name: str, copy: _Copy, options: RegisterOptions) -> tuple[int, int]:
    """Bytes of registers for what one point of the nest's innermost block uses, and bytes that are taken there."""

    def aligned(count: int) -> int:
        return -(-count // options.align_bytes) * options.align_bytes

    elements = box_volume(view_box(nest, name) or ())
    blocks = (inner for _, inner in walk(nest.block))
    held = sum(aligned(r.bytes) for inner in blocks for r in inner.allocs if r.location == options.registers)
    return aligned(elements * copy.near.dtype.bytes), held


def _unit(ref: Refinement) -> str:
    return ref.location.devices[-1].name if ref.location.devices else ""


def _find_copy(block: Block, name: str, options: RegisterOptions) -> _Copy | str:
    """The transfer behind the allocation `name`, or why there is none of the kind that is asked for."""
    tags = options.load_set if options.loads else options.store_set
    uses = uses_of(block, name)
    transfers = [number for number in uses if block.statements[number].tags.has_all(tags)]
    users = [number for number in uses if number not in transfers]
    if len(transfers) != 1:
        return f"{len(transfers)} transfers {'fill' if options.loads else 'empty'} it"
    if len(users) != 1 or not isinstance(block.statements[users[0]], Block):
        return f"{len(users)} statements use it, not one block"
    transfer = block.statements[transfers[0]]
    assert isinstance(transfer, Block)
    found = _translation(transfer, name, options.loads)
    if found is None:
        return "its transfer is no plain copy"
    far_name, lows = found
    return _Copy(block.ref(name), block.ref(far_name), transfers[0], users[0], lows)


def _translation(transfer: Block, near: str, loads: bool) -> tuple[str, tuple[int, ...]] | None:
    """The far buffer of a transfer block, and where the first element of the copy lies in it."""
    match transfer.statements:
        case (Load(into, read), Store(written, value)) if into == value:
            source, target = transfer.ref(read), transfer.ref(written)
        case _:
            return None
    inner, outer = (target, source) if loads else (source, target)
    if inner.source != near or inner.rank != outer.rank or outer.is_alloc:
        return None
    shifts = [there - here for here, there in zip(inner.access, outer.access, strict=True)]
    if not all(shift.is_constant for shift in shifts):
        return None
    return outer.source, tuple(shift.offset for shift in shifts)


def _compute_path(block: Block, path: Path, copy: _Copy, options: RegisterOptions) -> tuple[Path, str] | None:
    """The block whose points get registers of their own, and the name of the copy's view in it."""
    where: Path = (*path, copy.user)
    inner = block.statements[copy.user]
    name = copy.near.name
    while isinstance(inner, Block):
        views = [ref for ref in inner.refinements if ref.source == name]
        wanted = Direction.IN if options.loads else Direction.OUT
        if len(views) != 1 or (options.loads and views[0].dir is not wanted):
            return None
        name = views[0].name
        if not options.comp_parent_tag or options.comp_parent_tag in inner.tags:
            return where, name
        users = uses_of(inner, name)
        if len(users) != 1:
            return None
        where = (*where, users[0])
        inner = inner.statements[users[0]]
    return None


def _disagreement(entry: Block, path: Path, where: Path, name: str, copy: _Copy) -> str:
    """Why what the user writes could not go to the far buffer directly, or empty."""
    transfer = nest_at(entry, (*path, copy.transfer))
    outwards = [access.agg for access in leaf_accesses(transfer, 1) if access.buffer.name != copy.near.name]
    inside = {access.agg for access in through_view(nest_at(entry, where), name) if access.is_write}
    if outwards and inside and inside != set(outwards):
        return (
            f"it is written by {', '.join(sorted(a.value for a in inside))}, sent on by {outwards[0].value}"
        )
    return ""


def _undone(block: Block, copy: _Copy) -> Block:
    """`block` without the copy: its user works on the far buffer."""
    user = block.statements[copy.user]
    assert isinstance(user, Block)
    user = _redirected(user, copy)
    statements: list[Statement] = list(block.statements)
    statements[copy.user] = user
    refs = tuple(
        replace(ref, dir=_direction(ref, copy, user)) if ref.name == copy.far.name else ref
        for ref in block.refinements
        if ref.name != copy.near.name
    )
    kept = [number for number in range(len(statements)) if number != copy.transfer]
    return keep_statements(replace(block, refinements=refs, statements=tuple(statements)), kept)


def _direction(ref: Refinement, copy: _Copy, user: Block) -> Direction:
    if copy.far.is_alloc:
        return ref.dir
    views = [inner.dir for inner in user.refinements if inner.source == copy.far.name]
    return (
        ref.dir if views[0] is ref.dir else Direction.INOUT if ref.dir.reads and ref.dir.writes else views[0]
    )


def _redirected(user: Block, copy: _Copy) -> Block:
    for view in [ref for ref in user.refinements if ref.source == copy.near.name]:
        moved = tuple(access + low for access, low in zip(view.access, copy.lows, strict=True))
        refs = tuple(
            replace(ref, source=copy.far.name, access=moved) if ref.name == view.name else ref
            for ref in user.refinements
        )
        user = map_views(replace(user, refinements=refs), {view.name: lambda ref: placed_as(ref, copy.far)})
    return user
