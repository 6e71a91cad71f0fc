"""The cost of one statement of `main`, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from stripe.cost.counts.operations import Operations
from stripe.cost.time.pipeline import PipelineStage, pipeline_slices
from stripe.hw.graph import Route, parse_unit


class Resource(NamedTuple):
    """A resource of a machine: a unit, one channel of a transfer unit, a bus, or the ports of a memory."""

    kind: Literal["unit", "bus", "ports"]
    name: str
    number: int = 0
    channel: int = 0

    @staticmethod
    def unit(text: str) -> Resource:
        """The unit written `NAME[number]`."""
        name, number = parse_unit(text)
        return Resource("unit", name, number or 0)

    @property
    def is_shared(self) -> bool:
        """Whether several statements use it at a time, each a part of its bytes per cycle."""
        return self.kind != "unit"

    def __str__(self) -> str:
        unit = f"{self.name}[{self.number}]"
        return {"unit": unit, "bus": f"bus {self.name}", "ports": f"ports of {unit}"}[self.kind]


@dataclass(frozen=True)
class Flow:
    """Bytes of a buffer that go from one unit to another. `bound` marks an upper bound instead of an exact number."""

    buffer: str
    source: str
    sink: str
    bytes: float
    route: Route
    transfer: bool
    bound: bool = False


MOST_SLICES = 4096
"""A loop with more stages than this is shown as one bar."""


class TileSlice(NamedTuple):
    """A stage of a tile inside a kernel: its number, on which unit, and when, in cycles from the kernel's start."""

    stage: int
    unit: str
    name: str
    tile: int
    transfer: bool
    start: float
    end: float


@dataclass(frozen=True)
class TileStep:
    """A step of the tiles of a loop. `needs` are the cycles, in all tiles, for which it keeps its units and needs each
    other resource."""

    name: str
    transfer: bool
    flows: tuple[Flow, ...]
    needs: Mapping[Resource, float]


@dataclass(frozen=True)
class TileLoop:
    """A loop over tiles: its stages with the step behind each, its tiles, and the tiles in flight."""

    stages: tuple[PipelineStage, ...]
    steps: tuple[TileStep, ...]
    tiles: int
    depth: int

    def slices(self) -> tuple[TileSlice, ...]:
        """The steps of all tiles; none of a loop that is too long to show."""
        if self.tiles * len(self.stages) > MOST_SLICES:
            return ()
        units = [str(stage.resource) for stage in self.stages]
        return tuple(
            [
                TileSlice(
                    stage, units[stage], self.steps[stage].name, tile, self.steps[stage].transfer, start, end
                )
                for tile, stage, start, end in pipeline_slices(self.stages, self.tiles, self.depth)
            ]
        )


@dataclass(frozen=True)
class UnitSet:
    """The units of one name on which a statement or a part of it runs: those with `numbers`, or any; `parallel` of them
    at one time, where tiles in flight are on one unit each. A transfer without a transfer unit runs on the first bus of
    its route."""

    name: str
    numbers: tuple[int, ...] | None
    parallel: int = 1
    defaulted: bool = False
    """Whether the program leaves the choice of the unit open."""

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Its units, `NAME[number]`; the first ones where any will do."""
        return tuple(f"{self.name}[{n}]" for n in (self.numbers or range(self.parallel)))

    @property
    def at_once(self) -> UnitSet:
        """As many of them as work at one time."""
        numbers = self.numbers and self.numbers[: self.parallel]
        return self if numbers == self.numbers else UnitSet(self.name, numbers, self.parallel)

    @property
    def share(self) -> float:
        """The part of the time in which each of them computes, while one does."""
        return self.parallel / len(self.units)


@dataclass(frozen=True)
class Work:
    """The computing of a statement: operations, cycles of each of its units, the share of their lanes that does useful
    work, the rule by which the cycles follow, and the most of these operations that the units do in a cycle."""

    operations: Operations
    cycles: float
    utilisation: float
    rule: str
    ops_per_cycle: float


@dataclass(frozen=True)
class WorkByUnit:
    """By unit, the cycles in which it computes and the cycles of useful work. `unnumbered` are the former on units that
    a location leaves open, of which the first ones are taken."""

    compute: dict[str, float] = field(default_factory=dict[str, float])
    useful: dict[str, float] = field(default_factory=dict[str, float])
    unnumbered: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class StatementCost:
    """The cost of one statement of `main`, with the machine for itself. Cycles are of the whole statement; `demand` are
    the cycles for which it needs all of a resource."""

    name: str
    number: int
    transfer: bool
    units: UnitSet
    work: Work
    latency: float
    """Cycles before the first byte or result."""
    cycles: float
    flows: tuple[Flow, ...]
    demand: Mapping[Resource, float]
    stalls: Mapping[str, float]
    energy: Mapping[str, float]
    notes: tuple[str, ...]
    tiles: int
    loop: TileLoop | None
    """The loop over tiles that it is, if it runs once."""
    own: WorkByUnit
    """Work on the units that it occupies."""
    inside: WorkByUnit
    """Work inside it on other units."""

    @cached_property
    def slices(self) -> tuple[TileSlice, ...]:
        """The steps of its tiles, where it is a loop over transfers that is not too long to show."""
        return self.loop.slices() if self.loop is not None else ()

    def bytes_at(self, memory: str) -> float:
        """Bytes read from or written to memories of that name."""
        ends = (
            (flow.bytes, unit) for flow in self.flows for unit in (flow.source, *flow.route.units, flow.sink)
        )
        return sum(size for size, unit in ends if parse_unit(unit)[0] == memory)
