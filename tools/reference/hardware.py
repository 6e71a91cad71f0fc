"""Regions of docs/hardware.md: fields of hardware models with unit and readers, parameter files, shipped models."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from pydantic import BaseModel

from stripe.config.files import find_file, load_parameters, shipped
from stripe.config.model import Documented
from stripe.config.parameters import Check, Parameter, ParameterFile
from stripe.hw import load_hardware
from stripe.hw.engines import GridAxis, Stencil, StencilIndex, SystolicArray
from stripe.hw.schema import Bus, ExecUnit, HardwareModel, MemUnit, TxUnit, Unit
from stripe.pipeline.describe import options_of
from tools.reference.keys import keys_of, short_type, shown_default
from tools.reference.markdown import code, table
from tools.reference.modules import nodes, parts

CLASSES: dict[str, type[BaseModel]] = {
    "HardwareModel": HardwareModel, "Unit": Unit, "MemUnit": MemUnit, "ExecUnit": ExecUnit, "Stencil": Stencil,
    "StencilIndex": StencilIndex, "SystolicArray": SystolicArray, "GridAxis": GridAxis, "TxUnit": TxUnit, "Bus": Bus,
}  # fmt: skip
"""The parts of a model, in the order of the page."""

EVERYWHERE = "everything that asks for units"
PEOPLE = "people"

_SIZE = (
    "cost/mapping/hierarchy", "cost/report/units", "hw/graphviz", "passes/autotile/tiling",
    "passes/memory_placement/memory_placement", "passes/register_cache/register_cache", "passes/schedule/schedule",
    "passes/subgroup/subgroup", "verify/machine/schedule",
)  # fmt: skip
_TIMED = ("cost/time/tile_unit", "cost/time/workload")
_MATCHED = ("cost/time/stencils",)
_MAPPED = ("cost/mapping/hierarchy",)

READERS: dict[str, str | tuple[str, ...]] = {
    "HardwareModel.name": "reports, pictures",
    "HardwareModel.description": PEOPLE,
    "HardwareModel.mem_units": EVERYWHERE,
    "HardwareModel.exec_units": EVERYWHERE,
    "HardwareModel.tx_units": EVERYWHERE,
    "HardwareModel.buses": EVERYWHERE,
    "HardwareModel.parameters": "pass lists, reports",
    "HardwareModel.sources": ("cost/report/report",),
    "Unit.count": EVERYWHERE,
    "MemUnit.size_KiB": _SIZE,
    "MemUnit.size_bytes": _SIZE,
    "MemUnit.kind": ("cost/counts/counts", "cost/time/workload", "hw/graphviz", "hw/graph"),
    "MemUnit.banks": ("cost/time/workload", "verify/machine/traffic"),
    "MemUnit.operands": _MAPPED,
    "MemUnit.alignment": (
        "passes/autotile/tiling",
        "passes/memory_placement/memory_placement",
        "passes/schedule/schedule",
    ),
    "ExecUnit.pipeline_depth": (*_TIMED, "cost/time/occupancy", "passes/autotile/tiling"),
    "ExecUnit.latency_cycles": _TIMED,
    "ExecUnit.array": ("cost/time/rates", "cost/time/workload"),
    "ExecUnit.threads": (),
    "Stencil.name": ("passes/tensorize/tensorize",),
    "Stencil.aggregation": _MATCHED,
    "Stencil.dtypes": _MATCHED,
    "Stencil.cycles": ("cost/time/rates",),
    "StencilIndex.name": ("cost/time/rates", "passes/tensorize/tensorize"),
    "StencilIndex.size": ("cost/time/rates", *_MATCHED, "passes/tensorize/tensorize"),
    "StencilIndex.outs": _MATCHED,
    "StencilIndex.ins": _MATCHED,
    "SystolicArray.rows": ("cost/time/arrays", "cost/time/tiles"),
    "SystolicArray.columns": ("cost/time/arrays", "cost/time/tiles"),
    "SystolicArray.dataflow": ("cost/time/arrays", "cost/time/tiles"),
    "GridAxis.name": _MAPPED,
    "GridAxis.size": _MAPPED,
    "GridAxis.carries": _MAPPED,
    "TxUnit.latency_cycles": ("hw/graph",),
    "Bus.name": "reports",
    "Bus.sources": ("hw/checks", "hw/graph"),
    "Bus.sinks": ("hw/checks", "hw/graph"),
    "Bus.latency_cycles": ("hw/graph",),
}
"""Readers of fields whose names mean other things elsewhere too: modules, which are checked to read an attribute of
that name, or words. Readers of all other fields are the modules that read such an attribute."""

NOBODY = "nothing yet"

_UNITS = (
    (r"clock_mhz", "MHz"), (r".*_KiB", "KiB"), (r"bytes_per_cycle", "bytes/cycle"), (r".*pJ_per_byte", "pJ/byte"),
    (r".*_pJ_per_op", "pJ/operation"), (r"ops_per_cycle", "operations/cycle"), (r".*bytes|alignment", "bytes"),
    (r".*cycles", "cycles"), (r".*_mW", "mW"), (r".*_mm2", "mm²"), (r".*_nm", "nm"), (r"startup_cost", "points"),
)  # fmt: skip


def unit_of(name: str) -> str:
    """The unit of measure of a field, by its name; empty for counts, names and tables."""
    return next((unit for pattern, unit in _UNITS if re.fullmatch(pattern, name)), "")


def own_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """The fields of a class, without those that it inherits."""
    return tuple(name for name in model.model_fields if name in model.__annotations__)


def readers(class_name: str, name: str) -> str:
    """The parts of the system that read a field. Raises ValueError where a module that is named does not."""
    given = READERS.get(f"{class_name}.{name}")
    if isinstance(given, str):
        return given
    accessors = _accessors(name)
    found = [module for module, read in _attributes().items() if accessors & read and module != "hw/schema"]
    if given is None:
        return ", ".join(parts(iter(found))) or NOBODY
    stale = [module for module in given if module not in found]
    if stale:
        raise ValueError(f"{class_name}.{name} is not read by {', '.join(stale)}")
    return ", ".join(parts(iter(given))) or NOBODY


def _accessors(name: str) -> frozenset[str]:
    """The attribute itself, and the methods of the schema that are made of it."""
    found = {name}
    while more := {method for method, read in _methods().items() if found & read} - found:
        found |= more
    return frozenset(found)


@cache
def _methods() -> dict[str, frozenset[str]]:
    """The public methods of the schema with the attributes that they read."""
    methods = [node for node in nodes()["hw/schema"] if isinstance(node, ast.FunctionDef)]
    return {node.name: _read(ast.walk(node)) for node in methods if not node.name.startswith("_")}


@cache
def _attributes() -> dict[str, frozenset[str]]:
    """The attributes that each module reads."""
    return {module: _read(found) for module, found in nodes().items()}


def _read(found: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset(node.attr for node in found if isinstance(node, ast.Attribute))


@cache
def machine(name: str) -> HardwareModel:
    """The shipped model of that name."""
    return load_hardware(name)


def _fields(class_name: str) -> Callable[[], str]:
    model = CLASSES[class_name]

    def text() -> str:
        rows = [
            (f"`{option.name}`", short_type(option.type), unit_of(option.name), shown_default(option.default),
             option.description, readers(class_name, option.name))
            for option in options_of(model)
            if option.name in own_fields(model)
        ]  # fmt: skip
        return table(("field", "type", "unit", "default", "meaning", "read by"), rows)

    return text


def _models() -> str:
    return table(
        ("model", "machine", "units", "parameters", "numbers without a source"),
        map(_model, shipped("hwmodels")),
    )


def _model(name: str) -> tuple[str, ...]:
    model = machine(name)
    units = ", ".join(
        f"{unit.count} {known}" if unit.count > 1 else known for known, unit in model.units.items()
    )
    described = load_parameters(find_file(name, "hwmodels"))
    parameters = described[1].parameters if described else {}
    lacking = len(tuple(model.unverified()))
    return f"`{name}`", model.description, units, code(parameters), f"{lacking} of {len(model.sources)}"


def _sources() -> str:
    return table(
        ("model", "sources"), ((f"`{name}`", "; ".join(_sources_of(name))) for name in shipped("hwmodels"))
    )


def _sources_of(name: str) -> Iterator[str]:
    """The publications behind a model, each once; references by parameter name are no sources."""
    found = (entry.source for entry in machine(name).sources if entry.is_verified)
    yield from dict.fromkeys(source for source in found if not source.startswith("parameter "))


def _rates() -> str:
    rows: list[tuple[str, ...]] = []
    for name in shipped("hwmodels"):
        for unit_name, unit in machine(name).exec_units.items():
            rates = ", ".join(f"`{key}` {rate:g}" for key, rate in unit.ops_per_cycle.items())
            rows.append((f"`{name}`", f"`{unit_name}`", rates))
    return table(("model", "unit", "operations in one cycle, by key"), rows)


REGIONS: dict[str, Callable[[], str]] = {
    **{name: _fields(name) for name in CLASSES},
    "ParameterFile": keys_of(ParameterFile),
    "Parameter": keys_of(Parameter),
    "Check": keys_of(Check),
    "Documented": keys_of(Documented),
    "models": _models,
    "sources": _sources,
    "rates": _rates,
}
"""The regions of the page."""
