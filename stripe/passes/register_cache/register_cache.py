"""The pass `register_cache`."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

from pydantic import Field

from stripe.cost.time.machine import Machine
from stripe.ir import (
    Agg,
    Block,
    Direction,
    Load,
    Nest,
    Path,
    Program,
    Refinement,
    Store,
    block_at,
    keep_statements,
    map_views,
    nest_at,
    replace_at,
    uses_of,
    walk,
    with_entry,
    with_statement,
)
from stripe.ir.frozen import replace
from stripe.passes.base import (
    TILES,
    LocationSpec,
    Pass,
    PassContext,
    PassExample,
    PassGroup,
    Refusal,
    Reqs,
)
from stripe.poly import (
    PolyLimit,
    box_volume,
    count_accesses,
    count_domain,
    element_names,
    leaf_accesses,
    through_view,
    touched_at,
    union,
    view_box,
)
from stripe.poly.relations import Relation
from stripe.rewrite.cached import CacheOptions, cache_view
from stripe.rewrite.locate import placed_as


@dataclass(frozen=True, slots=True)
class _LocalCopy:
    """A copy of `far` in local memory: statement `transfer` moves element e to or from element e + lows of `far`."""

    near: Refinement
    far: Refinement
    transfer: int
    user: int
    lows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Moved:
    """An entry in which a copy is in registers, with the numbers that speak for it."""

    entry: Block
    numbers: str


class RegisterCache(Pass):
    """Replaces copies in local memory by copies in registers, where these are faster and there are enough.

    `{ "reqs": ["tile"], "local_loc": { "name": "VTCM" }, "register_loc": { "name": "REGS" },
    "comp_parent_tag": "thread" }`:

        #tile block [x:8] (                       #tile block [x:8] (
            in<DDR[0]> I_raw = I[8*x] (8:1)           in<DDR[0]> I_raw = I[8*x] (8:1)
            none new@…<VTCM[0]> I[0] (8:1)            out<DDR[0]> O[8*x]:add (8:1)
            out<DDR[0]> O[8*x]:add (8:1)            0: #thread block [y:4] (
        ) {                                             in<DDR[0]> I_raw[2*y] (2:1)
          0: #cache #cache_load block [d0:8] (          #cached none new@…<REGS[0]> I[0] (2:1)
              in<DDR[0]> I_raw[d0]            =>        out<DDR[0]> O[2*y]:add (2:1)
              out<VTCM[0]> I[d0] ) { … }              0: #cache #cache_load block [d0:2] (
          1: #thread block [y:4] (                        in<DDR[0]> I_raw[d0] …
              in<VTCM[0]> I[2*y] (2:1)                    out<REGS[0]> I[d0] …
              out<DDR[0]> O[2*y]:add (2:1)            1: block [i:2, k:9] (
          ) {                                             in<REGS[0]> I[i] …
            0: block [i:2, k:9] (
                in<VTCM[0]> I[i]
                out<DDR[0]> O[i]:add ) { … }
          }
        }

    A copy moves when the footprint of one point of the block tagged `comp_parent_tag` fits into the registers that
    are left, and when, with L, G and R the latencies of local, global and register memory in the hardware model,
    `L*uses + (L + G)*copies >= R*uses + (R + G)*new_copies`: uses are the accesses inside, copies the
    elements that the transfer moves now, new_copies those that it moves for all points of that block together, all
    exact. Registers that are no memory of the model are those of the first unit that has some, without latency.
    """

    pass_name: ClassVar[str] = "register_cache"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(
        "reqs=[tile],local_loc={name:VTCM},register_loc={name:REGS},comp_parent_tag=lanes",
        after=(
            TILES,
            "cache{reqs=[tile],mem_loc={name:VTCM}}",
            "partition{reqs=[inner],num_parts=4,set_tags=[lanes]}",
        ),
        hardware="edge_npu",
    )

    reqs: Reqs
    local_loc: LocationSpec = Field(description="memory of the copies to replace")
    register_loc: LocationSpec = Field(description="location of the registers")
    dir: Literal["in", "out"] = Field(default="in", description="copies of operands, or of results")
    comp_parent_tag: str = Field(
        default="", description="tag of the block, inside, for each point of which registers are loaded"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        """Raises ConfigError without a hardware model that has the registers."""
        machine = Machine(context.need_hardware("register_cache"))
        context.check_unit(self.local_loc)
        entry, local = program.entry, self.local_loc.location()
        paths = [path for path, block in walk(entry) if block.words.has_all(self.reqs)]
        # Blocks before those around them: a rewrite moves the statements of its block, and so the paths inside.
        for path in sorted(paths, key=lambda path: (*path, inf)):
            block = block_at(entry, path)
            for name in [ref.name for ref in block.allocs if ref.location == local]:
                try:
                    answer = self._moved(entry, path, name, machine)
                except PolyLimit as limit:
                    answer = Refusal(f"its uses cannot be counted: {limit}")
                if isinstance(answer, Refusal):
                    context.missed(block, f"{name} stays in {local}: {answer.reason}")
                    continue
                entry = answer.entry
                context.applied(
                    block, f"{name} moved from {local} to {self.register_loc.location()}: {answer.numbers}"
                )
        return with_entry(program, entry)

    def _moved(self, entry: Block, path: Path, name: str, machine: Machine) -> _Moved | Refusal:
        block = block_at(entry, path)
        copy = self._find_copy(block, name)
        if isinstance(copy, Refusal):
            return copy
        target = self._compute_path(block, path, copy)
        if target is None:
            return Refusal(f"no block tagged '{self.comp_parent_tag}' uses it alone")
        where, inner_name = target
        near = nest_at(entry, where)
        memory = machine.model.mem_units.get(self.register_loc.name)
        if memory is None:  # the registers of the first unit that has some
            room = machine.model.exec_unit_with("registers").register_file_bytes or 0
        else:
            room = memory.size
        needed = box_volume(view_box(near, inner_name) or ()) * copy.near.dtype.bytes
        registers = self.register_loc.location()
        blocks = (inner for _, inner in walk(near.block))
        held = sum(ref.bytes for inner in blocks for ref in inner.allocs if ref.location == registers)
        if needed + held > room:
            return Refusal(
                f"{needed} bytes for each point of {near.block.name}, beside {held} held, "
                f"but there are registers of {room} bytes"
            )
        # the user can write to the far buffer directly when it merges as the transfer does
        accesses = leaf_accesses(nest_at(entry, (*path, copy.transfer)), 1)
        outwards = [access.agg for access in accesses if access.buffer.name != copy.near.name]
        inside = {access.agg for access in through_view(near, inner_name) if access.is_write}
        if outwards and inside and inside != set(outwards):
            written = ", ".join(sorted(agg.value for agg in inside))
            return Refusal(f"it is written by {written}, sent on by {outwards[0].value}")
        reason = self._unlike_far(nest_at(entry, path), copy)
        if reason is not None:
            return Refusal(reason)
        # The user works on the far buffer again, and its points get copies of their own. The transfer is gone, so that
        # later statements moved up by one.
        undone = replace_at(entry, path, lambda outer: _undone(outer, copy))
        moved_up = where[len(path)] - (1 if copy.transfer < copy.user else 0)
        where_now = (*path, moved_up, *where[len(path) + 1 :])
        cached = cache_view(undone, where_now, inner_name, CacheOptions(registers))
        if isinstance(cached, Refusal):
            return Refusal(f"{inner_name} is not cached: {cached}")
        uses = sum(count_accesses(access) for access in through_view(near, inner_name))
        copies = count_domain(nest_at(entry, (*path, copy.transfer)).domain)
        now = nest_at(cached.entry, where_now)
        transfers = (n for n in uses_of(now.block, inner_name) if self._is_transfer(now.block, n))
        new_copies = sum(count_domain(now.enter(number).domain) for number in transfers)
        far, local, register = self._latencies(copy, machine)
        before = local * uses + (local + far) * copies
        after = register * uses + (register + far) * new_copies
        numbers = (
            f"{needed} of {room} bytes, {uses} uses, {copies} copies before, {new_copies} after, "
            f"{before:g} cycles before, {after:g} after"
        )
        if before == after == 0:
            return Refusal("all latencies are 0, so that nothing can gain")
        return Refusal(f"no gain, {numbers}") if before < after else _Moved(cached.entry, numbers)

    def _unlike_far(self, nest: Nest, copy: _LocalCopy) -> str | None:
        """The reason why the user of a copy would find, or leave, something else in the far buffer."""
        buffer, depth = nest.views[copy.far.name].buffer, len(nest.path)
        owner = nest_at(nest.blocks[0], buffer.path)
        around = [part for part in through_view(owner, buffer.name) if part.path[:depth] == nest.path]
        moved = [part for part in around if part.path[depth] == copy.transfer]
        first, last = sorted((copy.transfer, copy.user))
        others = [
            part for part in around if first <= part.path[depth] <= last and part.path[depth] != copy.transfer
        ]
        prefix = nest.prefix(nest.depth)
        for other in others:
            if (self.dir == "out" or other.is_write) and any(
                not touched_at(other, prefix).disjoint(touched_at(part, prefix)) for part in moved
            ):
                return f"{copy.far.name} is {'written' if other.is_write else 'read'} meanwhile"
        if self.dir == "out":
            near = through_view(nest, copy.near.name)
            names = (*prefix, *element_names(copy.near.rank))
            sent, written = (
                union((touched_at(part, prefix) for part in near if part.is_write is write), names)
                for write in (False, True)
            )
            (store,) = moved
            own = store.nest.domain.names[len(prefix) :]
            places = Relation.from_points(
                store.relation.points(), own, (*prefix, *element_names(copy.far.rank))
            )
            if not written.subset_of(sent) or not places.injective:
                return "its transfer does not send each of its elements once"
        return None

    def _latencies(self, copy: _LocalCopy, machine: Machine) -> tuple[float, float, float]:
        """Cycles of one access to far, local and register memory."""
        far, model = machine.memory_of(machine.memory(copy.far.location)), machine.model
        local, registers = model.memory(self.local_loc.name), model.mem_units.get(self.register_loc.name)
        register = registers.read_latency_cycles if registers is not None else 0.0
        if self.dir == "in":
            return far.read_latency_cycles, local.read_latency_cycles, register
        return far.write_latency_cycles, local.write_latency_cycles, register

    def _is_transfer(self, block: Block, number: int) -> bool:
        tag = "cache_load" if self.dir == "in" else "cache_store"
        return block.statements[number].tags.has_all(("cache", tag))

    def _find_copy(self, block: Block, name: str) -> _LocalCopy | Refusal:
        """The copy block behind the allocation `name`, of the kind that is asked for."""
        uses = uses_of(block, name)
        transfers = [number for number in uses if self._is_transfer(block, number)]
        users = [number for number in uses if number not in transfers]
        if len(transfers) != 1:
            return Refusal(f"{len(transfers)} transfers {'fill' if self.dir == 'in' else 'empty'} it")
        if len(users) != 1 or not isinstance(block.statements[users[0]], Block):
            return Refusal(f"{len(users)} statements use it, not one block")
        transfer = block.statements[transfers[0]]
        assert isinstance(transfer, Block)
        match transfer.statements:
            case (Load(into, read), Store(written, value)) if into == value:
                source, sink = transfer.ref(read), transfer.ref(written)
                near, far = (sink, source) if self.dir == "in" else (source, sink)
                fills = (
                    self.dir == "out" or sink.agg is Agg.ASSIGN
                )  # what merges is no copy, whatever its tags
                if near.source == name and near.rank == far.rank and not far.is_alloc and fills:
                    shifts = [there - here for here, there in zip(near.access, far.access, strict=True)]
                    if all(shift.is_constant for shift in shifts):
                        lows = tuple(shift.offset for shift in shifts)
                        return _LocalCopy(
                            block.ref(name), block.ref(far.source), transfers[0], users[0], lows
                        )
            case _:
                pass
        return Refusal("its transfer is no plain copy")

    def _compute_path(self, block: Block, path: Path, copy: _LocalCopy) -> tuple[Path, str] | None:
        """The block whose points get registers of their own, and the name of the copy's view in it."""
        where: Path = (*path, copy.user)
        inner = block.statements[copy.user]
        name = copy.near.name
        while isinstance(inner, Block):
            views = [ref for ref in inner.refinements if ref.source == name]
            if len(views) != 1 or (self.dir == "in" and views[0].dir is not Direction.IN):
                return None
            name = views[0].name
            if not self.comp_parent_tag or self.comp_parent_tag in inner.tags:
                return where, name
            users = uses_of(inner, name)
            if len(users) != 1:
                return None
            where = (*where, users[0])
            inner = inner.statements[users[0]]
        return None


def _undone(block: Block, copy: _LocalCopy) -> Block:
    """`block` without the copy: its user works on the far buffer."""
    user = block.statements[copy.user]
    assert isinstance(user, Block)
    for view in [ref for ref in user.refinements if ref.source == copy.near.name]:
        moved = replace(view.moved(copy.lows), source=copy.far.name)
        refs = tuple(moved if ref.name == view.name else ref for ref in user.refinements)
        user = map_views(replace(user, refinements=refs), {view.name: lambda ref: placed_as(ref, copy.far)})
    direction = copy.far.dir
    if (
        not copy.far.is_alloc and direction is not Direction.INOUT
    ):  # as the user has it, which the transfer hid
        direction = next(view.dir for view in user.refinements if view.source == copy.far.name)
    refs = tuple(
        replace(ref, dir=direction) if ref.name == copy.far.name else ref
        for ref in block.refinements
        if ref.name != copy.near.name
    )
    block = with_statement(replace(block, refinements=refs), copy.user, user)
    return keep_statements(block, [n for n in range(len(block.statements)) if n != copy.transfer])
