"""The plan of a sweep: the checked sweep file with its space, workloads and aims, from which points are evaluated."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from stripe.config.document import Document
from stripe.config.files import resolve_parameters
from stripe.config.model import Scalar
from stripe.config.registry import registered
from stripe.config.template import evaluate, names_in, render_json
from stripe.config.validate import validate
from stripe.frontends.files import read_file
from stripe.frontends.frontend import ReadOptions, Source
from stripe.frontends.registry import ENTRY_POINT_GROUP, by_suffix, front_ends
from stripe.ir import ConfigError, StripeError
from stripe.ir.errors import combine, did_you_mean
from stripe.ir.package_data import data_dir
from stripe.passes import registry as pass_registry
from stripe.sweeps.metrics import EDP, METRICS, PATHS, path_fault
from stripe.sweeps.schema import ObjectiveSpec, StrategySpec, SweepFile, WorkloadSpec
from stripe.sweeps.space import MAX_SEARCHED, PASSES, DesignSpace, design_space
from stripe.sweeps.templates import find_templates


@dataclass(frozen=True, slots=True)
class Workload:
    """A program to evaluate: the bytes of its file, the language, and its weight in the mix."""

    name: str
    path: Path
    data: bytes
    language: str
    options: ReadOptions
    weight: float
    others: str = ""
    """Hash of the other files that its program is read from."""

    @property
    def digest(self) -> str:
        """Hash of all that its program depends on."""
        found = hashlib.sha256(self.data)
        found.update(self.others.encode())
        found.update(repr((self.language, self.options, self.name)).encode())
        return found.hexdigest()


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A checked sweep."""

    title: str
    file: Path
    defines: Mapping[str, Scalar]
    text: str
    """The rendered sweep file."""
    space: DesignSpace
    workloads: tuple[Workload, ...]
    constraints: tuple[str, ...]
    objectives: tuple[ObjectiveSpec, ...]
    strategy: StrategySpec
    points: int | None

    @property
    def identity(self) -> str:
        """Hash of all that a row depends on beside its point: templates, workloads and the program's version."""
        templates = self.space.templates
        found = hashlib.sha256(program_version().encode())
        for template in templates.all:
            for file in template.files:
                found.update(f"{template.name}\0{file.name}\0{file.read_bytes()!r}\0".encode())
            found.update(repr(sorted(templates.fixed.get(template.name, {}).items())).encode())
        for workload in self.workloads:
            found.update(f"{workload.name}\0{workload.digest}\0".encode())
        return found.hexdigest()


def read_plan(path: Path, defines: Mapping[str, Scalar]) -> SweepPlan:
    """The plan in a sweep file, rendered with `defines`. Raises ConfigError with all that is wrong with it."""
    return plan_of(render_json(path, resolve_parameters(path, defines)), path, defines)


def plan_of(document: Document, path: Path, defines: Mapping[str, Scalar]) -> SweepPlan:
    """The plan in a document, as if it were the file `path`."""
    sweep = validate(SweepFile, document)
    folder = path.parent
    space = design_space(sweep, find_templates(sweep, document, folder), document)
    objectives = tuple(ObjectiveSpec(metric=o) if isinstance(o, str) else o for o in sweep.objectives)
    _require_metrics(sweep, space, objectives, document)
    _require_feasible(sweep, space, document)
    return SweepPlan(
        title=sweep.name or path.name.split(".")[0],
        file=path.absolute(),
        defines=dict(defines),
        text=document.text,
        space=space,
        workloads=_workloads(sweep, document, folder),
        constraints=sweep.constraints,
        objectives=objectives,
        strategy=sweep.strategy,
        points=sweep.points,
    )


def _workloads(sweep: SweepFile, document: Document, folder: Path) -> tuple[Workload, ...]:
    found: dict[str, Workload] = {}
    for number, entry in enumerate(sweep.workloads):
        spec = WorkloadSpec(path=entry) if isinstance(entry, str) else entry
        path, place = folder / spec.path, ("workloads", number)
        front_end = by_suffix(path.suffix)
        if front_end is None:
            known = ", ".join(suffix for f in front_ends() for suffix in f.suffixes)
            raise document.error(f"'{spec.path}': unknown language", place, f"the suffixes are {known}")
        name = spec.name or path.name.split(".")[0]
        if name in found:
            raise document.error(f"two workloads are called '{name}'", place, 'give "name": …')
        try:
            data = read_file(str(path))
            beside = front_end.files_beside(Source(data, str(path), front_end.name))
        except StripeError as error:
            raise document.error(f"'{path}': {error.reason}", place, error.hint) from None
        options = ReadOptions(
            shapes=tuple(f"{tensor}={shape}" for tensor, shape in spec.shapes.items()),
            dims=tuple(spec.dims.items()),
            # Of weights alone: constants on which sizes depend are read.
            random_weights="random_weights" in front_end.takes,
        )
        others = _hash_of(beside) if beside else ""
        found[name] = Workload(name, path, data, front_end.name, options, spec.weight, others)
    return tuple(found.values())


def _hash_of(files: Iterable[Path]) -> str:
    """Hash of the names and the contents of files."""
    found = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            found.update(f"{file.name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\0".encode())
    return found.hexdigest()


def _require_metrics(
    sweep: SweepFile, space: DesignSpace, objectives: tuple[ObjectiveSpec, ...], document: Document
) -> None:
    """ConfigError for objectives and constraints over unknown names. Paths are known after the first point."""
    metrics = (*METRICS, EDP)
    errors: list[ConfigError] = []
    for number, objective in enumerate(objectives):
        fault = path_fault(objective.metric)
        if objective.metric not in metrics and fault is not None:
            near = did_you_mean(objective.metric, metrics, f"metrics: {', '.join(metrics)}")
            reason, hint = (
                f"there is no metric '{objective.metric}'",
                fault if "." in objective.metric else near,
            )
            errors.append(document.error(reason, ("objectives", number), hint))
    templates = space.templates
    known = sorted({*metrics, *PATHS, *templates.names, *templates.described_names, PASSES})
    for number, constraint in enumerate(sweep.constraints):
        try:
            unknown = sorted(names_in(constraint) - set(known))
        except ConfigError as error:
            errors.append(document.error(error.reason, ("constraints", number), error.hint))
            continue
        for name in unknown:
            hint = did_you_mean(name, known, f"metrics: {', '.join(metrics)}")
            reason = f"'{constraint}': there is no metric and no parameter '{name}'"
            errors.append(document.error(reason, ("constraints", number), hint))
    if errors:
        raise combine(errors)


MOST_RENDERED = 100
"""Points whose machines are rendered to find one whose area the constraints allow."""


def _require_feasible(sweep: SweepFile, space: DesignSpace, document: Document) -> None:
    """ConfigError where the constraints over parameters and area contradict each other: they leave no point."""
    parameters = space.templates.names | space.templates.described_names | {PASSES}
    plain = [c for c in sweep.constraints if names_in(c) <= parameters]
    with_area = [c for c in sweep.constraints if names_in(c) <= parameters | {"area_mm2"}]
    if not with_area:
        return
    rendered = 0
    for point in islice(space.grid(), MAX_SEARCHED):
        known = {**space.templates.resolved(point.choices, point.passes), PASSES: point.passes}
        if not all(evaluate(constraint, known) for constraint in plain):
            continue
        if plain == with_area or rendered == MOST_RENDERED:
            return
        rendered += 1
        known["area_mm2"] = space.templates.rendered(point.choices, point.passes)[0].total_area_mm2
        if all(evaluate(constraint, known) for constraint in with_area):
            return
    if space.size <= MAX_SEARCHED:
        reason = f"no point of {space.size} can be feasible: {' and '.join(with_area)}"
        raise document.error(reason, ("constraints",), "loosen a constraint or add values")


_LIBRARIES = ("islpy", "networkx", "numpy", "onnx")
"""Libraries on which results depend."""


@cache
def program_version() -> str:
    """The version, with a hash of the program's own code and that of other packages that register passes or front ends,
    of its library of operators, and of the versions of the libraries that it computes with: results of another state of
    them are not taken again."""
    found = hashlib.sha256()
    own = [(Path(__file__).parent.parent, "*.py"), (data_dir("tilelib"), "*"), (data_dir("grammar"), "*")]
    for folder, pattern in (*own, *_registering()):
        for file in sorted(each for each in folder.rglob(pattern) if each.is_file()):
            found.update(file.relative_to(folder).as_posix().encode())
            found.update(file.read_bytes())
    found.update(" ".join(map(_installed, _LIBRARIES)).encode())
    return f"{version('stripe-opt')}+{found.hexdigest()[:12]}"


def _registering() -> Iterator[tuple[Path, str]]:
    """The folders of other packages that register passes or front ends, with the pattern of their files."""
    groups = (pass_registry.PASSES.group, ENTRY_POINT_GROUP)
    places = (place for group in groups for place in registered(group).values())
    for module in sorted({re.split(r"[.:]", place)[0] for place in places}):
        spec = find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            yield from ((Path(folder), "*.py") for folder in spec.submodule_search_locations)
        elif spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent, Path(spec.origin).name


def _installed(library: str) -> str:
    """The version of a library; some are optional."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
