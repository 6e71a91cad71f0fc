"""What adds up while the cost of a statement is worked out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from stripe.cost.time.rates import Effort
from stripe.cost.time.statement import Flow, TileSlice


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
        """Its units, `NAME[number]`; the first ones where any will do."""
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
        """Cycles for which it keeps each of its units."""
        return self.compute + self.operands + self.fill


@dataclass(frozen=True)
class WorkByUnit:
    """Cycles in which units compute, and those in which they do useful work, by unit; `unnumbered` are the former on
    units that a location left open, of which the first ones are taken."""

    compute: dict[str, float]
    useful: dict[str, float]
    unnumbered: dict[str, float]

    @staticmethod
    def of(parts: Sequence[Part], seat: Seat) -> tuple[WorkByUnit, WorkByUnit]:
        """The work on the units of `seat`, which the statement occupies, and that on other units."""
        own, other = WorkByUnit({}, {}, {}), WorkByUnit({}, {}, {})
        for part in parts:
            at_home = part.seat.name == seat.name and (part.seat.numbers is None) == (seat.numbers is None)
            (own if at_home else other)._add(part)
        return own, other

    def _add(self, part: Part) -> None:
        for unit in part.seat.units:
            self.compute[unit] = self.compute.get(unit, 0.0) + part.compute
            self.useful[unit] = self.useful.get(unit, 0.0) + part.compute * part.effort.utilisation
            if part.seat.numbers is None:
                self.unnumbered[unit] = self.unnumbered.get(unit, 0.0) + part.compute


def joint_seat(parts: Sequence[Part]) -> Seat:
    """The units of parts on units of one name: all that they number, or else those of the first that leaves it open."""
    seats = [part.seat for part in parts]
    open_seat = next((seat for seat in seats if seat.numbers is None), None)
    if open_seat is not None:
        return open_seat
    numbers = tuple(sorted({number for seat in seats for number in seat.numbers or ()}))
    return Seat(seats[0].name, numbers, len(numbers), seats[0].defaulted)


def main_parts(parts: Sequence[Part]) -> list[Part]:
    """The parts on those units that have most to do: the statement is theirs."""
    totals: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        totals[part.seat.name] += part.compute
    most = max(totals, key=lambda name: totals[name], default="")
    return [part for part in parts if part.seat.name == most]
