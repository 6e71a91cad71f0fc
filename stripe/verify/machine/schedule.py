"""Independent checks of schedules and placements: they share no code with the passes that make them.

`check_schedule`: dependences order all conflicts, also of two buffers in one range of memory; every unit reaches the
memories of its operands; nothing exceeds a memory. `check_placement`: no two buffers that may be alive at one time
overlap, addresses are aligned and inside their memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Agg,
    Block,
    Diagnostic,
    Nest,
    Path,
    Program,
    beginnings,
    reads_of,
    walk,
    writes_of,
)
from stripe.verify.machine.dependences import check_dependences
from stripe.verify.machine.interference import (
    Interference,
    Placed,
    in_flight,
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
