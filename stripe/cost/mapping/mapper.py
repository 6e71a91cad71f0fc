"""Plans for nests: searches, each made once, and cuts of indices whose ranges fit the machine badly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stripe.cost.counts.energy import operations_energy
from stripe.cost.counts.operations import point_operations
from stripe.cost.mapping.hierarchy import MappingRules, hierarchy_for
from stripe.cost.mapping.loop_mapping import LoopMapping
from stripe.cost.mapping.problem import Hierarchy, LoopNest
from stripe.cost.mapping.search import Found, search
from stripe.cost.objective import Objective, objective_value
from stripe.cost.time.machine import Machine
from stripe.cost.time.workload import CostModel
from stripe.hw.schema import HardwareModel
from stripe.ir import Nest
from stripe.ir.frozen import replace

UNRESTRICTED = MappingRules()
FULL = 0.75
"""The part of an axis that a divisor has to fill, so that an index is not cut."""


@dataclass(frozen=True)
class NestPlan:
    """A plan for a nest, with its energy in pJ and its cycles, which are 0 where time does not count. No mapping by
    divisors, of all parts together, has a price below `bound`."""

    nest: LoopNest
    energy_pJ: float
    cycles: float
    bound: float
    objective: Objective

    @property
    def price(self) -> float:
        """The objective: pJ, cycles, or their product."""
        return objective_value(self.cycles, self.energy_pJ, self.objective)

    @property
    def gap(self) -> float:
        """The share by which the price may be above the best mapping's."""
        return max(0.0, self.price / self.bound - 1.0) if self.bound > 0 else 0.0


@dataclass(frozen=True)
class MappedNest(NestPlan):
    """The plan of a nest as it is: one mapping."""

    mapping: LoopMapping


@dataclass(frozen=True)
class CutNest(NestPlan):
    """The plan of a nest as two, which run one after the other: the `first` values of an index, and the others."""

    index: str
    first: int
    parts: tuple[NestPlan, NestPlan]


class Mapper:
    """Plans nests for a machine. Equal nests are searched once."""

    def __init__(
        self,
        hardware: HardwareModel,
        unit: str,
        objective: Objective = "energy",
        limit: int = 0,
        *,
        peels: bool = True,
    ) -> None:
        self.hardware = hardware
        self.unit = unit
        self.objective: Objective = objective
        self.limit = limit
        self.peels = peels
        self.priced = 0
        """Mappings priced by the latest call of `plans`; 0 where an equal nest has been searched."""
        self.mappings = 0
        """Mappings among which it searched."""
        self._found: dict[str, Found] = {}

    def plans(
        self,
        nest: LoopNest,
        compute_pJ: float,
        rules: MappingRules = UNRESTRICTED,
        stationary: str = "",
        count: int = 1,
        step_cycles: float = 0.0,
    ) -> list[NestPlan]:
        """The `count` best plans for a nest, the best first. `rules` go by the names of its canonical form;
        `compute_pJ` and, where time counts, `step_cycles` are those of one point on one unit."""
        self.priced = self.mappings = 0
        held = next((n for n, operand in enumerate(nest.operands[:-1]) if operand.name == stationary), None)
        task = _NestSearch(self, compute_pJ, rules, held, count, step_cycles)
        whole = task.whole(nest)
        if self.peels:
            cut = task.cut(nest, whole[0].price if whole else float("inf"))
            whole = sorted([*whole, *cut], key=lambda plan: plan.price)[:count]
        return whole

    @property
    def counts_time(self) -> bool:
        """Whether time has a part in the objective; in energy it has where the machine leaks."""
        return self.objective != "energy" or self.hardware.leakage_pJ_per_cycle > 0

    def point_pJ(self, nest: Nest) -> float:
        """The energy of the operations of a point of a block on one unit."""
        return operations_energy(point_operations(nest.block), self.hardware.exec_unit(self.unit))

    def point_cycles(self, nest: Nest) -> float:
        """The cycles of a point of a block on one unit. Raises ConfigError for an operation without a rate."""
        return CostModel(Machine.of(self.hardware)).point_cycles(nest, self.unit)

    def find(self, nest: LoopNest, hierarchies: list[Hierarchy], count: int) -> Found:
        """The search of a canonical nest."""
        key = f"{nest} {hierarchies} {count}"
        if key not in self._found:
            found = search(nest, hierarchies, count=count, objective=self.objective, limit=self.limit)
            self._found[key] = found
            self.priced += found.priced
            self.mappings += found.total
        return self._found[key]


@dataclass(frozen=True)
class _NestSearch:
    mapper: Mapper
    compute_pJ: float
    rules: MappingRules
    stationary: int | None
    count: int
    step_cycles: float

    def whole(self, nest: LoopNest) -> list[NestPlan]:
        """Mappings of the nest as it is."""
        mapper, form = self.mapper, nest.canonical
        held = form.operands[:-1] if self.stationary is None else (form.operands[self.stationary],)
        cycles = self.step_cycles if mapper.counts_time else None
        hierarchies = [
            hierarchy_for(
                form, operand, mapper.hardware, mapper.unit, self.compute_pJ, self.rules, step_cycles=cycles
            )
            for operand in held
        ]
        found = mapper.find(form, hierarchies, self.count)
        return [
            MappedNest(nest, best.energy_pJ, best.cycles, found.bound, mapper.objective, best.of(nest))
            for best in found.best
        ]

    def cut(self, nest: LoopNest, price: float) -> list[NestPlan]:
        """The best plan that cuts an index, if it is better than `price`."""
        best: list[NestPlan] = []
        for name, size in self._cuts(nest):
            first, second = (
                replace(nest, ranges={**nest.ranges, name: count})
                for count in (size, nest.ranges[name] - size)
            )
            below, above = self.whole(first)[:1], self.whole(second)[:1]
            if not (below and above):
                continue
            below = self.cut(first, below[0].price) or below
            parts = (below[0], above[0])
            energy, cycles, bound = (
                sum(figures)
                for figures in zip(*((p.energy_pJ, p.cycles, p.bound) for p in parts), strict=True)
            )
            plan = CutNest(nest, energy, cycles, bound, self.mapper.objective, name, size, parts)
            if plan.price < price:
                best, price = [plan], plan.price
        return best

    def _cuts(self, nest: LoopNest) -> Iterator[tuple[str, int]]:
        """Indices of the results, which no divisor spreads well over an axis that may carry them, with the largest
        multiple of that axis. (A sum that is cut would be written twice.)"""
        numbers = nest.numbers
        fixed = {name for sizes in self.rules.sizes.values() for name in sizes}
        for axis in self.mapper.hardware.exec_unit(self.mapper.unit).axes:
            allowed = self.rules.space.get(axis.name)
            for name, size in nest.ranges.items():
                if axis.carries == "reduced" or name not in nest.output.indices or numbers[name] in fixed:
                    continue
                best = max(n for n in range(1, axis.size + 1) if size % n == 0)
                if (
                    size > axis.size
                    and best < FULL * axis.size
                    and (allowed is None or numbers[name] in allowed)
                ):
                    yield name, size - size % axis.size
