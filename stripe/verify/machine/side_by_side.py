"""Buffers of points that run at the same time, on units that share a block: a check that shares no code with placement.

The units at a point are the numbers in the locations of blocks around the buffer's own block and inside of it, and the
spatial indices. Points of which these differ run at the same time, whatever the order of the statements. Tiles in
flight compute one after the other, and so do the points of main.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations

from stripe.ir import Affine, Diagnostic, Domain, Nest, Path
from stripe.poly import Points, count_points
from stripe.verify.machine.interference import Placed, in_flight, is_transfer


@dataclass(frozen=True)
class _Instances:
    """The instances of a buffer, by the points of its nest; `units` tell the points apart that run at the same time."""

    buffer: Placed
    units: tuple[Affine, ...]
    in_turn: frozenset[str]

    @staticmethod
    def of(buffer: Placed) -> _Instances:
        nest = buffer.nest
        in_turn = {
            name
            for depth, block in enumerate(nest.blocks)
            if block.is_main or in_flight(block) > 1
            for name in nest.domain.names[nest.widths[depth] : nest.widths[depth + 1]]
        }
        names = frozenset(nest.domain.names) - in_turn
        found: dict[Affine, None] = {}
        for number in _numbers(nest) if names else ():
            found.update((part, None) for part in _parts(number, names))
        return _Instances(buffer, tuple(found), frozenset(in_turn))

    @property
    def units_of_memory(self) -> tuple[tuple[str, tuple[Affine, ...]], ...]:
        """The levels of its location: names and numbers over the names of the domain."""
        location = self.buffer.ref.location.subs(self.buffer.nest.local)
        return tuple((device.name, device.units) for device in location.devices)

    def needed(self) -> int:
        """The instances that the buffer needs: one for each of the units that share a unit of its memory at one time,
        and for each tile in flight, where transfers fill or empty it."""
        units = _crowded(self, self)
        domain, names = self.buffer.nest.domain, [f"u%{place}" for place in range(len(units))]
        equal = [Affine.var(name) - unit for name, unit in zip(names, units, strict=True)]
        points = Points.build((*domain.names, *names), domain.ranges, domain.constraints, equal)
        block = self.buffer.nest.block
        inside = [inner.block for _, inner in self.buffer.nest.children() if is_transfer(inner)]
        moved = any(ref.source == self.buffer.ref.name for inner in inside for ref in inner.refinements)
        return count_points(points.onto(names)) * ((block.pipeline_depth or 1) if moved else 1)


def check_side_by_side(placed: Sequence[Placed], registers: AbstractSet[str]) -> Iterator[Diagnostic]:
    """Units that share a block have an instance of each buffer each, and share bytes with no instance of another; but
    each unit has `registers` of its own. A memory without a number may be one unit for all."""
    shared = [buffer for buffer in placed if buffer.ref.location.name not in registers]
    found = list(map(_Instances.of, shared))
    spread = [one for one in found if one.units]
    for one in spread:
        buffer, needed = one.buffer, one.needed()
        if buffer.ref.copies < needed:
            has = f"'{buffer.ref.name}' has {buffer.ref.copies} of the {needed} instances"
            yield buffer.wrong(
                f"{has} that units at work at one time need",
                f"give it #buffers={needed}, or place it in a memory of each unit",
            )
    for one, other in combinations(spread, 2):
        first, second = one.buffer, other.buffer
        apart = first.end <= second.begin or second.end <= first.begin
        if not apart and _crowded(one, other):
            begin, end = max(first.begin, second.begin), min(first.end, second.end) - 1
            both = f"'{first.ref.name}' and '{second.ref.name}'"
            message = f"{both} may be alive together on two units and share bytes {begin} to {end}"
            yield second.wrong(f"{message} of {second.ref.location}", "place one of them elsewhere")


def _numbers(nest: Nest) -> Iterator[Affine]:
    """The numbers of units around a block and inside, and its spatial indices, over the names of the domain."""
    around: list[Nest] = [*nest.walk()]
    holder = nest.outer
    while holder is not None:
        around.append(holder)
        holder = holder.outer
    for part in around:
        for device in part.block.location.subs(part.local).devices:
            yield from device.units
        if len(part.path) <= len(nest.path):
            yield from (part.local[index.name] for index in part.block.iterated if index.is_spatial)


def _crowded(one: _Instances, other: _Instances) -> list[Affine]:
    """The units that may differ at two points which have the buffers in one unit of their memory: units of the blocks
    around both."""
    shared = _shared(one.buffer.path, other.buffer.path)
    around = frozenset(one.buffer.nest.prefix(shared - 1))
    whole = dict.fromkeys((*one.units, *other.units))
    units = list(dict.fromkeys(part for unit in whole for part in _parts(unit, around)))
    if not units:
        return []
    domain, equal = _pairs(one, other)
    here, there = one.units_of_memory, other.units_of_memory
    apart: list[Affine] = []
    for (name, numbers), (other_name, others) in zip(here, there, strict=False):
        if name != other_name:
            return units if one.buffer.place.shares_unit(other.buffer.place) else []
        apart = [first - second for first, second in zip(_at(numbers, 0), _at(others, 1), strict=False)]
        equal += apart
    banks = max(one.buffer.place.banks, other.buffer.place.banks)
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


def _parts(number: Affine, names: frozenset[str]) -> list[Affine]:
    """What tells units apart at points over `names`: the number, or of one that has other names each name."""
    if number.names() <= names:
        return [number] if number.names() else []
    return [Affine.var(name) for name in sorted(number.names() & names)]


def _shared(one: Path, other: Path) -> int:
    """The number of blocks that two paths have in common."""
    both = zip(one, other, strict=False)
    return next((level for level, (a, b) in enumerate(both) if a != b), min(len(one), len(other)))


def _pairs(one: _Instances, other: _Instances) -> tuple[Domain, list[Affine]]:
    """All pairs of points of the two, and the equalities of those who are of one point of main and of one tile."""
    domains = [one.buffer.nest.domain, other.buffer.nest.domain]
    ranges = {
        f"{name}%{side}": at for side, domain in enumerate(domains) for name, at in domain.ranges.items()
    }
    constraints = (*_at(domains[0].constraints, 0), *_at(domains[1].constraints, 1))
    same = sorted(one.in_turn & other.in_turn)
    return Domain.of(ranges, constraints), [
        Affine.var(f"{name}%0") - Affine.var(f"{name}%1") for name in same
    ]


def _at(affines: Sequence[Affine], side: int) -> list[Affine]:
    """The affines at the first or the second point of a pair."""
    return [
        affine.subs({name: Affine.var(f"{name}%{side}") for name in affine.names()}) for affine in affines
    ]
