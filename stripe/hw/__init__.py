"""Hardware models: the schema, the graph of units and the routes through it.

Everything loads on first use, because `--help` passes by here and pydantic, Jinja and networkx take their time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stripe.hw.engines import Stencil, StencilIndex, SystolicArray
    from stripe.hw.graph import Hop, Route, UnitGraph, instances, parse_unit
    from stripe.hw.graphviz import to_dot
    from stripe.hw.load import load_hardware
    from stripe.hw.schema import Bus, ExecUnit, HardwareModel, MemUnit, TxUnit

_HOMES = {
    "graphviz": ("to_dot",),
    "graph": ("Hop", "Route", "UnitGraph", "instances", "parse_unit"),
    "load": ("load_hardware",),
    "engines": ("Stencil", "StencilIndex", "SystolicArray"),
    "schema": ("Bus", "ExecUnit", "HardwareModel", "MemUnit", "TxUnit"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Bus", "ExecUnit", "HardwareModel", "Hop", "MemUnit", "Route", "Stencil",
    "StencilIndex", "SystolicArray", "TxUnit", "UnitGraph", "instances", "load_hardware",
    "parse_unit", "to_dot",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'stripe.hw' has no attribute '{name}'")
    return getattr(import_module(f"stripe.hw.{_HOME_OF[name]}"), name)
