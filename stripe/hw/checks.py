"""Checks of a hardware model beyond its schema: one small function for each property, all problems collected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

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
    """All faults of a model whose parts are valid."""
    return tuple(problem for check in _NAMES for problem in check(model))


def find_gaps(model: HardwareModel) -> Iterator[str]:
    """Units of a checked model that are not connected yet: a line for each kind of units, with all reasons. A transfer
    that needs what is missing is refused."""
    graph = UnitGraph(model)
    lacking: dict[str, set[str]] = {}
    for check in _GRAPH:
        for unit, reason in check(graph):
            lacking.setdefault(reason, set()).add(unit)
    for kind, word in _KINDS.items():
        texts: list[str] = []
        for reason, units in lacking.items():
            named: list[str] = []
            for name in getattr(model, kind):
                every = graph.instances(name)
                mine = [unit for unit in every if unit in units]
                named += [f"all {len(mine)} {name}"] if len(mine) == len(every) > 1 else mine
            texts += [f"{reason} ({', '.join(named)})"] if named else []
        if texts:
            yield f"{word}: {'; '.join(texts)}"


Gap: TypeAlias = tuple[str, str]
"""A unit that is not connected, and the reason."""


_KINDS = {"mem_units": "memories", "exec_units": "execution units", "tx_units": "transfer units"}


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


def find_unreached_memories(graph: UnitGraph) -> Iterator[Gap]:
    """Each memory is an end of some bus."""
    for memory in graph.memories:
        if memory not in graph.sources | graph.sinks:
            yield memory, "no bus reaches this memory"


def find_useless_memories(graph: UnitGraph) -> Iterator[Gap]:
    """Each memory on a bus is connected with an execution unit, whatever the direction."""
    buses = [frozenset(sources).union(sinks) for sources, sinks in graph.members]
    connected = frozenset(graph.exec_units)
    while more := frozenset[str]().union(*(bus for bus in buses if bus & connected)) - connected:
        connected |= more
    for memory in graph.memories:
        if memory in (graph.sources | graph.sinks) - connected:
            yield memory, "this memory is cut off from everything that computes"


def find_idle_exec_units(graph: UnitGraph) -> Iterator[Gap]:
    """Each execution unit reads from a memory and writes to one, with nothing but transfer units and caches between."""
    fed = {unit for memory in graph.memories for unit in graph.reached_from(memory)}
    memories = frozenset(graph.memories)
    for unit in graph.exec_units:
        if unit not in fed:
            yield unit, "no bus brings data from a memory"
        if not graph.reached_from(unit) & memories:
            yield unit, "no bus takes results to a memory"


def find_dead_ends(graph: UnitGraph) -> Iterator[Gap]:
    """Data that enter a transfer unit can leave it."""
    for name in graph.model.tx_units:
        for unit in graph.instances(name):
            if unit not in graph.sources:
                yield unit, "data that enter go nowhere: no bus has it as a source"
            elif unit not in graph.sinks:
                yield unit, "no data enter: no bus has it as a sink"


_NAMES: tuple[Callable[[HardwareModel], Iterator[Problem]], ...] = (
    check_there_are_units,
    check_names_differ,
    check_buses_name_units,
    check_buses_lead_somewhere,
    check_bus_names_differ,
)
_GRAPH: tuple[Callable[[UnitGraph], Iterator[Gap]], ...] = (
    find_unreached_memories,
    find_useless_memories,
    find_idle_exec_units,
    find_dead_ends,
)
