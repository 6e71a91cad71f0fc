"""The configuration of a run: pass lists and passes in their order, and the machine that they are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from stripe.config.files import find_file, is_path
from stripe.config.model import Scalar
from stripe.ir import ConfigError
from stripe.pipeline.instrument import PassEntry
from stripe.pipeline.passlist import (
    hardware_of,
    load_pass_list,
    located_hardware,
    names_of,
    parameters_of,
    parse_passes,
)

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel

Step: TypeAlias = tuple[Literal["config", "passes"], str]
"""A pass list by name or path (`config`), or passes as they are spelled (`passes`)."""


def read_setup(
    steps: Sequence[Step | PassEntry],
    machine: str | HardwareModel | None,
    defines: Mapping[str, Scalar],
    source: str = "--passes",
) -> tuple[tuple[PassEntry, ...], HardwareModel | None]:
    """The passes of `steps`, and the machine: `machine` (a model, or its name or path), else the model that the pass
    lists name. `defines` are values of parameters of the machine and of the lists; `source` is the place of errors in
    spelled passes. Raises ConfigError.
    """
    lists = [step[1] for step in steps if not isinstance(step, PassEntry) and step[0] == "config"]
    paths = {text: find_file(text, "optconfigs") for text in lists}
    of_lists = frozenset[str]().union(*(names_of(path) for path in paths.values() if defines))
    if machine is None or isinstance(machine, str):
        hardware = _hardware(machine, paths.values(), defines, of_lists) if machine or paths else None
    else:
        hardware = machine
        if late := sorted(defines.keys() & machine.parameters.keys()):
            raise ConfigError(
                f"the hardware model is loaded already, and {', '.join(late)} cannot change it",
                hint="set parameters where it is loaded",
            )
    parameters = hardware.parameters if hardware else {}
    known = of_lists | parameters.keys()
    entries: list[PassEntry] = []
    for step in steps:
        if isinstance(step, PassEntry):
            entries.append(step)
        elif step[0] == "passes":
            entries += parse_passes(step[1], source)
        else:
            path = paths[step[1]]
            entries += load_pass_list(path, {**parameters, **parameters_of(path, defines, known)}).entries
    return tuple(entries), hardware


def _hardware(
    given: str | None, lists: Iterable[Path], defines: Mapping[str, Scalar], elsewhere: frozenset[str]
) -> HardwareModel | None:
    """The model that `--hw` names, else the one that the pass lists are for."""
    from stripe.pipeline.native import load_machine  # takes its time, and many runs have no machine

    if given is not None:
        return load_machine(given, defines, elsewhere)
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
        return load_machine(name, defines, elsewhere)
    except ConfigError as error:
        if not error.place:
            error.path, error.where = str(path), "$.hardware"
        raise
