"""What adds up while the cost of a statement is worked out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from stripe.cost.rates import Effort
from stripe.cost.statement import Flow, TileSlice


@dataclass
class Tally:
    """What adds up while the pieces of a statement are gone through."""

    flows: list[Flow] = field(default_factory=list[Flow])
    demand: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    energy: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    stalls: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    notes: list[str] = field(default_factory=list[str])
    parts: list[Part] = field(default_factory=list["Part"])
    peak: float = 0.0
    slices: tuple[TileSlice, ...] = ()


@dataclass(frozen=True)
class ByteRates:
    """Of one byte: cycles by resource, pJ by component, and the most of these cycles."""

    cycles: tuple[tuple[str, float], ...]
    energy: tuple[tuple[str, float], ...]
    slowest: float


@dataclass(frozen=True)
class Busy:
    """How long a piece keeps a resource busy in all its runs, of which so many cycles in each run are latency."""

    cycles: float
    latency: float
    resource: str


@dataclass(frozen=True)
class Seat:
    """Where computing runs: so many units of one name."""

    name: str
    numbers: tuple[int, ...] | None
    parallel: int
    defaulted: bool

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(f"{self.name}[{n}]" for n in (self.numbers or range(self.parallel)))


@dataclass(frozen=True)
class Part:
    """Computing that a statement does on units of one name: cycles of each unit, and of how the effort follows."""

    seat: Seat
    compute: float
    effort: Effort
    operands: float
    """Cycles for which it waits for operands beyond those in which it computes."""
    fill: float
    """Cycles before the first results."""

    @property
    def busy(self) -> float:
        return self.compute + self.operands + self.fill


def main_parts(parts: Sequence[Part]) -> list[Part]:
    """The parts on those units that have most to do: the statement is theirs."""
    totals: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        totals[part.seat.name] += part.compute
    most = max(totals, key=lambda name: totals[name], default="")
    return [part for part in parts if part.seat.name == most]
