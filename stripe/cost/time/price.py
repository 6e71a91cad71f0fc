"""The price of a program on a machine, for searches: numbers of the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stripe.cost.time.simulate import simulate_program
from stripe.hw.graph import parse_unit
from stripe.hw.schema import HardwareModel
from stripe.ir import Program


@dataclass(frozen=True, slots=True)
class Price:
    """The time of a program, its energy, static energy included, the cycles of each statement alone with the rules by
    which units compute, and how full explicit memories are at the most, by name, as a share of one unit: over 1 the
    program does not fit."""

    cycles: float
    energy_pJ: float
    statements: Mapping[str, float]
    rules: frozenset[str]
    fullness: Mapping[str, float]


def price_program(program: Program, model: HardwareModel) -> Price:
    """The price of a program that is ready for the machine. Raises as `simulate_program`."""
    found = simulate_program(program, model)
    full: dict[str, float] = {}
    for unit, share in found.fullness.items():
        name = parse_unit(unit)[0]
        full[name] = max(full.get(name, 0.0), share)
    energy = sum(sum(cost.energy.values()) for cost in found.costs)
    energy += model.leakage_pJ_per_cycle * found.cycles
    rules = frozenset(cost.work.rule for cost in found.costs)
    return Price(found.cycles, energy, {cost.name: cost.cycles for cost in found.costs}, rules, full)
