"""Checks of a hardware model beyond its schema: one small function for each property, all problems collected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stripe.config.json5 import JsonPath
from stripe.hw.graph import UnitGraph, instances
from stripe.hw.schema import HardwareModel
from stripe.ir.errors import closest


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason and the path of the model that it concerns."""

    path: JsonPath
    reason: str
    hint: str | None = None


def check_model(model: HardwareModel) -> tuple[Problem, ...]:
    """All faults of a model whose parts are valid. The graph is checked when all its names exist."""
    found = tuple(problem for check in _NAMES for problem in check(model))
    if found:
        return found
    graph = UnitGraph(model)
    return tuple(problem for check in _GRAPH for problem in check(graph))


_KINDS = ("mem_units", "exec_units", "tx_units")


def check_there_are_units(model: HardwareModel) -> Iterator[Problem]:
    """A machine has a memory and something that computes."""
    for kind, word in (("mem_units", "memory"), ("exec_units", "execution unit")):
        if not getattr(model, kind):
            yield Problem((), f"the machine has no {word}", f"describe one under '{kind}'")


def check_names_differ(model: HardwareModel) -> Iterator[Problem]:
    """No two units have one name, whatever their kinds."""
    first: dict[str, str] = {}
    for kind in _KINDS:
        for name in getattr(model, kind):
            if name in first:
                reason = f"'{name}' is already the name of a unit in '{first[name]}'"
                yield Problem((kind, name), reason, "give one of them another name")
            first.setdefault(name, kind)


def check_buses_name_units(model: HardwareModel) -> Iterator[Problem]:
    """Sources and sinks exist, and their numbers are below the count."""
    for number, bus in enumerate(model.buses):
        for side in ("sources", "sinks"):
            for position, text in enumerate(getattr(bus, side)):
                try:
                    instances(model, text)
                except ValueError as error:
                    reason, _, hint = str(error).partition("; ")
                    known = (
                        None if closest(text, model.unit_names) else f"units: {', '.join(model.unit_names)}"
                    )
                    yield Problem(("buses", number, side, position), reason, hint or known)


def check_buses_lead_somewhere(model: HardwareModel) -> Iterator[Problem]:
    """A bus has a source and a sink."""
    for number, bus in enumerate(model.buses):
        name = f"the bus '{bus.name}'" if bus.name else f"bus {number}"
        if not bus.sinks:
            yield Problem(("buses", number, "sinks"), f"{name} leads nowhere: it has no sinks")
        if not bus.sources:
            yield Problem(("buses", number, "sources"), f"{name} comes from nowhere: it has no sources")


def check_bus_names_differ(model: HardwareModel) -> Iterator[Problem]:
    """Reports tell buses apart by their names."""
    seen: set[str] = set()
    for number, bus in enumerate(model.buses):
        if bus.name in seen:
            yield Problem(("buses", number, "name"), f"another bus is called '{bus.name}' too")
        if bus.name is not None:
            seen.add(bus.name)


def _path(graph: UnitGraph, unit: str) -> JsonPath:
    name = unit.partition("[")[0]
    kind = next(kind for kind in _KINDS if name in getattr(graph.model, kind))
    return (kind, name)


def check_memories_are_reached(graph: UnitGraph) -> Iterator[Problem]:
    """Each memory is an end of some bus."""
    for memory in graph.memories:
        if memory not in graph.sources | graph.sinks:
            hint = f"list '{memory}' among the sources and sinks of a bus"
            yield Problem(_path(graph, memory), f"no bus reaches the memory {memory}", hint)


def check_memories_are_of_use(graph: UnitGraph) -> Iterator[Problem]:
    """Each memory on a bus is connected with an execution unit, whatever the direction."""
    buses = [frozenset(sources).union(sinks) for sources, sinks in graph.members]
    connected = frozenset(graph.exec_units)
    while more := frozenset[str]().union(*(bus for bus in buses if bus & connected)) - connected:
        connected |= more
    for memory in graph.memories:
        if memory in (graph.sources | graph.sinks) - connected:
            yield Problem(
                _path(graph, memory), f"the memory {memory} is cut off from everything that computes"
            )


def check_exec_units_have_data(graph: UnitGraph) -> Iterator[Problem]:
    """Each execution unit reads from a memory and writes to one, with nothing but transfer units and caches between."""
    fed = {unit for memory in graph.memories for unit in graph.reached_from(memory)}
    memories = frozenset(graph.memories)
    for unit in graph.exec_units:
        if unit not in fed:
            yield Problem(_path(graph, unit), f"no bus brings {unit} data from a memory")
        if not graph.reached_from(unit) & memories:
            yield Problem(_path(graph, unit), f"no bus takes the results of {unit} to a memory")


def check_transfer_units_pass_data_on(graph: UnitGraph) -> Iterator[Problem]:
    """Data that enter a transfer unit can leave it."""
    for name in graph.model.tx_units:
        for unit in graph.instances(name):
            if unit not in graph.sources:
                yield Problem(
                    _path(graph, unit), f"data that enter {unit} go nowhere: no bus has it as a source"
                )
            elif unit not in graph.sinks:
                yield Problem(_path(graph, unit), f"no data enter {unit}: no bus has it as a sink")


_NAMES: tuple[Callable[[HardwareModel], Iterator[Problem]], ...] = (
    check_there_are_units,
    check_names_differ,
    check_buses_name_units,
    check_buses_lead_somewhere,
    check_bus_names_differ,
)
_GRAPH: tuple[Callable[[UnitGraph], Iterator[Problem]], ...] = (
    check_memories_are_reached,
    check_memories_are_of_use,
    check_exec_units_have_data,
    check_transfer_units_pass_data_on,
)
