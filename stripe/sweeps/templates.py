"""The templates of a sweep: hardware model and pass lists, and the parameters that they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stripe.config.document import Document, read_text
from stripe.config.files import find_file, is_path, load_parameters, parameter_file, resolve_parameters
from stripe.config.model import Scalar
from stripe.config.parameters import Parameter
from stripe.config.template import free_names, includes_files, names_in, template_files
from stripe.hw.load import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import ConfigError
from stripe.pipeline.files import (
    hardware_of,
    load_pass_list,
    located_hardware,
    names_of,
    parameters_of,
)
from stripe.pipeline.passlist import PassList
from stripe.sweeps.schema import PassListSpec, SweepFile


@dataclass(frozen=True, slots=True)
class Template:
    """A template with the descriptions of its parameters."""

    name: str
    path: Path
    reference: str
    """Its name, or its absolute path, as the commands take it."""
    parameters: Mapping[str, Parameter]
    """The parameters that its params file describes."""

    @property
    def names(self) -> frozenset[str]:
        """The parameters that may be given."""
        return names_of(self.path) - {name for name, p in self.parameters.items() if p.expression is not None}

    def content(self) -> str | None:
        """The texts of the template and its params file; None where it includes other files."""
        if includes_files(self.path):
            return None
        described = parameter_file(self.path)
        return f"{read_text(self.path)}\0{read_text(described) if described.exists() else ''}"

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that it is rendered from: itself, its params file, and files that it may include."""
        described = parameter_file(self.path)
        return (*template_files(self.path), *([described] if described.exists() else []))

    @property
    def read(self) -> frozenset[str] | None:
        """The names that the template, and the parameters computed for it, depend on. None where it includes files,
        which may depend on any.
        """
        if includes_files(self.path):
            return None
        used = set(free_names(self.path))
        waiting = used & self.parameters.keys()
        while waiting:
            expression = self.parameters[waiting.pop()].expression
            inner = names_in(expression) - used if expression is not None else frozenset[str]()
            used |= inner
            waiting |= inner & self.parameters.keys()
        return frozenset(used)


@dataclass(frozen=True, slots=True)
class Templates:
    """The hardware model and the pass lists, by name in the order of the sweep file, with their fixed parameters."""

    machine: Template
    lists: dict[str, Template]
    fixed: dict[str, Mapping[str, Scalar]]
    _rendered_lists: dict[str, PassList] = field(
        default_factory=dict[str, PassList], compare=False, repr=False
    )
    """By name and the values that the list depends on, as JSON."""

    @property
    def all(self) -> tuple[Template, ...]:
        """The templates: hardware model, then pass lists."""
        return (self.machine, *self.lists.values())

    def parameter(self, name: str) -> Parameter | None:
        """The description of a parameter, where a params file has one."""
        return next((t.parameters[name] for t in self.all if name in t.parameters), None)

    @property
    def names(self) -> frozenset[str]:
        """All parameters that an axis may vary."""
        return frozenset[str]().union(*(template.names for template in self.all))

    def readers(self, name: str) -> tuple[str, ...]:
        """The templates that depend on a parameter."""
        return tuple(t.name for t in self.all if (read := t.read) is None or name in read)

    def resolved(self, defines: Mapping[str, Scalar], list_name: str) -> dict[str, Scalar]:
        """The parameters of machine and list, computed ones included. Raises ConfigError."""
        template = self.lists[list_name]
        given = {**self.fixed[list_name], **defines}
        known = self.names
        values = resolve_parameters(self.machine.path, given, known)
        return {**given, **values, **resolve_parameters(template.path, given, known | values.keys())}

    def content(self, list_name: str) -> str | None:
        """All texts that a design point with this list is rendered from; None where they are not known."""
        texts = [self.machine.content(), self.lists[list_name].content()]
        return None if None in texts else json.dumps(texts)

    @property
    def described_names(self) -> frozenset[str]:
        """All parameters with a description, computed ones included."""
        return frozenset(name for template in self.all for name in template.parameters)

    def rendered(self, defines: Mapping[str, Scalar], list_name: str) -> tuple[HardwareModel, PassList]:
        """The machine and the pass list of a design point. Raises ConfigError."""
        template = self.lists[list_name]
        given = {**self.fixed[list_name], **defines}
        names, read = self.names, template.read
        model = load_hardware(str(self.machine.path), given, names)
        values = {**given, **model.parameters}
        key = json.dumps(
            [list_name, sorted(item for item in values.items() if read is None or item[0] in read)]
        )
        if key not in self._rendered_lists:
            resolved = parameters_of(template.path, given, names | model.parameters.keys())
            self._rendered_lists[key] = load_pass_list(template.path, {**model.parameters, **resolved})
        return model, self._rendered_lists[key]


def find_templates(sweep: SweepFile, document: Document, folder: Path) -> Templates:
    """The templates that a sweep file names. Raises ConfigError at the place of the name."""
    lists: dict[str, Template] = {}
    fixed: dict[str, Mapping[str, Scalar]] = {}
    for number, entry in enumerate(sweep.passes):
        spec = PassListSpec(config=entry) if isinstance(entry, str) else entry
        place = ("passes", number)
        template = _template(spec.config, "optconfigs", spec.name, document, place, folder)
        if template.name in lists:
            raise document.error(
                f"two pass lists are called '{template.name}'", place, 'give them different names: "name": …'
            )
        lists[template.name] = template
        fixed[template.name] = spec.parameters
    machine = sweep.hardware or _machine_of(lists.values(), document)
    return Templates(_template(machine, "hwmodels", None, document, ("hardware",), folder), lists, fixed)


def _machine_of(lists: Iterable[Template], document: Document) -> str:
    paths = [template.path for template in lists]
    named = {located_hardware(found, path) for path in paths if (found := hardware_of(path)) is not None}
    if len(named) != 1:
        listed = ", ".join(sorted(named))
        reason = f"the pass lists are for {listed}" if named else "no pass list names a machine"
        raise document.error(f"the key 'hardware' is missing: {reason}", (), 'add "hardware": "NAME"')
    return next(iter(named))


def _template(
    name_or_path: str,
    kind: str,
    name: str | None,
    document: Document,
    place: tuple[str | int, ...],
    folder: Path,
) -> Template:
    try:
        path = find_file(str(folder / name_or_path) if is_path(name_or_path) else name_or_path, kind)
        if not path.is_file():
            raise ConfigError(
                f"there is no file '{path}'", hint="paths begin at the folder of the sweep file"
            )
        described = load_parameters(path)
    except ConfigError as error:
        if error.path is not None and error.line is not None:
            raise
        raise document.error(error.reason, place, error.hint) from None
    reference = str(path.absolute()) if is_path(name_or_path) else name_or_path
    parameters = described[1].parameters if described else {}
    return Template(name or path.name.split(".")[0], path, reference, parameters)
