"""The objective of a decision by price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Objective: TypeAlias = Literal["latency", "energy", "edp"]
"""The part of a price that counts."""
ObjectiveOption: TypeAlias = Literal["none", Objective]
"""An objective, or none: whatever the price."""
Amount = TypeVar("Amount", float, "npt.NDArray[np.float64]")
"""One price, or those of many candidates."""

UNITS = {"latency": "cycles", "energy": "pJ", "edp": "pJ * cycles"}


def objective_value(cycles: Amount, energy_pJ: Amount, objective: ObjectiveOption) -> Amount:
    """The part of a price that counts, in its `UNITS`; cycles where none does."""
    match objective:
        case "energy":
            return energy_pJ
        case "edp":
            return energy_pJ * cycles
        case _:
            return cycles
