"""Units and memories that transfers of a schedule reach."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.hw.graph import UnitGraph
from stripe.ir import Block, ConfigError, Location, Statement, walk
from stripe.passes.schedule.banks import Banks


def reachable(
    statement: Statement, banks: Banks, transfers: Sequence[Location], graph: UnitGraph | None
) -> tuple[int, ...]:
    """The banks that its unit and the units of the `transfers` reach; ConfigError when a unit reaches none of them."""
    found = tuple(banks.numbers)
    if graph is None:
        return found
    location = statement.location if isinstance(statement, Block) else Location()
    for unit in (*transfers, location):
        if str(unit) not in graph.units:
            continue
        near = graph.memories_of(str(unit))
        found = tuple(bank for bank in found if f"{banks.memory}[{bank}]" in near)
        if not found:
            shared = f" that {transfers[0]} reaches" if unit is not transfers[0] else ""
            raise ConfigError(
                f"{unit} reaches no {banks.memory}{shared}",
                hint="choose another unit, or add a bus to and from it to the hardware model",
            )
    return found


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
