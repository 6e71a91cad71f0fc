"""A simulation as a Chrome trace, which Perfetto (https://ui.perfetto.dev) and chrome://tracing open.

One track for each unit, an arrow from each transfer to each statement that waits for it, and the bytes held in each
memory as a counter. Times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from stripe.cost.time.simulate import Simulation

_UNITS, _MEMORIES = 1, 2
Event = dict[str, JsonValue]


def chrome_trace(found: Simulation) -> dict[str, JsonValue]:
    """The trace as JSON in the form of an object, with the events under `traceEvents`."""
    used = list(dict.fromkeys(unit for run in found.runs for unit in run.units))
    names = (*found.model.exec_units, *found.model.tx_units)
    order = [unit for name in names for unit in found.machine.graph.instances(name) if unit in used]
    # tracks of statements (of their buses, where they have no unit) and of units that work inside statements
    pairs = zip(found.costs, found.runs, strict=True)
    others = {unit for cost, run in pairs for unit in (run.units or (cost.units.name,))}
    others |= {piece.unit for cost in found.costs for piece in cost.slices}
    order += sorted(others.difference(order))
    tracks = {unit: number + 1 for number, unit in enumerate(order)}
    events = [*_names(found, tracks), *_slices(found, tracks), *_flows(found, tracks)]
    for memory, steps in found.held.items():
        for time, held in steps:
            events.append({
                "ph": "C", "name": f"{memory} bytes", "pid": _MEMORIES, "ts": found.model.microseconds(time),
                "args": {"bytes": held},
            })  # fmt: skip
    return {
        "traceEvents": [*events],
        "displayTimeUnit": "ns",
        "otherData": {"machine": found.model.name, "clock_mhz": found.model.clock_mhz},
    }


def _names(found: Simulation, tracks: dict[str, int]) -> Iterator[Event]:
    machine = found.model.name or "machine"
    yield {"ph": "M", "name": "process_name", "pid": _UNITS, "args": {"name": f"{machine}: units"}}
    yield {"ph": "M", "name": "process_name", "pid": _MEMORIES, "args": {"name": f"{machine}: memories"}}
    for unit, number in tracks.items():
        yield {"ph": "M", "name": "thread_name", "pid": _UNITS, "tid": number, "args": {"name": unit}}
        order: JsonValue = {"sort_index": number}
        yield {"ph": "M", "name": "thread_sort_index", "pid": _UNITS, "tid": number, "args": order}


def _slices(found: Simulation, tracks: dict[str, int]) -> Iterator[Event]:
    micro = found.model.microseconds
    for cost, run in zip(found.costs, found.runs, strict=True):
        stalls = {cause: round(cycles, 3) for cause, cycles in {**cost.stalls, **run.slowed}.items()}
        for unit in run.units or (cost.units.name,):
            yield {
                "ph": "X", "name": cost.name, "cat": "transfer" if cost.transfer else "kernel", "pid": _UNITS,
                "tid": tracks[unit], "ts": micro(run.start), "dur": micro(run.end - run.start),
                "args": {
                    "statement": cost.number, "cycles": run.end - run.start, "operations": cost.work.operations.total,
                    "bytes": sum(flow.bytes for flow in cost.flows), "stalls": {**stalls},
                },
            }  # fmt: skip
        stretch = (run.end - run.start) / max((s.end for s in cost.slices), default=1.0)
        for piece in cost.slices:
            yield {
                "ph": "X", "name": piece.name, "cat": "transfer" if piece.transfer else "kernel", "pid": _UNITS,
                "tid": tracks[piece.unit], "ts": micro(run.start + piece.start * stretch),
                "dur": micro((piece.end - piece.start) * stretch),
                "args": {"statement": cost.number, "tile": piece.tile},
            }  # fmt: skip


def _flows(found: Simulation, tracks: dict[str, int]) -> Iterator[Event]:
    """Arrows from transfers to the users of their data, and from kernels to the transfers of their results."""
    micro = found.model.microseconds
    number = 0
    for position, deps in enumerate(found.deps):
        here, run = found.costs[position], found.runs[position]
        for dep in deps:
            there, earlier = found.costs[dep], found.runs[dep]
            if not (here.transfer or there.transfer):
                continue
            number += 1
            track = tracks[(earlier.units or (there.units.name,))[0]]
            shared: Event = {"name": there.name, "cat": "flow", "id": number, "pid": _UNITS}
            # an arrow leaves from inside its slice, hence not quite at its end
            begin = earlier.start + 0.999 * (earlier.end - earlier.start)
            yield {**shared, "ph": "s", "tid": track, "ts": micro(begin)}
            track = tracks[(run.units or (here.units.name,))[0]]
            yield {**shared, "ph": "f", "bp": "e", "tid": track, "ts": micro(run.start)}
