"""Independent checks of schedules and placements: they share no code with the passes that make them.

`check_schedule`: dependences order all conflicts, also of two buffers in one range of memory;
every unit reaches the memories of its operands; nothing exceeds a memory. `check_placement`: no two buffers that may be
alive at one time overlap, addresses are aligned and inside their memory. `check_traffic`: no bus and no memory carries
more in a time than its wires and ports can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Agg,
    Block,
    Buffer,
    Diagnostic,
    Nest,
    Path,
    Program,
    beginnings,
    reads_of,
    scalar_defined,
    scalars_used,
    walk,
    writes_of,
)
from stripe.poly import Access, accesses
from stripe.verify.machine.interference import (
    Interference,
    Placed,
    closure,
    in_flight,
    is_in,
    is_transfer,
    working_parts,
)
from stripe.verify.machine.reach import check_reach
from stripe.verify.machine.side_by_side import check_side_by_side
from stripe.verify.machine.units import Place, unit_of


def check_schedule(program: Program, hardware: HardwareModel | None = None) -> list[Diagnostic]:
    """All errors of a program at the stage `scheduled`; see the module."""
    found = check_dependences(program)
    nests = list(Nest.root(program.entry).walk())
    near = [placed for placed in _placed(program, nests) if placed.ref.location]
    found += [*_check_interference(nests, near), *check_side_by_side(near, _registers(hardware))]
    if hardware is not None:
        found += _check_capacity(near, hardware)
        found += check_reach(nests, hardware)
    return found


def check_dependences(program: Program) -> list[Diagnostic]:
    """Conflicts and uses of scalars between statements of main without a dependence that orders them."""
    nest = next(nest for nest in Nest.root(program.entry).walk() if nest.block.is_main)
    order = closure(nest.block)
    return [*_check_conflicts(nest, order), *_check_scalars(nest, order)]


def check_placement(program: Program, hardware: HardwareModel | None = None) -> list[Diagnostic]:
    """All errors in the addresses of a program at the stage `placed`; see the module."""
    nests = list(Nest.root(program.entry).walk())
    placed = _placed(program, nests)
    found = [*_check_interference(nests, placed), *check_side_by_side(placed, _registers(hardware))]
    for buffer in placed:
        found += _check_address(buffer, hardware)
        found += _check_copies(buffer)
        found += _check_inside_transfer(buffer)
    if hardware is not None:
        found += _check_capacity(placed, hardware)
    return found


@dataclass(frozen=True, slots=True)
class TimedTransfer:
    """Bytes that move between two times, in cycles, over `buses` (their numbers in the model) and through the ports of
    `memories` (`NAME[number]`, as often as each is read or written)."""

    name: str
    start: float
    end: float
    bytes: float
    buses: tuple[int, ...]
    memories: tuple[str, ...]


def check_traffic(traffic: Sequence[TimedTransfer], hardware: HardwareModel) -> list[Diagnostic]:
    """The stretches of a timetable in which a bus or the ports of a memory are overloaded.

    Concurrent transfers share the bytes of each cycle. A feasible sharing exists exactly when in each stretch of time
    the bytes that must move within it are no more than the bus can carry; a message tells the worst stretch.
    """
    found: list[Diagnostic] = []
    for number, bus in enumerate(hardware.buses):
        loads = [(t, t.bytes * t.buses.count(number)) for t in traffic if number in t.buses]
        found += _check_capacity_in_time(f"bus {bus.name or number}", loads, bus.bytes_per_cycle)
    for memory in dict.fromkeys(memory for t in traffic for memory in t.memories):
        unit = hardware.mem_units[memory.partition("[")[0]]
        if unit.port_bytes is not None:
            loads = [(t, t.bytes * t.memories.count(memory)) for t in traffic if memory in t.memories]
            width = unit.banks * unit.ports * unit.port_bytes
            found += _check_capacity_in_time(f"the ports of {memory}", loads, width)
    return found


def _check_capacity_in_time(
    what: str, loads: Sequence[tuple[TimedTransfer, float]], bytes_per_cycle: float
) -> Iterator[Diagnostic]:
    by_end = sorted(loads, key=lambda load: load[0].end)
    worst, stretch, needed = _ROUNDING, (0.0, 0.0, ""), 0.0
    for start in {t.start for t, _ in loads}:
        moved = 0.0
        for t, size in by_end:
            if t.start < start:
                continue
            moved += size
            late = moved / bytes_per_cycle - (t.end - start)
            if late > worst * max(1.0, t.end - start):
                worst, stretch, needed = late / max(1.0, t.end - start), (start, t.end, t.name), moved
    if needed:
        start, end, name = stretch
        room = bytes_per_cycle * (end - start)
        message = f"{what} would move {needed:.0f} bytes from cycle {start:.0f} to {end:.0f}, and can move {room:.0f}"
        yield Diagnostic(message, (0,), name, "let some of it start later")


_ROUNDING = 1e-6
"""Rounding of times: a delay below this part of a stretch is none."""


def _check_conflicts(nest: Nest, order: Sequence[int]) -> Iterator[Diagnostic]:
    """Two statements of main that touch a common element, one writing it, are ordered; so are two merges, each of which
    reads what it writes. The first statement that uses a buffer fills it where it begins at an identity: the others
    wait for it, whichever elements they touch."""
    depth = len(nest.path)
    by_buffer: dict[Buffer, list[Access]] = {}
    for access in accesses(nest):
        by_buffer.setdefault(access.buffer, []).append(access)
    said: set[tuple[int, int]] = set()
    for buffer, parts in by_buffer.items():
        filling = parts[0].path[depth] if _is_filled(nest, buffer) else None
        earlier: list[Access] = []
        writes: list[Access] = []
        for second in parts:
            fill = [parts[0]] if filling is not None and not second.is_write else []
            for first in earlier if second.is_write else [*fill, *writes]:
                one, two = pair = (first.path[depth], second.path[depth])
                if one == two or pair in said or is_in(one, order[two]) or is_in(two, order[one]):
                    continue
                if one == filling or not first.footprint.disjoint(second.footprint):
                    said.add(pair)
                    both = f"both touch '{buffer}'" if one != filling else f"which fills '{buffer}'"
                    message = f"no dependence orders it after statement {one}, {both}"
                    statement = nest.block.statements[two]
                    name = statement.name if isinstance(statement, Block) else ""
                    yield Diagnostic(message, (*nest.path, two), name, "run compute_deps or schedule")
            earlier.append(second)
            if second.is_write:
                writes.append(second)


def _is_filled(nest: Nest, buffer: Buffer) -> bool:
    """Whether a statement of main fills a buffer with an identity: it belongs to main or to the entry."""
    holder = nest if buffer.path == nest.path else nest.outer
    if holder is None or buffer.path != holder.path:
        return False
    return holder.block.ref(buffer.name).is_alloc and beginnings(holder.block)[buffer.name] is not Agg.ASSIGN


def _check_scalars(nest: Nest, order: Sequence[int]) -> Iterator[Diagnostic]:
    """A statement of main that uses a scalar is ordered after the one that defines it."""
    defined: dict[str, int] = {}
    for number, statement in enumerate(nest.block.statements):
        for name in dict.fromkeys(scalars_used(statement)):
            if not is_in(defined[name], order[number]):
                message = f"no dependence orders it after statement {defined[name]}, which defines '${name}'"
                yield Diagnostic(message, (*nest.path, number), "", "run compute_deps or schedule")
        scalar = scalar_defined(statement)
        if scalar is not None:
            defined[scalar] = number


def _placed(program: Program, nests: Sequence[Nest]) -> list[Placed]:
    """All allocations with an address, and the paths of the leaf statements that load, store or otherwise use them."""
    buffers: dict[Path, dict[str, tuple[Path, str]]] = {(): {}}
    touched: dict[tuple[Path, str], list[Path]] = {}
    for path, block in walk(program.entry):
        buffers[path] = {
            ref.name: (path, ref.name) if ref.is_alloc else buffers[path[:-1]][ref.source]
            for ref in block.refinements
        }
        for number, statement in enumerate(block.statements):
            if not isinstance(statement, Block):
                for name in (*writes_of(statement), *reads_of(statement)):
                    touched.setdefault(buffers[path][name], []).append((*path, number))
    return [
        Placed(nest, ref, _life(nest, begins[ref.name], sorted(touched.get((nest.path, ref.name), ()))))
        for nest in nests
        for begins in [beginnings(nest.block)]
        for ref in nest.block.allocs
        if ref.offset is not None
    ]


def _life(nest: Nest, begins: Agg, uses: Sequence[Path]) -> tuple[Path, ...]:
    """The uses of a buffer. One that starts at an identity is filled before the statement of its own block that uses it
    first, which is a use of its own."""
    depth = max(len(nest.path), 2) + 1  # buffers of the entry begin in a statement of main
    filled = [uses[0][:depth]] if uses and begins is not Agg.ASSIGN else []
    return (*filled, *uses)


def _check_interference(nests: Sequence[Nest], placed: Sequence[Placed]) -> Iterator[Diagnostic]:
    """Buffers that share bytes have disjoint live ranges: all statements of one wait for all of the other."""
    interference = Interference(nests)
    by_place: dict[Place, list[Placed]] = {}
    for buffer in placed:
        by_place.setdefault(buffer.place, []).append(buffer)
    groups = [[members] for members in by_place.values()]
    groups += [
        [by_place[one], by_place[other]] for one, other in combinations(by_place, 2) if one.shares_unit(other)
    ]
    said: set[tuple[Path, str, Path, str]] = set()
    pairs = (
        pair
        for group in groups
        for pair in interference.overlaps([buffer for members in group for buffer in members])
    )
    for first, second in chain(pairs, interference.overlaps_in_flight(placed)):
        pair = (first.path, first.ref.name, second.path, second.ref.name)
        if pair in said:
            continue
        said.add(pair)
        begin, end = max(first.begin, second.begin), min(first.end, second.end) - 1
        where = " and ".join(dict.fromkeys(str(buffer.ref.location) for buffer in (first, second)))
        both = f"'{first.ref.name}' and '{second.ref.name}'"
        message = f"{both} may be alive together and share bytes {begin} to {end} of {where}"
        yield second.wrong(message, "place one of them elsewhere")


def _registers(hardware: HardwareModel | None) -> frozenset[str]:
    return frozenset() if hardware is None else hardware.register_files - hardware.mem_units.keys()


def _check_address(buffer: Placed, hardware: HardwareModel | None) -> Iterator[Diagnostic]:
    """The address of a buffer is a multiple of the size of its elements, and of what its memory demands. A cache has no
    addresses."""
    size, name = buffer.ref.dtype.bytes, buffer.ref.location.name
    memory = hardware.mem_units.get(name) if hardware is not None else None
    if buffer.begin % size:
        message = f"'{buffer.ref.name}' lies at byte {buffer.begin}, its elements take {size}"
        yield buffer.wrong(message, "align it")
    elif memory is not None and buffer.begin % memory.alignment:
        message = (
            f"'{buffer.ref.name}' lies at byte {buffer.begin}, and {name} has multiples of {memory.alignment}"
        )
        yield buffer.wrong(message, "align it")
    elif memory is not None and buffer.ref.copies > 1 and buffer.distance % memory.alignment:
        message = (
            f"the copies of '{buffer.ref.name}' lie {buffer.distance} bytes apart, "
            f"and {name} has multiples of {memory.alignment}"
        )
        apart = -(-buffer.distance // memory.alignment) * memory.alignment
        yield buffer.wrong(message, f"write #pitch={apart}")
    if hardware is not None and memory is not None and memory.is_cache:
        explicit = [other for other, each in hardware.mem_units.items() if not each.is_cache]
        message = f"'{buffer.ref.name}' has an address in {name}, which is a cache"
        yield buffer.wrong(message, f"memories with addresses are {', '.join(explicit)}")


def _check_copies(buffer: Placed) -> Iterator[Diagnostic]:
    """A buffer that transfers fill or empty while other tiles are in flight has a copy for each tile."""
    nest, depth = buffer.nest, in_flight(buffer.nest.block)
    if buffer.ref.copies >= depth:
        return
    transfers = (inner.block for _, inner in nest.children() if is_transfer(inner))
    if any(ref.source == buffer.ref.name for transfer in transfers for ref in transfer.refinements):
        message = f"'{buffer.ref.name}' has copies for {buffer.ref.copies} of the {depth} tiles in flight"
        yield buffer.wrong(message, f"give it #buffers={depth}")


def _check_inside_transfer(buffer: Placed) -> Iterator[Diagnostic]:
    """Transfers that take several units are at work on several tiles in flight: a buffer inside lies elsewhere for each
    tile."""
    numbers, nest = buffer.place.location.names(), buffer.nest
    while (tiles := nest.outer) is not None:
        depth, own = in_flight(tiles.block), tiles.domain.names[tiles.widths[tiles.depth] :]
        if depth > 1 and not numbers.intersection(own) and is_transfer(nest) and not _is_on_one_unit(nest):
            message = (
                f"'{buffer.ref.name}' has one place for the {depth} tiles in flight of {tiles.block.name}"
            )
            yield buffer.wrong(
                message, "let one unit run the transfer around it, or move it out of the transfer"
            )
        nest = tiles


def _is_on_one_unit(nest: Nest) -> bool:
    """Whether one unit does the work of a block at all its points."""
    units = {unit_of(part).location for part in working_parts(nest)}
    return len(units) == 1 and all(unit.devices[-1].units and not unit.names() for unit in units)


def _check_capacity(placed: Sequence[Placed], hardware: HardwareModel) -> Iterator[Diagnostic]:
    """Every buffer ends inside its memory. (Whether the machine has that memory is for `check_units`.)"""
    for buffer in placed:
        unit = hardware.mem_units.get(buffer.ref.location.name)
        if unit is not None and buffer.end > unit.size:
            message = f"'{buffer.ref.name}' ends at byte {buffer.end} of {buffer.ref.location}, which has {unit.size}"
            yield buffer.wrong(message, "tile more finely, or enlarge the memory")
