"""The objective of a decision by price."""

from __future__ import annotations

from typing import Literal, TypeAlias

Objective: TypeAlias = Literal["latency", "energy", "edp"]
"""The part of a price that counts."""
ObjectiveOption: TypeAlias = Literal["none", Objective]
"""An objective, or none: whatever the price."""

UNITS = {"latency": "cycles", "energy": "pJ", "edp": "pJ * cycles"}


def objective_value(cycles: float, energy_pJ: float, objective: ObjectiveOption) -> float:
    """The part of a price that counts, in its `UNITS`; cycles where none does."""
    return {"energy": energy_pJ, "edp": energy_pJ * cycles}.get(objective, cycles)
