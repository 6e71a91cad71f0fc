"""Units and memories that transfers of a schedule reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stripe.hw.graph import UnitGraph
from stripe.ir import Block, ConfigError, Location, Statement, walk
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
    statement: Statement, banks: Banks, transfers: Sequence[Location], graph: UnitGraph | None
) -> ReachedBanks:
    """The banks that its unit and the units of the `transfers` reach; of a unit without a number the one of the name
    that reaches most of them. ConfigError when a unit reaches none of them."""
    found = tuple(banks.numbers)
    location = statement.location if isinstance(statement, Block) else Location()
    if graph is None:
        return ReachedBanks(found, found)
    for unit in transfers:
        if str(unit) in graph.units:
            found = _reached(banks, found, str(unit), "both", graph)
            if not found:
                raise _unreached(f"{unit} reaches no {banks.memory}")
    units = [str(location)] if str(location) in graph.units else []
    if location.name in graph.model.units and not location.devices[-1].units:
        units = [*graph.instances(location.name)]
    if not units:
        return ReachedBanks(found, found)
    choices = [
        ReachedBanks(*(_reached(banks, found, unit, access, graph) for access in ("read", "write")))
        for unit in units
    ]
    best = max(
        choices, key=lambda each: (len(each.of(reads=True, writes=True)), len(each.loads) + len(each.stores))
    )
    if not best.loads or not best.stores:
        raise _unreached(f"{location} reaches no {banks.memory} that {transfers[0]} reaches")
    return best


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
