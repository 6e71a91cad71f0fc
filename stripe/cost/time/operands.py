"""The flows of operands between memories, transparent caches and the units that compute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stripe.cost.counts.transfers import location_of
from stripe.cost.time.caches import (
    CacheTraffic,
    KernelLoop,
    LoopRegions,
    Touch,
    kernel_loops,
    kernel_touches,
)
from stripe.cost.time.cores import HELD_BYTES
from stripe.cost.time.machine import Machine
from stripe.cost.time.pieces import Compute, Stream
from stripe.cost.time.statement import Flow, UnitSet
from stripe.hw.graph import Hop, Route, parse_unit
from stripe.ir import Agg, Buffer, Location, Nest, Path


class _RoutePart(NamedTuple):
    """A part of a route: from a memory or a cache to the next one, or to the unit."""

    source: str
    sink: str
    route: Route

    def flow(self, buffer: str, size: float, *, bound: bool = False) -> Flow:
        return Flow(buffer, self.source, self.sink, size, self.route, transfer=False, bound=bound)


@dataclass(frozen=True, slots=True)
class _BufferUse:
    """The use of a buffer by a kernel: its location, and whether it is read, written, and added to."""

    location: Location
    reads: bool = False
    writes: bool = False
    sums: bool = False


def _uses(touches: Iterable[Touch]) -> dict[Buffer, _BufferUse]:
    found: dict[Buffer, _BufferUse] = {}
    for touch in touches:
        access = touch.access
        known = found.get(touch.buffer) or _BufferUse(location_of(access))
        found[touch.buffer] = _BufferUse(
            known.location,
            known.reads or not access.is_write,
            known.writes or access.is_write,
            known.sums or (access.is_write and access.agg is not Agg.ASSIGN),
        )
    return found


class Operands:
    """The flows of operands on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._parts: dict[Route, tuple[_RoutePart, ...]] = {}
        self._ways: dict[tuple[Location, str, bool], tuple[tuple[_RoutePart, ...], Route]] = {}

    def near(self, streams: Iterable[Stream], units: UnitSet) -> Iterator[tuple[Flow, Route]]:
        """The flows between units and the first cache or memory on the way of each operand, with the whole way."""
        for stream in streams:
            size = stream.bytes / len(units.units)
            for unit in units.units:
                parts, route = self._way(stream.location, unit, writes=stream.writes)
                part = parts[0 if stream.writes else -1]
                yield part.flow(stream.buffer, size, bound=stream.bound), route

    def below(self, piece: Compute, units: UnitSet, *, split_leaves: bool) -> Iterator[tuple[Flow, Path]]:
        """The flows between caches and the next cache or memory below them, with the block that causes each.

        Partial results come in again but for their first time; other results only where the cache reads lines
        before it writes them.
        """
        caches = {name: memory for name, memory in self.machine.model.mem_units.items() if memory.is_cache}
        if not caches:
            return
        registers = self.machine.model.exec_unit(units.name).register_file_bytes or 0
        touches = kernel_touches(piece.nest, max(HELD_BYTES, registers))
        uses = _uses(touch for each in touches.values() for touch in each)
        outside = frozenset(piece.nest.prefix(piece.nest.depth - 1))
        numbering = frozenset(name for leaf in piece.leaves for name in _numbering(leaf))
        known: dict[tuple[object, ...], tuple[KernelLoop, LoopRegions]] = {}
        for name, memory in caches.items():
            ways = self._through(name, uses, units)
            instances = {part.sink for parts in ways.values() for part, writes in parts if not writes}
            shared = len(instances) < len(units.units)
            key = (memory.line_bytes, shared, frozenset(ways))
            if key not in known:
                apart, together = (outside, numbering) if shared else (outside | numbering, frozenset[str]())
                mine = {path: [t for t in each if t.buffer in ways] for path, each in touches.items()}
                loops = kernel_loops(piece.nest, mine, split_leaves=split_leaves)
                known[key] = loops, LoopRegions(memory.line_bytes, apart, together)
            loops, regions = known[key]
            traffic = CacheTraffic(memory, memory.size * (len(instances) if shared else 1), regions)
            fetched = traffic.fetched(loops)
            for (buffer, path), size in fetched.items():
                use = uses[buffer]
                read = size if use.reads or memory.allocates_on_write else 0.0
                if use.sums and not read:
                    whole = sum(each for (other, _), each in fetched.items() if other == buffer)
                    read = size * (1 - traffic.once(loops, buffer) / whole)
                for part, writes in ways[buffer]:
                    moved = size * use.writes if writes else read
                    if moved:
                        yield part.flow(buffer.name, moved * piece.runs / len(units.units)), path

    def _through(
        self, cache: str, uses: Mapping[Buffer, _BufferUse], units: UnitSet
    ) -> dict[Buffer, list[tuple[_RoutePart, bool]]]:
        """For each buffer whose way leads through caches of a name, the parts of the ways of all units between that
        cache and the memory below; with each whether it writes."""
        found: dict[Buffer, list[tuple[_RoutePart, bool]]] = {}
        for buffer, use in uses.items():
            for unit in units.units:
                for writes in (False, True):
                    parts, _ = self._way(use.location, unit, writes=writes)
                    for part in parts:
                        if parse_unit(part.source if writes else part.sink)[0] == cache:
                            found.setdefault(buffer, []).append((part, writes))
        return found

    def _way(self, location: Location, unit: str, *, writes: bool) -> tuple[tuple[_RoutePart, ...], Route]:
        """The route between a unit and the memory of an operand, and its parts."""
        key = (location, unit, writes)
        if key not in self._ways:
            self._ways[key] = self._found_way(*key)
        return self._ways[key]

    def _found_way(self, location: Location, unit: str, writes: bool) -> tuple[tuple[_RoutePart, ...], Route]:
        memory = self.machine.memory_near(location, unit, writes=writes)
        ends = (unit, memory) if writes else (memory, unit)
        route = self.machine.graph.connection(*ends)
        if route not in self._parts:
            self._parts[route] = tuple(self._split(route, *ends))
        return self._parts[route], route

    def _split(self, route: Route, source: str, sink: str) -> Iterator[_RoutePart]:
        hops: list[Hop] = []
        for hop in route.hops:
            hops.append(hop)
            memory = self.machine.model.mem_units.get(parse_unit(hop.sink)[0])
            if hop.sink != sink and memory is not None and memory.is_cache:
                yield _RoutePart(source, hop.sink, _route(hops))
                source, hops = hop.sink, []
        yield _RoutePart(source, sink, _route(hops) if len(hops) < len(route.hops) else route)


def _route(hops: list[Hop]) -> Route:
    return Route(tuple(hops), min(hop.bus.bytes_per_cycle for hop in hops), 0.0)


def _numbering(leaf: Nest) -> Iterator[str]:
    """The names in the domain of the indices that number units: spatial indices, and indices of locations."""
    for depth, block in enumerate(leaf.blocks):
        inside = leaf.prefix(depth)
        for index in block.iterated:
            if index.is_spatial and f"{index.name}@{depth}" in inside:
                yield f"{index.name}@{depth}"
    nest: Nest | None = leaf
    while nest is not None:
        for name in nest.block.location.names():
            yield from nest.local[name].names()
        nest = nest.outer
