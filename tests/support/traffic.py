"""What a simulation says went where when, as the independent checker of buses and ports takes it."""

from __future__ import annotations

from stripe.cost.time.simulate import Simulation
from stripe.hw import parse_unit
from stripe.verify.machine.traffic import TimedTransfer


def traffic_of(found: Simulation) -> list[TimedTransfer]:
    """Each flow of each statement, in the time of that statement."""
    memories = found.model.mem_units
    return [
        TimedTransfer(
            cost.name,
            run.start,
            run.end,
            flow.bytes,
            tuple(hop.index for hop in flow.route.hops),
            tuple(
                unit
                for unit in (flow.source, *flow.route.units, *flow.route.units, flow.sink)
                if parse_unit(unit)[0] in memories
            ),
        )
        for cost, run in zip(found.costs, found.runs, strict=True)
        for flow in cost.flows
        if flow.bytes
    ]
