"""What one statement of `main` costs, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stripe.cost.counts.operations import Operations
from stripe.hw.graph import Route, parse_unit


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


@dataclass(frozen=True)
class TileSlice:
    """A stage of a tile inside a kernel: on which unit, and when, in cycles from the kernel's start."""

    unit: str
    name: str
    tile: int
    transfer: bool
    start: float
    end: float


@dataclass(frozen=True)
class StatementCost:
    """The cost of one statement of `main`. Cycles are of the whole statement; `demand` says for how many cycles it
    needs all of a bus, transfer unit or memory port."""

    name: str
    number: int
    transfer: bool
    unit: str
    """Name of the unit it runs on; of a transfer without a transfer unit the first bus."""
    instances: tuple[int, ...] | None
    """Numbers of the units that it occupies; None: any `parallel` of them."""
    parallel: int
    defaulted: bool
    operations: Operations
    compute_cycles: float
    utilisation: float
    rule: str
    latency: float
    """Cycles before the first byte or result."""
    cycles: float
    flows: tuple[Flow, ...]
    demand: Mapping[str, float]
    stalls: Mapping[str, float]
    energy: Mapping[str, float]
    ops_per_cycle: float
    """The most operations per cycle that its units do, of the kind that it does."""
    notes: tuple[str, ...] = ()
    tiles: int = 1
    slices: tuple[TileSlice, ...] = ()
    """What happens inside, where it is a loop over transfers that is not too long to show."""
    inside: Mapping[str, float] = field(default_factory=dict[str, float])
    """Cycles for which units that the statement does not occupy compute inside it."""
    useful: Mapping[str, float] = field(default_factory=dict[str, float])
    """Cycles of useful work of each unit that it occupies, where their numbers are given."""
    useful_inside: Mapping[str, float] = field(default_factory=dict[str, float])
    """The same of units that it does not occupy."""

    def bytes_at(self, memory: str) -> float:
        """Bytes read from or written to memories of that name."""
        return sum(f.bytes for f in self.flows for unit in _ends(f) if parse_unit(unit)[0] == memory)


def _ends(flow: Flow) -> tuple[str, ...]:
    return (flow.source, *flow.route.units, flow.sink)
