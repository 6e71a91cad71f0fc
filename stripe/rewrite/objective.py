"""The objective of a decision by price."""

from __future__ import annotations

from typing import Literal, TypeAlias

Objective: TypeAlias = Literal["none", "latency", "energy", "edp"]

UNITS = {"latency": "cycles", "energy": "pJ", "edp": "pJ * cycles"}


def measured(cycles: float, energy_pJ: float, objective: Objective) -> float:
    """The part of a price that counts."""
    return {"energy": energy_pJ, "edp": energy_pJ * cycles}.get(objective, cycles)
