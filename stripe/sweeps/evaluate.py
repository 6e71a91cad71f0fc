"""The evaluation of a design point: render, compile, simulate; one row a workload."""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from base64 import b64encode
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from stripe.config.model import Scalar
from stripe.config.template import evaluate, names_in
from stripe.cost.report.report import simulation_json
from stripe.cost.report.schema import SimulationJson
from stripe.cost.time.simulate import simulate_program
from stripe.frontends.frontend import Source
from stripe.frontends.registry import find_front_end
from stripe.hw.schema import HardwareModel
from stripe.hw.trace import MachineFacts, Reads
from stripe.ir import Program, StripeError
from stripe.pipeline.instrument import PassEntry
from stripe.pipeline.passlist import entry_json
from stripe.pipeline.reproducer import Reproducer
from stripe.sweeps.cache import ResultCache
from stripe.sweeps.memo import PassMemo
from stripe.sweeps.metrics import Metrics, metrics_of
from stripe.sweeps.plan import SweepPlan, Workload, program_version
from stripe.sweeps.space import DesignPoint


class RowStatus(StrEnum):
    """The outcome of a point on a workload."""

    OK = "ok"
    INFEASIBLE = "infeasible"
    """A constraint is broken, or the program does not fit the machine."""
    TIMEOUT = "timeout"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The result of one point on one workload."""

    point: DesignPoint
    workload: str
    status: RowStatus
    reason: str = ""
    parameters: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    """All parameters of machine and list, defaults and computed ones included."""
    metrics: Metrics = field(default_factory=dict[str, float])
    provenance: dict[str, str] = field(default_factory=dict[str, str])
    """Hashes of the rendered model, the rendered list and the workload, and the program's version."""
    layers: JsonValue = None
    """The statements of the simulation: name, kind, units, start, end, energy, stalls by cause, binding resource."""
    seconds: float = 0.0


def failed_rows(
    plan: SweepPlan,
    point: DesignPoint,
    status: RowStatus,
    reason: str,
    parameters: dict[str, Scalar] | None = None,
) -> tuple[ResultRow, ...]:
    """The rows of a point that ended without results."""
    known = parameters or point.choices
    return tuple(ResultRow(point, workload.name, status, reason, known) for workload in plan.workloads)


@dataclass(slots=True)
class Evaluator:
    """Evaluates points of a plan, one after the other, keeping what does not change between them."""

    plan: SweepPlan
    cache: ResultCache | None
    crashes: Path | None = None
    """Folder for reproducers of crashes."""
    _memos: dict[str, PassMemo] = field(default_factory=dict[str, PassMemo])

    def rows(self, point: DesignPoint) -> tuple[ResultRow, ...]:
        """The rows of a point, one a workload."""
        templates = self.plan.space.templates
        try:
            parameters = templates.resolved(point.choices, point.passes)
            model, listed = templates.rendered(point.choices, point.passes)
        except StripeError as error:
            return failed_rows(self.plan, point, RowStatus.INFEASIBLE, str(error))
        broken = self._broken({**parameters, "passes": point.passes, "area_mm2": model.total_area_mm2})
        if broken is not None:
            return failed_rows(self.plan, point, RowStatus.INFEASIBLE, broken, parameters)
        facts = MachineFacts(_anonymous(model))
        return tuple(
            self._row(point, workload, listed.entries, facts, parameters) for workload in self.plan.workloads
        )

    def _broken(self, known: dict[str, Scalar]) -> str | None:
        """The first constraint that is broken, among those over known names."""
        for constraint in self.plan.constraints:
            if names_in(constraint) <= known.keys() and not evaluate(constraint, known):
                return f"breaks the constraint {constraint}"
        return None

    def _row(
        self,
        point: DesignPoint,
        workload: Workload,
        entries: tuple[PassEntry, ...],
        facts: MachineFacts,
        parameters: dict[str, Scalar],
    ) -> ResultRow:
        start = time.perf_counter()
        spelled = json.dumps([entry_json(entry) for entry in entries], sort_keys=True)
        provenance = {
            "model": _short_hash(facts.model.model_dump_json(exclude_defaults=True)),
            "passes": _short_hash(spelled),
            "workload": workload.digest[:16],
            "program": program_version(),
        }
        row = ResultRow(point, workload.name, RowStatus.OK, parameters=parameters, provenance=provenance)
        try:
            metrics, layers = self._result(workload, entries, spelled, facts)
        except StripeError as error:
            row = replace(row, status=RowStatus.INFEASIBLE, reason=str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours is a row, with its reproducer
            path = _reproducer(workload, entries, facts.model, error).write(self.crashes)
            reason = f"{type(error).__name__}: {error} (reproducer: {path})"
            row = replace(row, status=RowStatus.CRASHED, reason=reason)
        else:
            row = replace(row, metrics={**metrics, "area_mm2": facts.model.total_area_mm2}, layers=layers)
        return replace(row, seconds=time.perf_counter() - start)

    def _result(
        self, workload: Workload, entries: tuple[PassEntry, ...], spelled: str, facts: MachineFacts
    ) -> tuple[Metrics, JsonValue]:
        """Metrics and layers: from the cache, else computed. Raises StripeError."""
        key = hashlib.sha256(json.dumps([program_version(), workload.digest, spelled]).encode()).hexdigest()
        known = self.cache.find(key, facts) if self.cache else None
        if isinstance(known, dict):
            if "refused" in known:
                raise StripeError(str(known["refused"]))
            return cast("Metrics", known["metrics"]), known["layers"]
        reads: Reads = {}
        try:
            program = self._memo(workload).run(entries, facts, reads)
            machine = facts.traced(reads)
            report = simulation_json(simulate_program(program, machine), workload.name, slices=False)
            metrics = metrics_of(report, machine)
        except StripeError as error:
            self._keep(key, reads, {"refused": str(error)})
            raise
        layers = _layers(report)
        self._keep(key, reads, {"metrics": cast("JsonValue", metrics), "layers": layers})
        return metrics, layers

    def _keep(self, key: str, reads: Reads, value: JsonValue) -> None:
        if self.cache:
            self.cache.add(key, reads, value)

    def _memo(self, workload: Workload) -> PassMemo:
        if workload.name not in self._memos:
            self._memos[workload.name] = PassMemo(program_of(workload))
        return self._memos[workload.name]


def program_of(workload: Workload) -> Program:
    """The lowered program of a workload. Raises StripeError."""
    source = Source(workload.data, str(workload.path), workload.language)
    return find_front_end(workload.language).load(source, workload.options).program


def _anonymous(model: HardwareModel) -> HardwareModel:
    """The machine without what names it or documents it: none of it changes results."""
    return model.model_copy(update={"name": "", "description": "", "parameters": {}, "sources": ()})


def _layers(report: SimulationJson) -> JsonValue:
    return [
        {
            "name": s.name, "kind": s.kind, "units": list(s.units), "start": s.start_cycle, "end": s.end_cycle,
            "energy_pJ": s.energy_pJ, "stalls": dict(s.stalls), "bound": s.bound, "utilisation": s.utilisation,
        }
        for s in report.statements
    ]  # fmt: skip


def _reproducer(
    workload: Workload, entries: tuple[PassEntry, ...], model: HardwareModel, raised: Exception
) -> Reproducer:
    """The fault as a run of `stripe-sim`."""
    binary = find_front_end(workload.language).binary
    return Reproducer(
        error=f"{type(raised).__name__}: {raised}",
        traceback="".join(traceback.format_exception(raised)),
        command=("stripe-sweep",),
        tool="stripe-sim",
        options=tuple(f"--shape={shape}" for shape in workload.options.shapes)
        + tuple(f"--dim={name}={size}" for name, size in workload.options.dims),
        input_format=workload.language,
        input=b64encode(workload.data).decode("ascii") if binary else workload.data.decode(),
        passes=tuple(entry_json(entry) for entry in entries),
        hardware=model.model_dump(mode="json", exclude_defaults=True),
    )


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
