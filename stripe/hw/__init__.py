"""Hardware models: the schema, rendering of the Jinja templates, the graph of units and the routes through it.

Everything loads on first use, because `--help` passes by here and pydantic, Jinja and networkx take their time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stripe.hw.dot import to_dot
    from stripe.hw.graph import Hop, Route, UnitGraph, instances, parse_unit
    from stripe.hw.load import find_file, load_hardware, resolve_parameters, shipped
    from stripe.hw.params import parse_define
    from stripe.hw.schema import (
        Bus,
        Documented,
        ExecUnit,
        HardwareModel,
        MemUnit,
        Stencil,
        StencilIndex,
        SystolicArray,
        TxUnit,
    )
    from stripe.hw.template import (
        Document,
        Scalar,
        free_names,
        parse_document,
        read_json,
        render,
        render_json,
    )

_HOMES = {
    "dot": ("to_dot",),
    "graph": ("Hop", "Route", "UnitGraph", "instances", "parse_unit"),
    "load": ("find_file", "load_hardware", "resolve_parameters", "shipped"),
    "params": ("parse_define",),
    "schema": (
        "Bus", "Documented", "ExecUnit", "HardwareModel", "MemUnit", "Stencil", "StencilIndex", "SystolicArray",
        "TxUnit",
    ),
    "template": ("Document", "Scalar", "free_names", "parse_document", "read_json", "render", "render_json"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Bus", "Document", "Documented", "ExecUnit", "HardwareModel", "Hop", "MemUnit", "Route", "Scalar", "Stencil",
    "StencilIndex", "SystolicArray", "TxUnit", "UnitGraph", "find_file", "free_names", "instances", "load_hardware",
    "parse_define", "parse_document", "parse_unit", "read_json", "render", "render_json", "resolve_parameters",
    "shipped", "to_dot",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'stripe.hw' has no attribute '{name}'")
    return getattr(import_module(f"stripe.hw.{_HOME_OF[name]}"), name)
