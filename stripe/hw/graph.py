"""The units of a machine and the buses between them as a directed graph; routes through it."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from stripe.hw.schema import Bus, HardwareModel
from stripe.ir.errors import ConfigError, closest

if TYPE_CHECKING:
    import networkx

_UNIT = re.compile(r"([A-Za-z_]\w*)(?:\[\s*(\d+|\*)\s*\])?", re.ASCII)


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
        near = closest(name, model.unit_names)
        raise ValueError(f"there is no unit '{name}'" + (f"; did you mean '{near}'?" if near else ""))
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


@dataclass(frozen=True, slots=True)
class Route:
    """A way for data through the machine. Its middle units are transfer units and transparent caches."""

    hops: tuple[Hop, ...]
    bytes_per_cycle: float
    """The width of its narrowest bus: data stream through all of it at once."""
    latency_cycles: float
    """Cycles before the first byte arrives: of the buses, and for setting up the transfer units on the way."""

    @property
    def units(self) -> tuple[str, ...]:
        """The units on the way, without source and sink."""
        return tuple(hop.sink for hop in self.hops[:-1])

    @property
    def buses(self) -> tuple[Bus, ...]:
        """The bus of each hop."""
        return tuple(hop.bus for hop in self.hops)

    def cycles(self, size: int) -> float:
        """Cycles to move `size` bytes when nothing else is on the way."""
        return self.latency_cycles + size / self.bytes_per_cycle


class UnitGraph:
    """The graph of a model that has passed its checks (`load_hardware` makes them)."""

    def __init__(self, model: HardwareModel) -> None:
        self.model = model
        self._members = [
            tuple(
                tuple(dict.fromkeys(unit for text in side for unit in instances(model, text)))
                for side in (bus.sources, bus.sinks)
            )
            for bus in model.buses
        ]
        self._leaving: dict[str, list[int]] = {}
        for number, (sources, _) in enumerate(self._members):
            for source in sources:
                self._leaving.setdefault(source, []).append(number)
        self._routes: dict[tuple[str, str], Route | None] = {}
        self._reached: dict[str, frozenset[str]] = {}

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
    def exec_units(self) -> tuple[str, ...]:
        """All units that compute, `NAME[number]`, in the order of the model."""
        return tuple(unit for name in self.model.exec_units for unit in self.instances(name))

    @cached_property
    def networkx(self) -> networkx.DiGraph[str]:
        """As a networkx graph: units, and buses as nodes such as `bus 3` between their sources and sinks."""
        import networkx

        graph: networkx.DiGraph[str] = networkx.DiGraph()
        graph.add_nodes_from(self.units)
        for number, (sources, sinks) in enumerate(self._members):
            node = f"bus {number}"
            graph.add_node(node)
            graph.add_edges_from((source, node) for source in sources)
            graph.add_edges_from((node, sink) for sink in sinks)
        return graph

    def carries(self, unit: str) -> bool:
        """Whether routes go through `unit`: a transfer unit or a transparent cache."""
        name = parse_unit(unit)[0]
        memory = self.model.mem_units.get(name)
        return name in self.model.tx_units or (memory is not None and memory.is_cache)

    def find_route(self, source: str, sink: str) -> Route | None:
        """The best route from one unit to another, None when there is none.

        Best is: the least time per byte (the widest narrowest bus), then the least latency, then the fewest hops, then
        the first in the order of the names of units and the numbers of buses.
        """
        for unit in (source, sink):
            if unit not in self._unit_set:
                near = closest(unit, self.units)
                raise ConfigError(
                    f"there is no unit '{unit}'", hint=f"did you mean '{near}'?" if near else None
                )
        key = (source, sink)
        if key not in self._routes:
            reached = sink in self.reached_from(source)
            self._routes[key] = self._quickest(source, sink, self._width(source, sink)) if reached else None
        return self._routes[key]

    def route(self, source: str, sink: str) -> Route:
        """The best route, as `find_route` has it. Raises ConfigError when there is none."""
        found = self.find_route(source, sink)
        if found is None:
            raise ConfigError(
                f"no bus leads from {source} to {sink}", hint="add one to 'buses' of the hardware model"
            )
        return found

    @cached_property
    def _unit_set(self) -> frozenset[str]:
        return frozenset(self.units)

    def _hops_from(self, unit: str) -> Iterator[Hop]:
        for number in self._leaving.get(unit, ()):
            for sink in self._members[number][1]:
                yield Hop(unit, sink, number, self.model.buses[number])

    def _width(self, source: str, sink: str) -> float:
        """Bytes per cycle of the narrowest bus on the widest way."""
        best: dict[str, float] = {}
        waiting = [(-float("inf"), source)]
        while waiting:
            width, unit = heapq.heappop(waiting)
            if unit == sink and unit in best:
                return best[unit]
            if unit != source and not self.carries(unit):
                continue
            for hop in self._hops_from(unit):
                through = min(-width, hop.bus.bytes_per_cycle)
                if through > best.get(hop.sink, 0.0):
                    best[hop.sink] = through
                    heapq.heappush(waiting, (-through, hop.sink))
        return best[sink]

    def _quickest(self, source: str, sink: str, width: float) -> Route | None:
        """The way of least latency over buses at least `width` wide; ties go by hops, then by names."""
        waiting: list[tuple[float, int, tuple[tuple[str, int], ...], str]] = [(0.0, 0, (), source)]
        done: set[str] = set()
        while waiting:
            latency, _, way, unit = heapq.heappop(waiting)
            if unit == sink and way:
                return Route(self._hops(source, way), width, latency)
            if unit in done or (way and not self.carries(unit)):
                continue
            if way:
                done.add(unit)
            for hop in self._hops_from(unit):
                if hop.bus.bytes_per_cycle >= width and hop.sink not in done:
                    longer = (*way, (hop.sink, hop.index))
                    cost = (
                        latency
                        + hop.bus.latency_cycles
                        + (self._set_up(hop.sink) if hop.sink != sink else 0.0)
                    )
                    heapq.heappush(waiting, (cost, len(longer), longer, hop.sink))
        return None

    def _set_up(self, unit: str) -> float:
        transfer = self.model.tx_units.get(parse_unit(unit)[0])
        return transfer.latency_cycles if transfer else 0.0

    def _hops(self, source: str, way: Sequence[tuple[str, int]]) -> tuple[Hop, ...]:
        hops: list[Hop] = []
        for sink, index in way:
            hops.append(Hop(source, sink, index, self.model.buses[index]))
            source = sink
        return tuple(hops)

    def memories_of(self, unit: str, access: Literal["read", "write", "both"] = "both") -> tuple[str, ...]:
        """The memories that an execution unit can read, write, or both: the widest way first, then the nearest."""
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

    def reached_from(self, source: str) -> frozenset[str]:
        """The units to which there is a route from `source`."""
        if source not in self._reached:
            reached: set[str] = set()
            waiting = [source]
            while waiting:
                for hop in self._hops_from(waiting.pop()):
                    if hop.sink not in reached:
                        reached.add(hop.sink)
                        if self.carries(hop.sink):
                            waiting.append(hop.sink)
            self._reached[source] = frozenset(reached)
        return self._reached[source]

    @property
    def members(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """Sources and sinks of each bus as units."""
        return tuple((sources, sinks) for sources, sinks in self._members)
