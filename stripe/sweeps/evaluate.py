"""The evaluation of a design point: render, compile, simulate; one row a workload."""

from __future__ import annotations

import hashlib
import json
import time
import traceback
import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from stripe.config.model import Scalar
from stripe.config.template import evaluate, names_in
from stripe.cost.report.report import simulation_json
from stripe.cost.report.schema import SimulationJson
from stripe.cost.time.simulate import simulate_program
from stripe.frontends.frontend import Source
from stripe.frontends.registry import find_front_end
from stripe.garbage import collected_seldom
from stripe.hw.schema import HardwareModel
from stripe.hw.trace import MachineFacts, Reads
from stripe.ir import Program, StripeError
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.passlist import entry_json
from stripe.pipeline.reproducer import Reproducer
from stripe.sweeps.cache import KeptResult, ResultCache
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
    packed_layers: bytes = b""
    """`layers` as compressed JSON, as they travel and are kept."""
    seconds: float = 0.0

    def breaks_other_than(self, constraints: Sequence[str]) -> bool:
        """Whether the row has no metrics because its point broke a constraint that is not among these."""
        begin = broken_constraint("")
        return (
            self.status is RowStatus.INFEASIBLE
            and self.reason.startswith(begin)
            and self.reason.removeprefix(begin) not in constraints
        )

    @property
    def layers(self) -> JsonValue:
        """Statements of the simulation: name, kind, units, start, end, energy, stalls by cause, binding resource."""
        return json.loads(zlib.decompress(self.packed_layers)) if self.packed_layers else None


def broken_constraint(constraint: str) -> str:
    """The reason for which a point is not feasible."""
    return f"breaks the constraint {constraint}"


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


@dataclass(frozen=True, slots=True)
class RenderedFacts:
    """Numbers of a rendered point that stand in its rows."""

    area_mm2: float
    model: str
    passes: str
    """Hashes of the rendered model and the rendered list."""


@dataclass(slots=True)
class Evaluator:
    """Evaluates points of a plan, one after the other; programs and results are kept between them."""

    plan: SweepPlan
    cache: ResultCache | None
    crashes: Path | None = None
    """Folder for reproducers of crashes."""
    _memos: dict[str, PassMemo] = field(default_factory=dict[str, PassMemo])

    @collected_seldom()
    def rows(self, point: DesignPoint) -> tuple[ResultRow, ...]:
        """The rows of a point, one a workload."""
        templates = self.plan.space.templates
        infeasible = partial(failed_rows, self.plan, point, RowStatus.INFEASIBLE)
        try:
            parameters = templates.resolved(point.choices, point.passes)
            if (broken := self._broken(point, parameters)) is not None:
                return infeasible(broken, parameters)
            content = templates.content(point.passes) if self.cache else None
            if content is not None and (known := self._known_rows(point, parameters, content)):
                return known
            model, listed = templates.rendered(point.choices, point.passes)
            if content is not None and templates.content(point.passes) != content:
                content = None  # a template was edited meanwhile
        except StripeError as error:
            return infeasible(str(error))
        if (broken := self._broken(point, {**parameters, "area_mm2": model.total_area_mm2})) is not None:
            return infeasible(broken, parameters)
        # names and descriptions change no result
        bare: dict[str, object] = {"name": "", "description": "", "parameters": {}, "sources": ()}
        machine = MachineFacts(model.model_copy(update=bare))
        return tuple(
            self._row(point, workload, listed.entries, machine, parameters, content)
            for workload in self.plan.workloads
        )

    def _broken(self, point: DesignPoint, parameters: dict[str, Scalar]) -> str | None:
        """The first broken constraint whose names are all known."""
        known = {**parameters, "passes": point.passes}
        for constraint in self.plan.constraints:
            if names_in(constraint) <= known.keys() and not evaluate(constraint, known):
                return broken_constraint(constraint)
        return None

    def _known_rows(
        self, point: DesignPoint, parameters: dict[str, Scalar], content: str
    ) -> tuple[ResultRow, ...]:
        """The rows of a point that was rendered before with the same parameters; none where a result is missing."""
        rows: list[ResultRow] = []
        for workload in self.plan.workloads:
            start = time.perf_counter()
            found = self.cache.find_point(_point_key(content, parameters, workload)) if self.cache else None
            if found is None:
                return ()
            facts = RenderedFacts(**cast("dict[str, Any]", found[0]))
            broken = self._broken(point, {**parameters, "area_mm2": facts.area_mm2})
            if broken is not None:
                return failed_rows(self.plan, point, RowStatus.INFEASIBLE, broken, parameters)
            row = _row_of(found[1], point, workload, parameters, facts)
            rows.append(replace(row, seconds=time.perf_counter() - start))
        return tuple(rows)

    def _row(
        self,
        point: DesignPoint,
        workload: Workload,
        entries: tuple[PassEntry, ...],
        machine: MachineFacts,
        parameters: dict[str, Scalar],
        content: str | None,
    ) -> ResultRow:
        start = time.perf_counter()
        spelled = json.dumps([entry_json(entry) for entry in entries], sort_keys=True)
        rendered = _short_hash(machine.model.model_dump_json(exclude_defaults=True))
        facts = RenderedFacts(machine.model.total_area_mm2, rendered, _short_hash(spelled))
        try:
            result = self._result(workload, entries, spelled, machine)
        except Exception as error:  # noqa: BLE001 - a fault of ours is a row, with its reproducer
            path = _reproducer(workload, entries, machine.model, error).write(self.crashes)
            reason = f"{type(error).__name__}: {error} (reproducer: {path})"
            crashed = _row_of(KeptResult({}, b""), point, workload, parameters, facts)
            row = replace(crashed, status=RowStatus.CRASHED, reason=reason)
        else:
            row = _row_of(result, point, workload, parameters, facts)
            if self.cache and content is not None:
                key = _point_key(content, parameters, workload)
                self.cache.add_point(key, cast("JsonValue", asdict(facts)), result)
        return replace(row, seconds=time.perf_counter() - start)

    def _result(
        self, workload: Workload, entries: tuple[PassEntry, ...], spelled: str, machine: MachineFacts
    ) -> KeptResult:
        """The metrics, or the reason why the program does not fit: from the cache, else computed."""
        key = hashlib.sha256(json.dumps([program_version(), workload.digest, spelled]).encode()).hexdigest()
        known = self.cache.find(key, machine) if self.cache else None
        if known is not None:
            return known
        reads: Reads = {}
        value: dict[str, JsonValue]
        try:
            if workload.name not in self._memos:
                self._memos[workload.name] = PassMemo(program_of(workload))
            program = self._memos[workload.name].run(entries, machine, reads)
            model = machine.traced(reads)
            report = simulation_json(simulate_program(program, model), workload.name, slices=False)
            value = {"metrics": cast("JsonValue", metrics_of(report, model))}
            layers = zlib.compress(json.dumps(_layers(report)).encode())
        except StripeError as error:
            value = {"refused": str(error)}
            layers = b""
        return self.cache.add(key, reads, value, layers) if self.cache else KeptResult(value, layers)


def _row_of(
    result: KeptResult,
    point: DesignPoint,
    workload: Workload,
    parameters: dict[str, Scalar],
    facts: RenderedFacts,
) -> ResultRow:
    value = cast("dict[str, Any]", result.value)
    provenance = {
        "model": facts.model,
        "passes": facts.passes,
        "workload": workload.digest[:16],
        "program": program_version(),
    }
    return ResultRow(
        point,
        workload.name,
        RowStatus.INFEASIBLE if "refused" in value else RowStatus.OK,
        reason=value.get("refused", ""),
        parameters=parameters,
        metrics={**value["metrics"], "area_mm2": facts.area_mm2} if "metrics" in value else {},
        provenance=provenance,
        packed_layers=result.layers,
    )


def _point_key(content: str, parameters: dict[str, Scalar], workload: Workload) -> str:
    """Hash of all that the rows of a rendered point depend on."""
    parts = [program_version(), content, workload.digest, sorted(parameters.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def program_of(workload: Workload) -> Program:
    """The lowered program of a workload. Raises StripeError."""
    source = Source(workload.data, str(workload.path), workload.language)
    return find_front_end(workload.language).load(source, workload.options).program


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
