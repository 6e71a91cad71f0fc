"""From the steps of a plan to IR: copies, transfers, statements on the copies, and their dependences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stripe.ir import (
    Affine,
    Agg,
    Block,
    ConfigError,
    Direction,
    Location,
    Nest,
    Path,
    Refinement,
    Statement,
    Tags,
    block_at,
    map_views,
    replace_at,
    retarget,
    row_major,
)
from stripe.passes.base import PassContext
from stripe.passes.schedule.banks import Place
from stripe.passes.schedule.plan import Entry, Run, Step, SwapIn, SwapOut
from stripe.poly import element_names, elements, pieces, through_view
from stripe.rewrite.cached import CacheOptions, Region, cache_view, transfer_block
from stripe.rewrite.locate import move_buffers, placed_as
from stripe.rewrite.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Target:
    """Where the copies lie and what moves them."""

    memory: str
    transfer: Location
    depth: int

    def location(self, bank: int) -> Location:
        """The memory of bank number `bank`."""
        return Location.of(self.memory, bank)

    def copying(self, bank: int) -> CacheOptions:
        """How views are copied into that bank."""
        return CacheOptions(self.location(bank), self.transfer)


def stream_operands(
    entry: Block, path: Path, steps: Sequence[Step], target: Target, context: PassContext
) -> Block:
    """Copies the streamed operands of each statement of the block at `path` tile by tile, inside the statement, and
    gives what it allocates itself its addresses.
    """
    for step in steps:
        if not isinstance(step, Run):
            continue
        for scratch, place in step.scratch.items():
            where = (*path, step.number, *scratch.path)
            entry = replace_at(
                entry, where, lambda b, s=scratch, at=place: _placed(b, s.name, at, s.buffers, target)
            )
        for name, place in step.streams.items():
            entry = _stream(entry, (*path, step.number), name, place, target, context)
    return entry


def _stream(entry: Block, path: Path, name: str, place: Place, target: Target, context: PassContext) -> Block:
    block = block_at(entry, path)
    for view in [ref.name for ref in block.refinements if ref.source == name]:
        cached = cache_view(entry, path, view, target.copying(place.bank))
        if isinstance(cached, Refusal):
            context.missed(block, cached.reason)
            raise ConfigError(
                f"{name} does not fit into the near memory whole, and {block.name} cannot take it tile by tile",
                hint="a tile reads it before it writes it; tile another way or enlarge the memory",
            )
        context.applied(block, cached.summary)
        entry = replace_at(
            cached.entry, path, lambda b, view=view, at=place: _placed(b, view, at, target.depth, target)
        )
        taken = block_at(entry, path).ref(view).bytes * target.depth
        place = replace(place, address=place.address + taken)
    return entry


def _placed(block: Block, name: str, place: Place, buffers: int, target: Target) -> Block:
    """Gives the allocation `name` of a block its address; `buffers` of it lie behind each other there."""
    block = move_buffers(block, {name: target.location(place.bank)})

    def put(ref: Refinement) -> Refinement:
        tags = ref.tags.add("placed")
        return replace(ref, offset=place.address, tags=tags.set("buffers", buffers) if buffers > 1 else tags)

    refs = tuple(put(ref) if ref.name == name else ref for ref in block.refinements)
    tags = block.tags.set("pipeline_depth", buffers) if buffers > 1 else block.tags
    return replace(block, refinements=refs, tags=tags)


def build_statements(
    nest: Nest, steps: Sequence[Step], entries: Sequence[Entry], target: Target
) -> tuple[Block, list[Step]]:
    """The innermost block of `nest` with the copies allocated and the steps as its statements, in their order."""
    block = nest.block
    copies = {entry.name: _copy(block.ref(entry.buffer), entry, target) for entry in entries}
    written = _written_regions(nest)
    statements: list[Statement] = []
    for step in steps:
        match step:
            case SwapIn(entry) | SwapOut(entry):
                far, copy = block.ref(entry.buffer), copies[entry.name]
                moved = _swap(
                    block, far, copy, written, target, entry.place.bank, load=isinstance(step, SwapIn)
                )
                statements.extend(moved)
            case Run(number, on, _):
                statements.append(
                    _on_copies(block.statements[number], {n: copies[e.name] for n, e in on.items()})
                )
    expanded = [s for step in steps for s in [step] * _width(step, written)]
    refs = (*block.refinements, *copies.values())
    return replace(
        block, refinements=refs, statements=tuple(replace(s, deps=()) for s in statements)
    ), expanded


def _width(step: Step, written: dict[str, list[Region]]) -> int:
    """Statements that a step becomes: a transfer of a region in several pieces takes several."""
    return 1 if isinstance(step, Run) else len(written.get(step.entry.buffer, [Region(())]))


def _copy(far: Refinement, entry: Entry, target: Target) -> Refinement:
    """The allocation of a whole copy, compact, at its address."""
    zeros = (Affine(),) * far.rank
    tags = Tags.of("cached", "placed")
    return Refinement(
        entry.name, Direction.NONE, "", zeros, far.dtype, row_major(far.sizes),
        location=target.location(entry.place.bank), offset=entry.place.address, tags=tags,
    )  # fmt: skip


def _written_regions(nest: Nest) -> dict[str, list[Region]]:
    """For each view that the block writes only in part, which of its elements; only these may be transferred."""
    found: dict[str, list[Region]] = {}
    for ref in nest.block.refinements:
        if not ref.dir.writes:
            continue
        names = element_names(ref.rank)
        writers = [access for access in through_view(nest, ref.name) if access.is_write]
        touched = elements(writers, ref.rank).coalesced()
        whole = (
            elements([], ref.rank)
            .universe(names)
            .where(
                [
                    a
                    for n, size in zip(names, ref.sizes, strict=True)
                    for a in (Affine.var(n), size - 1 - Affine.var(n))
                ]
            )
        )
        if not whole.subset_of(touched):
            found[ref.name] = [Region(piece.gist(whole).affines()) for piece in pieces(touched)]
    return found


def _swap(
    block: Block,
    far: Refinement,
    copy: Refinement,
    written: dict[str, list[Region]],
    target: Target,
    bank: int,
    *,
    load: bool,
) -> list[Statement]:
    verb = "swap_in" if load else "swap_out"
    moved: list[Statement] = []
    for region in written.get(far.name, [Region(())]):
        made = transfer_block(
            block, far, copy, [0] * far.rank, region, target.copying(bank), load=load, agg=Agg.ASSIGN
        )
        moved.append(replace(made, name=f"{verb}_{copy.name}", tags=made.tags.add(verb)))
    return moved


def _on_copies(statement: Statement, copies: dict[str, Refinement]) -> Statement:
    """The statement working on the copies in place of the buffers of these names."""
    moved = retarget(statement, {name: copy.name for name, copy in copies.items()})
    if not isinstance(moved, Block):
        return moved
    by_name = {copy.name: copy for copy in copies.values()}
    views = {ref.name: by_name[ref.source] for ref in moved.refinements if ref.source in by_name}
    return map_views(
        moved, {name: lambda view, copy=copy: placed_as(view, copy) for name, copy in views.items()}
    )


def reuse_deps(steps: Sequence[Step]) -> list[set[int]]:
    """Dependences that come from memory alone: who takes a range waits for all who used what lay there before."""
    deps: list[set[int]] = [set() for _ in steps]
    owners: list[tuple[Place, list[int]]] = _owners(steps)
    for later, (place, users) in enumerate(owners):
        for earlier, before in owners[:later]:
            if place.overlaps(earlier) and max(before) < min(users):
                for user in users:
                    deps[user].update(before)
    return deps


def _owners(steps: Sequence[Step]) -> list[tuple[Place, list[int]]]:
    """Each range of memory that something holds, with the numbers of the steps that use it, by first use."""
    found: dict[object, tuple[Place, list[int]]] = {}
    for number, step in enumerate(steps):
        entries = step.entries.values() if isinstance(step, Run) else [step.entry]
        for entry in entries:
            found.setdefault(entry.name, (entry.place, []))[1].append(number)
        if isinstance(step, Run):
            own = (*step.streams.items(), *step.scratch.items())
            found.update({(number, key): (place, [number]) for key, place in own})
    return sorted(found.values(), key=lambda item: (item[1][0], item[0].bank, item[0].address))


def reduced(deps: Sequence[set[int]]) -> list[tuple[int, ...]]:
    """The dependences without those that follow from others."""
    reach: list[int] = []  # bit sets
    result: list[tuple[int, ...]] = []
    for wanted in deps:
        seen = 0
        direct: list[int] = []
        for dep in sorted(wanted, reverse=True):
            if not seen >> dep & 1:
                direct.append(dep)
                seen |= reach[dep] | 1 << dep
        reach.append(seen)
        result.append(tuple(sorted(direct)))
    return result
