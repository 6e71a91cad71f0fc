"""Buffers of points that run at the same time, on units that share a block: a check that shares no code with placement.

The units at a point are the numbers in the locations of blocks around the buffer's own block and inside of it or beside
it, and the spatial indices. Points of which these differ run at the same time, whatever the order of the statements:
also on a unit of one number, which works for one point while others work for the next. But a unit runs the points of a
block one after the other. Tiles in flight compute one after the other, and so do the points of main.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stripe.ir import Affine, Block, Diagnostic, Domain, Nest, Path
from stripe.poly import Points, count_points
from stripe.verify.machine.interference import Placed, by_address, in_flight, is_transfer, sharing_addresses


def check_side_by_side(placed: Sequence[Placed], registers: AbstractSet[str]) -> Iterator[Diagnostic]:
    """Units that share a block have an instance of each buffer each, and share bytes with no instance of another; but
    each unit has `registers` of its own. A memory without a number may be one unit for all."""
    shared = [buffer for buffer in placed if buffer.ref.location.name not in registers]
    spread = _Spread({})
    for buffer in shared:
        needed = spread.needed(buffer)
        if buffer.ref.copies < needed:
            has = f"'{buffer.ref.name}' has {buffer.ref.copies} of the {needed} instances"
            yield buffer.wrong(
                f"{has} that units at work at one time need",
                f"give it #buffers={needed}, or place it in a memory of each unit",
            )
    for first, second in sharing_addresses(by_address(shared)):
        if spread.crowded(first, second):
            begin, end = max(first.begin, second.begin), min(first.end, second.end) - 1
            both = f"'{first.ref.name}' and '{second.ref.name}'"
            message = f"{both} may be alive together on two units and share bytes {begin} to {end}"
            yield second.wrong(f"{message} of {second.ref.location}", "place one of them elsewhere")


@dataclass(frozen=True)
class _Spread:
    """The units that tell the points of a block apart which run at the same time: `known` by the path of the block."""

    known: dict[Path, tuple[Affine, ...]]

    def units(self, nest: Nest) -> tuple[Affine, ...]:
        if nest.path not in self.known:
            self.known[nest.path] = tuple(dict.fromkeys(_units(nest)))
        return self.known[nest.path]

    def needed(self, buffer: Placed) -> int:
        """The instances that a buffer needs: one for each of the units that share a unit of its memory at one time,
        and for each tile in flight, where transfers fill or empty it."""
        units = self.crowded(buffer, buffer)
        if not units:
            return 1
        domain, names = buffer.nest.domain, [f"u%{place}" for place in range(len(units))]
        equal = [Affine.var(name) - unit for name, unit in zip(names, units, strict=True)]
        points = Points.build((*domain.names, *names), domain.ranges, domain.constraints, equal)
        block = buffer.nest.block
        inside = [inner.block for _, inner in buffer.nest.children() if is_transfer(inner)]
        moved = any(ref.source == buffer.ref.name for inner in inside for ref in inner.refinements)
        return count_points(points.onto(names)) * (in_flight(block) if moved else 1)

    def crowded(self, one: Placed, other: Placed) -> list[Affine]:
        """The units that may differ at two points which have the buffers in one unit of their memory: units that share
        the innermost block around both."""
        common = one.nest
        while common.path != other.path[: len(common.path)] and common.outer is not None:
            common = common.outer
        units = self.units(common)
        if not units:
            return []
        domain, equal = _pairs(one.nest.domain, other.nest.domain, _in_turn(common, units))
        apart: list[Affine] = []
        for (name, numbers), (other_name, others) in zip(_place(one), _place(other), strict=False):
            if name != other_name:
                return [*units] if one.place.shares_unit(other.place) else []
            apart = [first - second for first, second in zip(_at(numbers, 0), _at(others, 1), strict=False)]
            equal += apart
        banks = max(one.place.banks, other.place.banks)
        if banks > 1 and apart:
            last = equal.pop()
            domain = domain.with_constraints((last + banks - 1, banks - 1 - last))
        pairs = Points.build(domain.names, domain.ranges, domain.constraints, equal)
        found: list[Affine] = []
        for unit in units:
            (first,), (second,) = _at([unit], 0), _at([unit], 1)
            if any(not pairs.where([ahead - 1]).is_empty for ahead in (first - second, second - first)):
                found.append(unit)
        return found


def _place(buffer: Placed) -> Iterator[tuple[str, tuple[Affine, ...]]]:
    """The levels of the location of a buffer: names and numbers over the names of the domain."""
    for device in buffer.ref.location.subs(buffer.nest.local).devices:
        yield device.name, device.units


def _units(nest: Nest) -> Iterator[Affine]:
    """Affines that tell units apart at points of the innermost block: spatial indices, and numbers in locations around
    it and of all that runs beside it, up to the block that one unit of a number runs, point after point."""
    own = _apart(nest, nest.depth)
    if not own:
        return
    kernel = nest
    while kernel.outer is not None and not kernel.outer.block.is_main:
        if any(device.units for device in kernel.block.location.devices):
            break
        kernel = kernel.outer
    for part in kernel.walk():
        level = next((n for n, (a, b) in enumerate(zip(part.path, nest.path, strict=False)) if a != b), None)
        depth = min(part.depth, nest.depth) if level is None else level - len(nest.path) + nest.depth
        yield from _numbers(part, _apart(nest, depth))
    around: Nest | None = nest
    while around is not None:
        yield from _numbers(around, own)
        for index in around.block.iterated:
            yield from _parts(around.local[index.name], own if index.is_spatial else frozenset())
        around = around.outer


def _numbers(nest: Nest, names: frozenset[str]) -> Iterator[Affine]:
    """Affines over `names` in the numbers of the location of the innermost block."""
    for device in nest.block.location.subs(nest.local).devices:
        for number in device.units:
            yield from _parts(number, names)


def _parts(number: Affine, names: frozenset[str]) -> list[Affine]:
    """Affines over `names` that tell units apart: the number, or each of its names where it has others."""
    if number.names() <= names:
        return [number] if number.names() else []
    return [Affine.var(name) for name in sorted(number.names() & names)]


def _apart(nest: Nest, depth: int) -> frozenset[str]:
    """The indices of the blocks down to a depth whose points may run at the same time."""
    blocks = enumerate(nest.blocks[: depth + 1])
    return frozenset(name for level, block in blocks if not _is_in_turn(block) for name in _own(nest, level))


def _in_turn(nest: Nest, units: Sequence[Affine]) -> Iterator[str]:
    """The indices of which all units are at one value: those of blocks in turn, from the outermost block to the first
    one whose points lie on several units. Inside, each unit has loops of its own."""
    spread = frozenset[str]().union(*(unit.names() for unit in units))
    for level, block in enumerate(nest.blocks):
        if _is_in_turn(block):
            yield from _own(nest, level)
        elif not spread.isdisjoint(_own(nest, level)):
            return


def _is_in_turn(block: Block) -> bool:
    """Whether points of a block compute one after the other, on however many units."""
    return block.is_main or in_flight(block) > 1


def _own(nest: Nest, depth: int) -> tuple[str, ...]:
    """The names in the domain of a nest that the block at a depth iterates."""
    return nest.domain.names[nest.widths[depth] : nest.widths[depth + 1]]


def _pairs(one: Domain, other: Domain, same: Iterable[str]) -> tuple[Domain, list[Affine]]:
    """All pairs of points of two domains, and the equalities of those that agree in the indices `same`."""
    sides = enumerate((one, other))
    ranges = {f"{name}%{side}": at for side, domain in sides for name, at in domain.ranges.items()}
    constraints = (*_at(one.constraints, 0), *_at(other.constraints, 1))
    return Domain.of(ranges, constraints), [
        Affine.var(f"{name}%0") - Affine.var(f"{name}%1") for name in same
    ]


def _at(affines: Sequence[Affine], side: int) -> list[Affine]:
    """The affines at the first or the second point of a pair."""
    return [
        affine.subs({name: Affine.var(f"{name}%{side}") for name in affine.names()}) for affine in affines
    ]
