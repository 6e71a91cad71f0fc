"""Metrics of a design point: numbers of its simulations by name, over the mix of workloads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stripe.config.template import Parameter
from stripe.cost.report.schema import SimulationJson
from stripe.cost.report.tables import energy
from stripe.hw.schema import HardwareModel
from stripe.ir.errors import did_you_mean

Metrics = dict[str, float]

Mixing = Literal["sum", "max", "same", "mean"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of each simulation, with its unit, and the rule that mixes the numbers of several workloads."""

    name: str
    unit: str
    mixing: Mixing
    description: str
    of: Callable[[SimulationJson, HardwareModel], float]


def _mean_utilisation(report: SimulationJson, model: HardwareModel) -> float:
    computing = [unit.utilisation for unit in report.units if unit.unit.split("[")[0] in model.exec_units]
    return sum(computing) / len(computing) if computing else 0.0


def _peak_main(report: SimulationJson, model: HardwareModel) -> float:
    main = model.main_memory
    return float(sum(m.peak_bytes for m in report.memories if m.memory.split("[")[0] == main))


METRICS = {
    metric.name: metric
    for metric in (
        Metric("latency_us", "µs", "sum", "time of one inference", lambda r, _: r.latency_us),
        Metric("latency_cycles", "cycles", "sum", "cycles of one inference", lambda r, _: r.latency_cycles),
        Metric("energy_pJ", "pJ", "sum", "energy of one inference", lambda r, _: r.energy_pJ),
        Metric("operations", "", "sum", "operations of one inference", lambda r, _: float(r.operations)),
        Metric("macs", "", "sum", "multiply-accumulates of one inference", lambda r, _: float(r.macs)),
        Metric("peak_bytes", "B", "max", "most bytes alive at once in the main memory", _peak_main),
        Metric(
            "utilisation",
            "",
            "mean",
            "mean of `useful` of `stripe-sim` over all execution units, idle ones too",
            _mean_utilisation,
        ),
        Metric("area_mm2", "mm²", "same", "area of the machine", lambda _, m: m.total_area_mm2),
    )
}
"""The metrics that every report has. `edp` follows from two of them."""

EDP = "edp"
"""Energy-delay product: the energy of the mix in joule by its latency in seconds."""

UNITS = {name: metric.unit for name, metric in METRICS.items()} | {EDP: "J s"}

_SPELLED = {"µs": "us", "mm²": "mm2", "B": "bytes"}
"""Units as they stand at the end of names."""


def unit_of(metric: str) -> str:
    """The unit of a metric, or of the numbers of a path; empty where it has none."""
    last = metric.rpartition(".")[2]
    by_path = {"bytes": "B", "cycles": "cycles"}.get(last.rpartition("_")[2], "")
    return "pJ" if metric.startswith("energy.") else UNITS.get(metric, by_path)


def titled(metric: str) -> str:
    """A metric with its unit, where its name does not end with it."""
    unit = unit_of(metric)
    return f"{metric}, {unit}" if unit and not metric.endswith(_SPELLED.get(unit, unit)) else metric


def metric_text(metric: str, value: float) -> str:
    """A value of a metric with its unit, energy as `stripe-sim` writes it."""
    unit = unit_of(metric)
    return energy(value) if unit == "pJ" else f"{value:.6g} {unit}".rstrip()


def metrics_of(report: SimulationJson, model: HardwareModel) -> Metrics:
    """All metrics of one simulation, and by path: energy by component, units, buses and memories."""
    found = {name: metric.of(report, model) for name, metric in METRICS.items()}
    return found | dict(_by_path(report))


def _by_path(report: SimulationJson) -> Iterator[tuple[str, float]]:
    for component, picojoules in report.energy.items():
        yield f"energy.{component}", picojoules
    for unit in report.units:
        yield from ((f"units.{unit.unit}.{last}", getattr(unit, last)) for last in PATHS["units"])
    for bus in report.buses:
        yield from ((f"buses.{bus.name}.{last}", getattr(bus, last)) for last in PATHS["buses"])
    peaks: dict[str, float] = {}
    for memory in report.memories:
        name = memory.memory.split("[")[0]
        peaks[name] = max(peaks.get(name, 0.0), float(memory.peak_bytes))
        yield f"memories.{memory.memory}.read_bytes", memory.read_bytes
        yield f"memories.{memory.memory}.written_bytes", memory.written_bytes
    for name, peak in peaks.items():
        yield f"memories.{name}.peak_bytes", peak


PATHS = {
    "energy": (),
    "units": ("utilisation", "busy_cycles", "useful_cycles"),
    "buses": ("bytes", "utilisation", "busy_cycles"),
    "memories": ("peak_bytes", "read_bytes", "written_bytes"),
}
"""The first steps of paths, with the last ones; energy has components."""

COLUMNS = ("workload", "status", "reason", "passes", "seconds")
"""The columns of a table of results beside parameters, metrics and hashes."""


def path_fault(path: str) -> str | None:
    """A hint where no simulation has a number at a path."""
    first, _, rest = path.partition(".")
    if first not in PATHS:
        return did_you_mean(first, PATHS, f"paths begin with {', '.join(PATHS)}")
    last = rest.rpartition(".")[2]
    known = PATHS[first]
    return f"paths of {first} end with {', '.join(known)}" if known and last not in known else None


def nested(metrics: Mapping[str, float]) -> dict[str, Parameter]:
    """The metrics as expressions name them: `memories.SRAM.peak_bytes`, `units.CONV[0].utilisation`."""
    found: dict[Any, Any] = {}
    for name, value in metrics.items():
        steps = [int(number) if number else text for text, number in _STEP.findall(name)]
        inside = found
        for step in steps[:-1]:
            inside = inside.setdefault(step, {})
        inside[steps[-1]] = value
    return found


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def mixed(rows: Sequence[tuple[float, Mapping[str, float]]]) -> Metrics:
    """The metrics of a mix, from the weight and the metrics of each workload, where a missing metric counts 0."""
    names = dict.fromkeys(name for _, metrics in rows for name in metrics)
    total = sum(weight for weight, _ in rows)
    found: Metrics = {}
    for name in names:
        values = [(weight, metrics.get(name, 0.0)) for weight, metrics in rows]
        match METRICS[name].mixing if name in METRICS else _mixing_by_path(name):
            case "sum":
                found[name] = sum(weight * value for weight, value in values)
            case "mean":
                found[name] = sum(weight * value for weight, value in values) / total
            case "max" | "same":
                found[name] = max(value for _, value in values)
    found[EDP] = found["energy_pJ"] * 1e-12 * found["latency_us"] * 1e-6
    return found


def _mixing_by_path(name: str) -> Mixing:
    if name.endswith("utilisation"):
        return "mean"
    return "max" if name.endswith("peak_bytes") else "sum"
