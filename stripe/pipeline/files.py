"""Files of a configuration: pass lists that Jinja renders, and the machine that they are for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from stripe.config.document import parse_document, read_text
from stripe.config.files import find_file, is_path, load_parameters, resolve_parameters
from stripe.config.model import Scalar
from stripe.config.template import free_names, includes_files, render_json
from stripe.hw.schema import HardwareModel
from stripe.ir import ConfigError
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.hardware import find_hardware
from stripe.pipeline.passlist import PassList, read_pass_list

_TEMPLATED = re.compile(r"\{[{%#]|^\s*##", re.MULTILINE)
_HARDWARE = re.compile(
    r"""^[\s{,]*(?:"hardware"|'hardware'|hardware)\s*:\s*("[^"\n]*"|'[^'\n]*')""", re.MULTILINE
)


def read_files(
    lists: Iterable[str], machine: str | HardwareModel | None, defines: Mapping[str, Scalar]
) -> tuple[dict[str, tuple[PassEntry, ...]], HardwareModel | None]:
    """The entries of each pass list, and the machine, as `read_setup` takes them. Raises ConfigError."""
    paths = {text: find_file(text, "optconfigs") for text in lists}
    of_lists = frozenset[str]().union(*(names_of(path) for path in paths.values() if defines))
    if machine is None or isinstance(machine, str):
        machine = _hardware(machine, paths.values(), defines, of_lists)
    parameters = machine.parameters if machine else {}
    known = of_lists | parameters.keys()
    entries = {
        text: load_pass_list(path, {**parameters, **parameters_of(path, defines, known)}).entries
        for text, path in paths.items()
    }
    return entries, machine


def _hardware(
    given: str | None, lists: Iterable[Path], defines: Mapping[str, Scalar], elsewhere: frozenset[str]
) -> HardwareModel | None:
    """The model that `--hw` names, else the model that the pass lists name."""
    if given is not None:
        return find_hardware(given, defines, elsewhere)
    named = {
        located_hardware(model, path): path for path in lists if (model := hardware_of(path)) is not None
    }
    if not named:
        return None
    if len(named) > 1:
        listed = ", ".join(sorted(named))
        raise ConfigError(f"the pass lists are for different machines: {listed}", hint="choose one with --hw")
    ((name, path),) = named.items()
    if is_path(name) and not Path(name).exists():
        reason, hint = f"there is no file '{name}'", "a path starts at the folder of the pass list"
        raise ConfigError(reason, path=str(path), where="$.hardware", hint=hint)
    try:
        return find_hardware(name, defines, elsewhere)
    except ConfigError as error:
        if not error.place:
            error.path, error.where = str(path), "$.hardware"
        raise


def hardware_of(path: Path) -> str | None:
    """The hardware model that the list names in its key `hardware`, read before rendering, since rendering needs it."""
    text = read_text(path)
    match = _HARDWARE.search(text)
    if match or _TEMPLATED.search(text):
        return match[1][1:-1] if match else None
    data = parse_document(text, str(path)).data
    named = data.get("hardware") if isinstance(data, dict) else None
    return named if isinstance(named, str) else None


def located_hardware(named: str, path: Path) -> str:
    """The model that the key `hardware` of the list at `path` names: a path is relative to the list's own folder."""
    return str(path.parent / named) if is_path(named) else named


def parameters_of(path: Path, defines: Mapping[str, Scalar], elsewhere: Collection[str]) -> dict[str, Scalar]:
    """The values of the list's own parameters: `defines` over the defaults of its `NAME.params.json`, if it has one.

    Names of `elsewhere` may stand in `defines` without being the list's. Raises ConfigError.
    """
    return resolve_parameters(path, defines, defines.keys() if includes_files(path) else elsewhere)


def names_of(path: Path) -> frozenset[str]:
    """The names that `-D` may give to the list at `path`."""
    described = load_parameters(path)
    return free_names(path).union(described[1].parameters if described else ())


def load_pass_list(path: Path, parameters: Mapping[str, Scalar]) -> PassList:
    """Renders and checks the pass list at `path`; its own parameters that are not given have their defaults. Raises
    ConfigError with all that is wrong, by line and JSON path."""
    found = read_pass_list(render_json(path, {**parameters_of(path, {}, ()), **parameters}))
    if found.hardware != hardware_of(path):
        hint = 'write it as "hardware": "NAME" on a line of its own, without a template expression'
        raise ConfigError(
            "the key 'hardware' must be readable before the list is rendered", path=str(path), hint=hint
        )
    return found
