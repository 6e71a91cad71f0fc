"""The price of mappings by an objective, from the factors of their terms: energy, and an estimate of cycles."""

from __future__ import annotations

import numpy as np

from stripe.cost.mapping.problem import Floats
from stripe.cost.mapping.terms import PriceTerms
from stripe.cost.objective import Objective, objective_value

SERIAL = 0.2
"""The part of moving and computing in which they do not overlap, an estimate: in one tile nothing does, in many all.
With this one 60 nests on six units are nearest to their simulation: the mean error is 17 %."""
TIE = 1e-15
"""Cycles for a pJ, where mappings take the same time."""


class MappingPrices:
    """The price of mappings of one skeleton. Mappings have a row of factors, one for each term; where two tables are
    given, each row of one stands for a part of the indices, and is multiplied with each of the other."""

    def __init__(self, terms: PriceTerms, objective: Objective) -> None:
        self._objective: Objective = objective
        self._constant_pJ = terms.constant_pJ
        self._leakage_pJ = terms.hierarchy.leakage_pJ
        pJ = np.array([term.pJ for term in terms.terms])
        self._paid = np.flatnonzero(pJ)
        self._pJ = pJ[self._paid]
        self._needed = [(np.array(list(each)), np.array(list(each.values()))) for each in terms.busiest]
        self._serial = np.array(sorted(terms.serial), np.int64)
        self._serial_cycles = SERIAL * np.array([terms.serial[term] for term in sorted(terms.serial)])

    def of(self, rows: Floats, factors: Floats) -> Floats:
        """The price of each row with each choice. Of mappings that are as fast the one of less energy is better, by a
        term too small to outweigh a cycle."""
        energy, cycles = self.energy_and_cycles(rows, factors)
        price = objective_value(cycles, energy, self._objective)
        return price + energy * TIE if self._objective == "latency" else price

    def energy_and_cycles(self, rows: Floats, factors: Floats) -> tuple[Floats, Floats]:
        """The energy in pJ of each row with each choice, and its cycles, which are one 0 where time does not count."""
        energy = (rows[:, self._paid] * self._pJ) @ factors[:, self._paid].T + self._constant_pJ
        if not self._needed:
            return energy, np.zeros(())
        cycles = self._cycles(rows, factors)
        return energy + cycles * self._leakage_pJ, cycles

    def _cycles(self, rows: Floats, factors: Floats) -> Floats:
        """The busiest resource, and a part of all work one after the other: it overlaps but for the first and last
        tiles."""
        busiest = np.zeros((len(rows), len(factors)))
        for terms, cycles in self._needed:
            np.maximum(busiest, (rows[:, terms] * cycles) @ factors[:, terms].T, out=busiest)
        busiest *= 1 - SERIAL
        busiest += (rows[:, self._serial] * self._serial_cycles) @ factors[:, self._serial].T
        return busiest
