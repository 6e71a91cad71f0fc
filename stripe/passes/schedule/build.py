"""From the steps of a plan to IR: copies, copy blocks, statements on the copies, and dependences of reused memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stripe.ir import (
    Block,
    ConfigError,
    Location,
    Nest,
    Path,
    Refinement,
    Statement,
    Tags,
    block_at,
    map_views,
    own_aggregation,
    replace_at,
    retarget,
)
from stripe.ir.frozen import replace
from stripe.passes.base import PassContext
from stripe.passes.schedule.banks import BankRange, Banks
from stripe.passes.schedule.plan import Execute, NearCopy, ResidencyPlanner, ScheduleStep, SwapIn
from stripe.passes.schedule.written import WrittenElements
from stripe.rewrite.cached import CacheOptions, cache_view, transfer_block
from stripe.rewrite.locate import move_buffers, placed_as
from stripe.rewrite.refusal import Refusal


def stream_operands(
    entry: Block,
    path: Path,
    planner: ResidencyPlanner,
    turns: Iterator[Location],
    context: PassContext,
) -> Block:
    """Copies the streamed operands of each statement of the block at `path` tile by tile, inside the statement, on
    units by `turns` and through the buffers of the plan, and gives its scratch buffers their addresses.
    """
    banks, depth = planner.banks, planner.depth
    for step in planner.steps:
        if not isinstance(step, Execute):
            continue
        number = (*path, step.number)
        copies = depth * planner.needs[step.number].instances
        for scratch, place in step.scratch.items():
            entry = _placed(
                entry, (*number, *scratch.path), scratch.name, place, scratch.buffers, scratch.copies, banks
            )
        for name, place in step.streams.items():
            block = block_at(entry, number)
            for view in [ref.name for ref in block.refinements if ref.source == name]:
                cached = cache_view(entry, number, view, CacheOptions(place.location, next(turns)))
                if isinstance(cached, Refusal):
                    context.missed(block, f"{view} is not cached: {cached}")
                    raise ConfigError(
                        f"{name} does not fit into the near memory whole, and {block.name} cannot take it tile by tile",
                        hint="a tile reads it before it writes it; tile another way or enlarge the memory",
                    )
                context.applied(block, cached.summary)
                entry = _placed(cached.entry, number, view, place, depth, copies, banks)
                # Further views of the operand lie behind this one.
                taken = banks.aligned(block_at(entry, number).ref(view).bytes) * copies
                place = replace(place, address=place.address + taken)
    return entry


def _placed(
    entry: Block, path: Path, name: str, place: BankRange, buffers: int, copies: int, banks: Banks
) -> Block:
    """Gives the allocation `name` of the block at `path` its address; `copies` of it lie behind each other there,
    `buffers` of them for tiles in flight."""

    def put(block: Block) -> Block:
        block = move_buffers(block, {name: place.location})
        if buffers > 1:
            block = replace(block, pipeline_depth=buffers)
        refs = (
            _addressed(ref, place, copies, banks) if ref.name == name else ref for ref in block.refinements
        )
        return replace(block, refinements=tuple(refs))

    return replace_at(entry, path, put)


def _addressed(ref: Refinement, place: BankRange, copies: int, banks: Banks) -> Refinement:
    """The allocation with its address, and copies of which each is aligned."""
    distance = banks.aligned(ref.bytes)
    pitch = distance if copies > 1 and distance > ref.bytes else None
    return replace(ref, offset=place.address, copies=copies, pitch=pitch)


def build_statements(
    nest: Nest,
    planner: ResidencyPlanner,
    turns: Iterator[Location],
    written: WrittenElements,
) -> tuple[Block, list[ScheduleStep]]:
    """The innermost block of `nest` with the copies allocated and the planned steps as its statements, in their order,
    without dependences; and the step of each statement: a swap of several pieces takes several statements. Swaps move
    elements that are `written`. Raises ConfigError where statements read others.
    """
    block = nest.block
    allocs: dict[NearCopy, Refinement] = {}
    for copy in planner.copies:
        far, place = block.ref(copy.buffer), copy.place
        near = Refinement.alloc(
            copy.name,
            far.dtype,
            far.sizes,
            agg=own_aggregation(block, far.name),
            location=place.location,
            tags=Tags.of("cached"),
        )
        allocs[copy] = _addressed(near, place, planner.banks.users, planner.banks)
    statements: list[Statement] = []
    origins: list[ScheduleStep] = []
    done = -1
    stays: dict[NearCopy, list[int]] = {copy: [] for copy in planner.copies}
    for step in planner.steps:
        if isinstance(step, Execute):
            done = step.number
            for copy in step.copies.values():
                stays[copy].append(done)
            on = {name: allocs[copy] for name, copy in step.copies.items()}
            made = [_on_copies(block.statements[step.number], on)]
        else:
            copy, load = step.copy, isinstance(step, SwapIn)
            far = block.ref(copy.buffer)
            verb = "swap_in" if load else "swap_out"
            if load and written.has_read_gaps(copy.buffer):
                raise ConfigError(
                    f"{copy.buffer} leaves the near memory, and elements that nothing writes are read afterwards",
                    hint="enlarge the memory",
                )
            made: list[Statement] = []
            for region in written.regions(copy.buffer, done, stays[copy]):
                options = CacheOptions(copy.place.location, next(turns))
                moved = transfer_block(block, far, allocs[copy], [0] * far.rank, region, options, load=load)
                made.append(replace(moved, name=f"{verb}_{copy.name}", tags=moved.tags.add(verb)))
        statements += (replace(statement, deps=()) for statement in made)
        origins += [step] * len(made)
    refs = (*block.refinements, *allocs.values())
    return replace(block, refinements=refs, statements=tuple(statements)), origins


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


def reuse_deps(steps: Sequence[ScheduleStep]) -> list[set[int]]:
    """Dependences that come from memory alone: a statement that takes a range waits for all earlier users of the
    range."""
    # Each range that holds a copy, a stream or a scratch buffer, with the numbers of the steps that use it.
    owners: dict[object, tuple[BankRange, list[int]]] = {}
    for number, step in enumerate(steps):
        for copy in step.copies.values() if isinstance(step, Execute) else [step.copy]:
            owners.setdefault(copy, (copy.place, []))[1].append(number)
        if isinstance(step, Execute):
            for key, place in (*step.streams.items(), *step.scratch.items()):
                owners[number, key] = place, [number]
    deps: list[set[int]] = [set() for _ in steps]
    in_order = sorted(owners.values(), key=lambda item: (item[1][0], item[0].bank, item[0].address))
    for later, (place, users) in enumerate(in_order):
        for earlier, before in in_order[:later]:
            if place.overlaps(earlier) and max(before) < min(users):
                for user in users:
                    deps[user].update(before)
    return deps
