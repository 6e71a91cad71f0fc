"""The units of a machine and the buses between them as a directed graph; routes through it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Literal, TypeAlias

from stripe.hw.schema import Bus, HardwareModel
from stripe.ir.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    import networkx

_UNIT = re.compile(r"([A-Za-z_]\w*)(?:\[\s*(\d+|\*)\s*\])?", re.ASCII)


@lru_cache(maxsize=1 << 12)
def parse_unit(text: str) -> tuple[str, int | None]:
    """The name and number of a unit written `SRAM[3]`; the number is None for `SRAM` and `SRAM[*]`, which mean all.

    Raises ValueError.
    """
    match = _UNIT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' names no unit; write NAME[number], or NAME for all of them")
    return match[1], int(match[2]) if match[2] and match[2] != "*" else None


def instances(model: HardwareModel, text: str) -> tuple[str, ...]:
    """The units that a source or sink of a bus names, such as `("SRAM[0]", "SRAM[1]")` for `SRAM`.

    Raises ValueError for a malformed name, an unknown unit and a number that is too high.
    """
    name, number = parse_unit(text)
    unit = model.units.get(name)
    if unit is None:
        near = did_you_mean(name, model.unit_names, "")
        raise ValueError(f"there is no unit '{name}'" + (f"; {near}" if near else ""))
    if number is None:
        return tuple(f"{name}[{i}]" for i in range(unit.count))
    if number >= unit.count:
        raise ValueError(
            f"there is no '{name}[{number}]': {name} has {unit.count} unit{'s' * (unit.count > 1)}"
        )
    return (f"{name}[{number}]",)


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a route: from one unit to the next over a bus, which is number `index` in the model."""

    source: str
    sink: str
    index: int
    bus: Bus


@dataclass(frozen=True, eq=False)
class Route:
    """Hops from one unit to another. The units between them are transfer units and transparent caches, which routes
    pass by themselves, and `stages`. Routes are equal when they are the same object: a graph makes each of them once.
    """

    hops: tuple[Hop, ...]
    bytes_per_cycle: float
    """The width of its narrowest bus: data stream through all of it at once."""
    latency_cycles: float
    """Cycles before the first byte arrives: of the buses, and for setting up the transfer units between them."""
    stages: tuple[str, ...] = ()
    """Explicit memories and units that compute, where one direct route ends and the next begins."""

    @property
    def units(self) -> tuple[str, ...]:
        """The units between source and sink, in order."""
        return tuple(hop.sink for hop in self.hops[:-1])

    @property
    def buses(self) -> tuple[Bus, ...]:
        """The bus of each hop."""
        return tuple(hop.bus for hop in self.hops)

    def cycles(self, size: int) -> float:
        """Cycles to move `size` bytes when no other transfer uses the buses."""
        return self.latency_cycles + size / self.bytes_per_cycle

    def then(self, other: Route, setup: float = 0.0, stage: str | None = None) -> Route:
        """This route followed by another; `setup` are cycles between them, `stage` the explicit unit there."""
        return Route(
            self.hops + other.hops,
            min(self.bytes_per_cycle, other.bytes_per_cycle),
            self.latency_cycles + other.latency_cycles + setup,
            self.stages + other.stages + ((stage,) if stage else ()),
        )


STAY = Route((), float("inf"), 0.0)
"""The route of data that are already there."""

_OUT, _IN = "out", "in"
_Node: TypeAlias = "tuple[str, str] | int"
"""Where a unit meets its buses, `(name, "out")` or `(name, "in")`, or the number of a bus."""


@dataclass(frozen=True, slots=True, eq=False)
class _Searches:
    """Answers of the searches in a graph so far."""

    ports: dict[float, networkx.DiGraph[_Node]] = field(default_factory=dict)
    quickest: dict[tuple[str, float], tuple[networkx.DiGraph[_Node], Mapping[_Node, float]]] = field(
        default_factory=dict
    )
    reached: dict[tuple[str, float], frozenset[str]] = field(default_factory=dict)
    routes: dict[tuple[str, str], Route | None] = field(default_factory=dict)
    ordered: dict[str, tuple[str, ...]] = field(default_factory=dict)
    connections: dict[tuple[str, str], Route] = field(default_factory=dict)


class UnitGraph:
    """The graph of a model that has passed its checks (`load_hardware` makes them)."""

    def __init__(self, model: HardwareModel, like: UnitGraph | None = None) -> None:
        """`like` is the graph of a model with equal units and buses as far as routes go by them (`unit_graph`): both
        then have the same routes, and each search is made once."""
        self.model = model
        self._searches = like._searches if like else _Searches()

    @cached_property
    def members(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """Sources and sinks of each bus as units."""
        return tuple((self._side(bus.sources), self._side(bus.sinks)) for bus in self.model.buses)

    def _side(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(unit for text in names for unit in instances(self.model, text)))

    @cached_property
    def sources(self) -> frozenset[str]:
        """The units that some bus leads from."""
        return frozenset(unit for sources, _ in self.members for unit in sources)

    @cached_property
    def sinks(self) -> frozenset[str]:
        """The units that some bus leads to."""
        return frozenset(unit for _, sinks in self.members for unit in sinks)

    def instances(self, name: str) -> tuple[str, ...]:
        """The units called `name`: `NAME[0]`, `NAME[1]`, …; raises ConfigError for an unknown name."""
        return tuple(f"{name}[{number}]" for number in range(self.model.unit(name).count))

    @cached_property
    def units(self) -> tuple[str, ...]:
        """All units, memories first."""
        return tuple(unit for name in self.model.unit_names for unit in self.instances(name))

    @cached_property
    def memories(self) -> tuple[str, ...]:
        """All memories, `NAME[number]`, in the order of the model."""
        return tuple(unit for name in self.model.mem_units for unit in self.instances(name))

    @cached_property
    def distances(self) -> Mapping[str, int]:
        """For each name of units that data of the main memory reach, over how many buses they do."""
        import networkx as nx

        graph: networkx.DiGraph[str] = nx.DiGraph()
        for sources, sinks in self.members:
            graph.add_edges_from(
                {(parse_unit(source)[0], parse_unit(sink)[0]) for source in sources for sink in sinks}
            )
        start = self.model.main_memory
        if start is None or start not in graph:
            return {}
        return nx.single_source_shortest_path_length(graph, start)

    @cached_property
    def exec_units(self) -> tuple[str, ...]:
        """All units that compute, `NAME[number]`, in the order of the model."""
        return tuple(unit for name in self.model.exec_units for unit in self.instances(name))

    def carries(self, unit: str) -> bool:
        """Whether routes go through `unit`: a transfer unit or a transparent cache."""
        name = parse_unit(unit)[0]
        memory = self.model.mem_units.get(name)
        return name in self.model.tx_units or (memory is not None and memory.is_cache)

    def find_route(self, source: str, sink: str) -> Route | None:
        """The best direct route from one unit to another, None when there is none.

        Best is: the least time per byte (the widest narrowest bus), then the least latency, then the fewest hops, then
        the first in the order of the names of units and the numbers of buses.
        """
        for unit in (source, sink):
            if unit not in self._unit_order:
                hint = did_you_mean(unit, self.units, "") or None
                raise ConfigError(f"there is no unit '{unit}'", hint=hint)
        key = (source, sink)
        if key not in self._searches.routes:
            width = next((width for width in self._widths if sink in self.reached_from(source, width)), None)
            self._searches.routes[key] = None if width is None else self._quickest_route(source, sink, width)
        return self._searches.routes[key]

    def route(self, source: str, sink: str) -> Route:
        """The best direct route, as `find_route` has it. Raises ConfigError when there is none."""
        found = self.find_route(source, sink)
        if found is None:
            raise ConfigError(
                f"no bus leads from {source} to {sink}", hint="add one to 'buses' of the hardware model"
            )
        return found

    def connection(self, source: str, sink: str) -> Route:
        """The best direct route; else the fewest routes one after the other with memories between them, else with any
        units between them. Raises ConfigError when no routes connect the units.
        """
        key = (source, sink)
        if source == sink:
            return STAY
        if key not in self._searches.connections:
            self._searches.connections[key] = self.find_route(source, sink) or self._chained(source, sink)
        return self._searches.connections[key]

    @cached_property
    def _widths(self) -> Sequence[float]:
        """The widths of the buses, the widest first."""
        return sorted({bus.bytes_per_cycle for bus in self.model.buses}, reverse=True)

    @cached_property
    def _leading(self) -> Mapping[str, Sequence[int]]:
        """The buses that lead from each unit, by number."""
        found: dict[str, list[int]] = {}
        for number, (sources, _) in enumerate(self.members):
            for unit in sources:
                found.setdefault(unit, []).append(number)
        return found

    @cached_property
    def _unit_order(self) -> Mapping[str, int]:
        return {unit: number for number, unit in enumerate(self.units)}

    def reached_from(self, source: str, width: float = 0.0) -> frozenset[str]:
        """The units to which there is a direct route from `source`, over buses at least `width` wide.

        (A search of its own: the checks of every model ask for it, and networkx takes long to load.)
        """
        key = (source, width)
        if key not in self._searches.reached:
            found, senders = frozenset[str](), frozenset({source})
            while senders:
                leading = {number for unit in senders for number in self._leading.get(unit, ())}
                more = frozenset(
                    sink
                    for number in leading
                    if self.model.buses[number].bytes_per_cycle >= width
                    for sink in self.members[number][1]
                )
                senders = frozenset(filter(self.carries, more - found))
                found |= more
            self._searches.reached[key] = found
        return self._searches.reached[key]

    def _ports_of(self, width: float) -> networkx.DiGraph[_Node]:
        """The hops over buses at least `width` wide: out of a unit, over a bus, into a unit, and out again where the
        unit carries data. Edges have a `latency`."""
        import networkx

        if width not in self._searches.ports:
            graph: networkx.DiGraph[_Node] = networkx.DiGraph()
            for unit in self.units:
                graph.add_nodes_from([(unit, _OUT), (unit, _IN)])
                if self.carries(unit):
                    transfer = self.model.tx_units.get(parse_unit(unit)[0])
                    graph.add_edge(
                        (unit, _IN), (unit, _OUT), latency=transfer.latency_cycles if transfer else 0.0
                    )
            for number, (bus, (sources, sinks)) in enumerate(
                zip(self.model.buses, self.members, strict=True)
            ):
                if bus.bytes_per_cycle >= width:
                    graph.add_edges_from(
                        ((unit, _OUT), number, {"latency": bus.latency_cycles}) for unit in sources
                    )
                    graph.add_edges_from((number, (unit, _IN), {"latency": 0.0}) for unit in sinks)
            self._searches.ports[width] = graph
        return self._searches.ports[width]

    def _quickest_route(self, source: str, sink: str, width: float) -> Route:
        """The route of least latency over buses at least `width` wide; ties go by hops, then by names."""
        import networkx

        if (source, width) not in self._searches.quickest:
            before, latency = networkx.dijkstra_predecessor_and_distance(
                self._ports_of(width), (source, _OUT), weight="latency"
            )
            # every path in this graph, whose edges point back to `source`, has the least latency
            edges = ((node, earlier) for node, nodes in before.items() for earlier in nodes)
            self._searches.quickest[source, width] = networkx.DiGraph(edges), latency
        back, latency = self._searches.quickest[source, width]
        left = networkx.single_source_shortest_path_length(back, (sink, _IN))
        hops: list[Hop] = []
        unit = source
        while not hops or unit != sink:
            # each hop is two edges: onto a bus, and off it
            nearer = left[unit, _OUT] - 2
            following = (
                (port[0], bus)
                for bus in back.predecessors((unit, _OUT))
                for port in back.predecessors(bus)
                if isinstance(bus, int) and isinstance(port, tuple) and left.get(port) == nearer
            )
            next_unit, number = min(following)
            hops.append(Hop(unit, next_unit, number, self.model.buses[number]))
            unit = next_unit
        return Route(tuple(hops), width, latency[sink, _IN])

    def _chained(self, source: str, sink: str) -> Route:
        """The fewest direct routes one after the other; of equal chains the first in the order of units."""
        for passed in (frozenset(self.memories), frozenset(self.units)):
            chain = self._chain(source, sink, passed)
            if chain:
                result = self.route(source, chain[1])
                for here, there in pairwise(chain[1:]):
                    result = result.then(self.route(here, there), stage=here)
                return result
        return self.route(source, sink)  # there is none: the error says so

    def _chain(self, source: str, sink: str, passed: frozenset[str]) -> list[str]:
        """The units from `source` to `sink` that direct routes lead to one after the other through units of `passed`,
        by a search in breadth that ends at `sink`; empty when there is no such chain."""
        before, waiting = {source: ""}, deque([source])
        while waiting:
            unit = waiting.popleft()
            for near in self._near(unit) if unit == source or unit in passed else ():
                if near not in before:
                    before[near] = unit
                    waiting.append(near)
            if sink in before:
                chain = [sink]
                while before[chain[-1]]:
                    chain.append(before[chain[-1]])
                return chain[::-1]
        return []

    def _near(self, unit: str) -> tuple[str, ...]:
        """The units that a direct route from `unit` reaches, in the order of the model."""
        if unit not in self._searches.ordered:
            found = sorted(self.reached_from(unit), key=self._unit_order.__getitem__)
            self._searches.ordered[unit] = tuple(found)
        return self._searches.ordered[unit]

    def nearest(self, name: str, unit: str, *, writes: bool) -> str:
        """The first unit called `name` that `unit` reads or writes over a direct route; without any the first."""
        for near in self.instances(name):
            ends = (unit, near) if writes else (near, unit)
            if self.find_route(*ends) is not None:
                return near
        return f"{name}[0]"

    def widest_bus(self, name: str) -> float:
        """The bytes per cycle of the widest bus at any unit called `name`; infinite without any."""
        at = (
            bus for bus in self.model.buses if name in {parse_unit(u)[0] for u in (*bus.sources, *bus.sinks)}
        )
        return max((bus.bytes_per_cycle for bus in at), default=inf)

    def memories_of(self, unit: str, access: Literal["read", "write", "both"] = "both") -> tuple[str, ...]:
        """The memories that an execution unit can read, write, or both: the widest route first, then the nearest."""
        found: list[tuple[float, float, int, int, str]] = []
        for number, memory in enumerate(self.memories):
            reads, writes = unit in self.reached_from(memory), memory in self.reached_from(unit)
            if {"read": reads, "write": writes, "both": reads and writes}[access]:
                routes = [self.route(memory, unit)] if access != "write" else []
                routes += [self.route(unit, memory)] if access != "read" else []
                width = min(route.bytes_per_cycle for route in routes)
                latency = max(route.latency_cycles for route in routes)
                found.append((-width, latency, len(routes[0].hops), number, memory))
        return tuple(entry[-1] for entry in sorted(found))
