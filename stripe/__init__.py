"""stripe-opt: tensor programs as nested polyhedral blocks, rewritten for one machine by a list of passes.

The names here are the public API; docs/python.md shows them at work. Each loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from stripe.api.compiling import hardware, prove, run_passes, translate, write_folder
    from stripe.api.reading import check, parse, read
    from stripe.api.running import SimulationReport, compile, random_inputs, run, simulate
    from stripe.api.sweeping import SweepRun, sweep
    from stripe.hw.schema import HardwareModel
    from stripe.ir import (
        DTYPES,
        Affine,
        Agg,
        Block,
        ConfigError,
        Constant,
        ConstantBuffer,
        Constraint,
        Dim,
        Direction,
        Index,
        IndexMap,
        Intrinsic,
        Load,
        LoadIndex,
        Location,
        PhysicalLayout,
        Program,
        Refinement,
        Role,
        Special,
        Store,
        StripeError,
        Tags,
        parse_affine,
        read_index_map,
        row_major,
        walk,
    )
    from stripe.passes.base import Pass, Remark
    from stripe.passes.registry import find_pass, pass_names
    from stripe.verify.proof.judge import Judgement

_HOMES = {
    "api.compiling": ("hardware", "prove", "run_passes", "translate", "write_folder"),
    "api.reading": ("check", "parse", "read"),
    "api.running": ("SimulationReport", "compile", "random_inputs", "run", "simulate"),
    "api.sweeping": ("SweepRun", "sweep"),
    "hw.schema": ("HardwareModel",),
    "ir": (
        "Affine", "Agg", "Block", "ConfigError", "Constant", "ConstantBuffer", "Constraint", "DTYPES", "Dim",
        "Direction", "Index", "IndexMap", "Intrinsic", "Load", "LoadIndex", "Location", "PhysicalLayout", "Program",
        "Refinement", "Role", "Special", "Store", "StripeError", "Tags", "parse_affine", "read_index_map", "row_major",
        "walk",
    ),
    "passes.base": ("Pass", "Remark"),
    "passes.registry": ("find_pass", "pass_names"),
    "verify.proof.judge": ("Judgement",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DTYPES", "Affine", "Agg", "Block", "ConfigError", "Constant", "ConstantBuffer", "Constraint", "Dim", "Direction",
    "HardwareModel", "Index", "IndexMap", "Intrinsic", "Judgement", "Load", "LoadIndex", "Location", "Pass",
    "PhysicalLayout", "Program", "Refinement", "Remark", "Role", "SimulationReport", "Special", "Store", "StripeError",
    "SweepRun", "Tags", "check", "compile", "find_pass", "hardware", "parse", "parse_affine", "pass_names", "prove",
    "random_inputs", "read", "read_index_map",
    "row_major", "run", "run_passes", "simulate", "sweep", "translate", "walk",
    "write_folder",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'stripe' has no attribute '{name}'")
    import_module("stripe.api.notebook")  # programs show as text and graphs from here on
    found = getattr(import_module(f"stripe.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
