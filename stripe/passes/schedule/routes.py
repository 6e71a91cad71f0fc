"""Units and memories that transfers of a schedule reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Literal

from stripe.hw.graph import UnitGraph
from stripe.ir import Block, ConfigError, Domain, Location, Nest, walk
from stripe.passes.schedule.banks import Banks


@dataclass(frozen=True, slots=True)
class ReachedBanks:
    """The banks from which the unit of a statement loads, and those to which it stores."""

    loads: tuple[int, ...]
    stores: tuple[int, ...]

    def of(self, *, reads: bool, writes: bool) -> tuple[int, ...]:
        """The banks for an operand that the statement reads, writes, or both."""
        sides = [side for side, needed in ((self.loads, reads), (self.stores, writes)) if needed]
        return tuple(bank for bank in sides[0] if all(bank in side for side in sides))


def reachable(
    statement: Nest, banks: Banks, transfers: Sequence[Location], graph: UnitGraph | None
) -> ReachedBanks:
    """The banks that the unit of a statement, or of a block around it, and the units of the `transfers` reach; of units
    of one name the one that reaches most of them, of a number over indices all together. ConfigError when a unit
    reaches none of them."""
    found = tuple(banks.numbers)
    if graph is None:
        return ReachedBanks(found, found)
    for unit in transfers:
        if str(unit) in graph.units:
            found = _reached(banks, found, str(unit), "both", graph)
            if not found:
                raise _unreached(f"{unit} reaches no {banks.memory}")
    location = _location(statement)
    if location.name not in graph.model.units or len(location.devices) != 1:
        return ReachedBanks(found, found)
    units = _units(location, statement.domain, graph)
    choices = [
        ReachedBanks(*(_reached(banks, found, unit, access, graph) for access in ("read", "write")))
        for unit in units
    ]
    if location.devices[-1].units:
        loads = tuple(bank for bank in found if all(bank in each.loads for each in choices))
        stores = tuple(bank for bank in found if all(bank in each.stores for each in choices))
        best = ReachedBanks(loads, stores)
    else:
        best = max(
            choices,
            key=lambda each: (len(each.of(reads=True, writes=True)), len(each.loads) + len(each.stores)),
        )
    if not best.loads or not best.stores:
        is_one = len(units) == 1 or not location.devices[-1].units
        none = f"reaches no {banks.memory}" if is_one else f"reach no {banks.memory} in common"
        who = str(location) if is_one else ", ".join(units)
        raise _unreached(f"{who} {none} that {transfers[0]} reaches")
    return best


def _location(nest: Nest) -> Location:
    """The unit on which statements of the innermost block run that have none of their own, over the names of the
    domain; none where all have."""
    if not nest.block.location and all(isinstance(s, Block) and s.location for s in nest.block.statements):
        return Location()
    around: Nest | None = nest
    while around is not None and not around.block.location:
        around = around.outer
    return Location() if around is None else around.block.location.subs(around.local)


def _units(location: Location, domain: Domain, graph: UnitGraph) -> list[str]:
    """The units of the machine that a location may name."""
    units = graph.instances(location.name)
    for number in location.devices[-1].units[:1]:
        low, high = number.bounds(domain.ranges)
        step = gcd(*(factor for _, factor in number.terms)) or 1
        units = [unit for n, unit in enumerate(units) if low <= n <= high and (n - low) % step == 0]
    return [*units]


def _reached(
    banks: Banks,
    numbers: Sequence[int],
    unit: str,
    access: Literal["read", "write", "both"],
    graph: UnitGraph,
) -> tuple[int, ...]:
    near = graph.memories_of(unit, access)
    return tuple(bank for bank in numbers if f"{banks.memory}[{bank}]" in near)


def _unreached(reason: str) -> ConfigError:
    return ConfigError(reason, hint="choose another unit, or add a bus to and from it to the hardware model")


def check_transfers(block: Block, units: Sequence[Location], graph: UnitGraph) -> None:
    """Raises ConfigError for a transfer inside `block` on one of `units` without a bus to or from a memory."""
    for _, inner in walk(block):
        unit = inner.location
        if unit not in units:
            continue
        for ref in inner.refinements:
            memory = str(ref.location)
            if memory not in graph.memories or ref.is_alloc:
                continue
            legs = [(memory, str(unit))] * ref.dir.reads + [(str(unit), memory)] * ref.dir.writes
            for source, sink in legs:
                if graph.find_route(source, sink) is None:
                    raise ConfigError(
                        f"{inner.name} has no route: no bus leads from {source} to {sink}",
                        hint="let xfer_loc name a unit with buses from and to both memories, or add a bus to the model",
                    )
