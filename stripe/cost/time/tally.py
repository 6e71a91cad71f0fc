"""Running totals of the cost of a statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stripe.cost.time.rates import Effort
from stripe.cost.time.statement import Flow, Resource, TileLoop, UnitSet, WorkByUnit


@dataclass
class Tally:
    """Running totals over the pieces of a statement."""

    flows: list[Flow] = field(default_factory=list[Flow])
    demand: defaultdict[Resource, float] = field(default_factory=lambda: defaultdict(float))
    energy: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    stalls: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    notes: list[str] = field(default_factory=list[str])
    parts: list[ComputePart] = field(default_factory=list["ComputePart"])
    peak: float = 0.0
    loop: TileLoop | None = None

    def mark(self) -> TallyMark:
        """The totals of this moment, for `since`."""
        return TallyMark(len(self.flows), len(self.parts), dict(self.demand))

    def since(self, mark: TallyMark) -> tuple[tuple[Flow, ...], dict[Resource, float]]:
        """The flows that came since, and the cycles for which units are kept and other resources are needed."""
        kept: defaultdict[Resource, float] = defaultdict(float)
        for part in self.parts[mark.parts :]:
            for unit in part.units.units:
                kept[Resource.unit(unit)] += part.busy * part.units.share
        grown = {resource: need - mark.demand.get(resource, 0.0) for resource, need in self.demand.items()}
        needs = {resource: need for resource, need in grown.items() if need}
        return tuple(self.flows[mark.flows :]), {**needs, **kept}


class TallyMark(NamedTuple):
    """The number of flows and parts, and the demand, at one moment of a tally."""

    flows: int
    parts: int
    demand: Mapping[Resource, float]


@dataclass(frozen=True)
class ByteRates:
    """Rates of a byte: cycles by resource, pJ by component, and the most of these cycles."""

    cycles: tuple[tuple[Resource, float], ...]
    energy: tuple[tuple[str, float], ...]
    slowest: float


@dataclass(frozen=True)
class Busy:
    """The cycles for which a piece keeps a resource busy in all its runs; `latency` cycles of each run are latency."""

    cycles: float
    latency: float
    resource: Resource


@dataclass(frozen=True)
class ComputePart:
    """Computing of a statement on units of one name: the cycles in which some compute, and the effort that they follow
    from."""

    units: UnitSet
    compute: float
    effort: Effort
    operands: float
    """Cycles for which it waits for operands and does not compute."""
    fill: float
    """Cycles before the first results."""

    @property
    def busy(self) -> float:
        """Cycles for which it keeps its units."""
        return self.compute + self.operands + self.fill


def work_by_unit(parts: Sequence[ComputePart], units: UnitSet) -> tuple[WorkByUnit, WorkByUnit]:
    """The work on `units`, which the statement occupies, and the work on other units."""
    own, inside = WorkByUnit(), WorkByUnit()
    for part in parts:
        is_own = part.units.name == units.name and (part.units.numbers is None) == (units.numbers is None)
        work = own if is_own else inside
        compute = part.compute * part.units.share
        for unit in part.units.units:
            work.compute[unit] = work.compute.get(unit, 0.0) + compute
            work.useful[unit] = work.useful.get(unit, 0.0) + compute * part.effort.utilisation
            if part.units.numbers is None:
                work.unnumbered[unit] = work.unnumbered.get(unit, 0.0) + compute
    return own, inside


def joint_units(parts: Sequence[ComputePart]) -> UnitSet:
    """The units of parts on units of one name: all with a number, or else the units of the first part that leaves the
    numbers open."""
    sets = [part.units for part in parts]
    undecided = next((units for units in sets if units.numbers is None), None)
    if undecided is not None:
        return undecided
    numbers = tuple(sorted({number for units in sets for number in units.numbers or ()}))
    in_turn = any(units.share < 1 for units in sets)
    parallel = max(units.parallel for units in sets) if in_turn else len(numbers)
    return UnitSet(sets[0].name, numbers, parallel, sets[0].defaulted)


def main_parts(parts: Sequence[ComputePart]) -> list[ComputePart]:
    """The parts on the units with most to compute: these the statement occupies."""
    totals: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        totals[part.units.name] += part.compute
    most = max(totals, key=lambda name: totals[name], default="")
    return [part for part in parts if part.units.name == most]
