"""A machine as the cost models see it: which unit a location means, and on which way bytes go."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from stripe.hw.graph import Hop, UnitGraph, parse_unit
from stripe.hw.schema import ExecUnit, HardwareModel, MemUnit
from stripe.ir import Block, ConfigError, Interval, Location, walk


def check_locations(entry: Block, model: HardwareModel) -> None:
    """Raises ConfigError for the first location of a block or buffer that the machine lacks, with its place."""
    for _, block in walk(entry):
        named = [(f"block {block.name}", block.location)]
        named += [(f"'{ref.name}' in block {block.name}", ref.location) for ref in block.refinements]
        for place, location in named:
            try:
                model.check_location(location)
            except ConfigError as error:
                raise ConfigError(error.reason, where=place, hint=error.hint) from None
        for ref in block.refinements:
            if ref.location and ref.location.name not in model.mem_units:
                raise ConfigError(
                    f"'{ref.location}' is no memory",
                    where=f"'{ref.name}' in block {block.name}",
                    hint=f"memories are {', '.join(model.mem_units)}",
                )


@dataclass(frozen=True, eq=False)
class Way:
    """How bytes get from one unit to another: hops over buses, with the units between them. Two ways are equal when
    they are the same object; a machine makes each of them once."""

    hops: tuple[Hop, ...]
    bytes_per_cycle: float
    latency_cycles: float
    stages: tuple[str, ...] = ()
    """Explicit memories (or units that compute) on the way, which no route passes by itself."""

    @property
    def middle(self) -> tuple[str, ...]:
        """The units between its ends, in order."""
        return tuple(hop.sink for hop in self.hops[:-1])

    def then(self, other: Way, setup: float = 0.0, stage: str | None = None) -> Way:
        """This way and then another; `setup` are cycles between them, `stage` the unit there if no route passes it."""
        return Way(
            self.hops + other.hops,
            min(self.bytes_per_cycle, other.bytes_per_cycle),
            self.latency_cycles + other.latency_cycles + setup,
            self.stages + other.stages + ((stage,) if stage else ()),
        )


NOWHERE = Way((), float("inf"), 0.0)
"""The way of what is already there."""


class Machine:
    """A hardware model with its graph, and the names of units in it."""

    def __init__(self, model: HardwareModel) -> None:
        self.model = model
        self.graph = UnitGraph(model)
        self._ways: dict[tuple[str, str], Way] = {}
        self._trees: dict[tuple[str, bool], dict[str, str]] = {}
        self._through: dict[tuple[str, str, str], Way] = {}
        self._near: dict[tuple[str, str, bool], str] = {}

    @cached_property
    def main_memory(self) -> str:
        """The memory of what has no location. Raises ConfigError when the machine has none."""
        name = self.model.main_memory
        if name is None:
            raise ConfigError("the machine has no memory for inputs and outputs", hint="mark one 'is_host'")
        return f"{name}[0]"

    def memory_of(self, unit: str) -> MemUnit:
        """The memory that `NAME[number]` is one of. Raises ConfigError."""
        return self.model.memory(parse_unit(unit)[0])

    def exec_of(self, unit: str) -> ExecUnit:
        """The kind of unit that `NAME[number]` is one of. Raises ConfigError."""
        return self.model.exec_unit(parse_unit(unit)[0])

    def memory(self, location: Location) -> str:
        """The memory of a buffer; where its block's indices choose one of several, the first stands for all."""
        if not location:
            return self.main_memory
        self.model.memory(location.name)
        return self.unit(location)

    def memory_near(self, location: Location, unit: str, *, writes: bool) -> str:
        """The memory of a buffer as `unit` sees it: of a location without a number the one that is nearest."""
        if not location or location.devices[-1].units or self.model.memory(location.name).count == 1:
            return self.memory(location)
        key = (location.name, unit, writes)
        if key not in self._near:
            self._near[key] = self._nearest(location.name, unit, writes=writes)
        return self._near[key]

    def _nearest(self, name: str, unit: str, *, writes: bool) -> str:
        for memory in self.graph.instances(name):
            ends = (unit, memory) if writes else (memory, unit)
            if self.graph.find_route(*ends) is not None:
                return memory
        return f"{name}[0]"

    def unit(self, location: Location) -> str:
        """The unit that a location means, the first of those that it may mean."""
        numbers = location.devices[-1].units
        constant = numbers[0].offset if numbers and numbers[0].is_constant else 0
        return f"{location.name}[{constant}]"

    def numbers(self, location: Location, ranges: Mapping[str, Interval]) -> tuple[int, ...] | None:
        """The numbers of the units that a location means over all points; None when any unit will do."""
        units = location.devices[-1].units
        if not units:
            return None
        low, high = units[0].bounds(ranges)
        count = self.model.unit(location.name).count
        if low < 0 or high >= count:
            raise ConfigError(f"'{location}' runs from {low} to {high}, and {location.name} has {count}")
        step = abs(units[0].terms[0][1]) if len(units[0].terms) == 1 else 1
        return tuple(range(low, high + 1, step))

    def way(self, source: str, sink: str) -> Way:
        """The way from one unit to another: the best route, else one over other memories, else over any units.

        Raises ConfigError when there is none.
        """
        if source == sink:
            return NOWHERE
        key = (source, sink)
        if key not in self._ways:
            self._ways[key] = self._find_way(source, sink)
        return self._ways[key]

    def way_through(self, source: str, unit: str, sink: str) -> Way:
        """The way from one memory to another through a given transfer unit."""
        key = (source, unit, sink)
        if key not in self._through:
            setup = self.model.tx_unit(parse_unit(unit)[0]).latency_cycles
            self._through[key] = self._route(source, unit).then(self._route(unit, sink), setup)
        return self._through[key]

    def _route(self, source: str, sink: str) -> Way:
        route = self.graph.route(source, sink)
        return Way(route.hops, route.bytes_per_cycle, route.latency_cycles)

    def _find_way(self, source: str, sink: str) -> Way:
        if self.graph.find_route(source, sink) is not None:
            return self._route(source, sink)
        for only_memories in (True, False):
            chain = self._chain(source, sink, only_memories=only_memories)
            if chain is not None:
                result = self._route(source, chain[1])
                for here, there in itertools.pairwise(chain[1:]):
                    result = result.then(self._route(here, there), stage=here)
                return result
        self.graph.route(source, sink)
        raise AssertionError("a route that was not found is there")

    def _chain(self, source: str, sink: str, *, only_memories: bool) -> list[str] | None:
        """The shortest chain of routes; of equal ones the first in the order of units."""
        key = (source, only_memories)
        before = self._trees.get(key, {})
        if sink not in before:
            before = self._trees[key] = self._tree(source, sink, only_memories=only_memories)
        if sink not in before:
            return None
        chain = [sink]
        while before[chain[-1]]:
            chain.append(before[chain[-1]])
        return chain[::-1]

    def _tree(self, source: str, sink: str, *, only_memories: bool) -> dict[str, str]:
        """For each unit that chains of routes reach from `source` the unit before it, nearest units first, until
        `sink` is among them."""
        passed = frozenset(self.graph.memories if only_memories else self.graph.units)
        order = {unit: number for number, unit in enumerate(self.graph.units)}
        before: dict[str, str] = {source: ""}
        waiting = [source]
        while waiting and sink not in before:
            following: list[str] = []
            for unit in waiting:
                for other in sorted(self.graph.reached_from(unit) - before.keys(), key=order.__getitem__):
                    before[other] = unit
                    if other in passed:
                        following.append(other)
            waiting = following
        return before
