"""The configuration of a run: the hardware model, and the passes of `--config` and `--passes` in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from stripe.cli.arguments.compile import CompileSpec
from stripe.config.files import find_file, is_path
from stripe.config.model import Scalar
from stripe.config.parameters import parse_define
from stripe.hw.load import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import ConfigError
from stripe.ir.errors import did_you_mean
from stripe.pipeline.instrument import PassEntry
from stripe.pipeline.passlist import (
    hardware_of,
    load_pass_list,
    located_hardware,
    names_of,
    parameters_of,
    parse_passes,
)


def read_setup(spec: CompileSpec) -> tuple[tuple[PassEntry, ...], HardwareModel | None]:
    """The passes and the machine. Raises ConfigError."""
    defines = parse_defines(spec.define)
    paths = {step.value: find_file(step.value, "optconfigs") for step in spec.steps if step.kind == "config"}
    of_lists = frozenset[str]().union(*(names_of(path) for path in paths.values() if defines))
    hardware = _hardware(spec.hw, paths.values(), defines, of_lists)
    machine = hardware.parameters if hardware else {}
    known = of_lists | machine.keys()
    entries: list[PassEntry] = []
    for step in spec.steps:
        if step.kind == "passes":
            entries += parse_passes(step.value)
        else:
            path = paths[step.value]
            entries += load_pass_list(path, {**machine, **parameters_of(path, defines, known)}).entries
    for option, names in (
        ("--print-ir-before", spec.print_ir_before),
        ("--print-ir-after", spec.print_ir_after),
    ):
        _check_names(option, names, entries)
    return tuple(entries), hardware


def parse_defines(texts: tuple[str, ...]) -> dict[str, Scalar]:
    """`-D NAME=VALUE` as texts; their type is that of the parameter. Raises ConfigError."""
    return dict(parse_define(text) for text in texts)


def _hardware(
    given: str | None, lists: Iterable[Path], defines: Mapping[str, Scalar], elsewhere: frozenset[str]
) -> HardwareModel | None:
    """The model that `--hw` names, else the one that the pass lists are for."""
    if given is not None:
        return load_hardware(given, defines, elsewhere)
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
        return load_hardware(name, defines, elsewhere)
    except ConfigError as error:
        if not error.place:
            error.path, error.where = str(path), "$.hardware"
        raise


def _check_names(option: str, names: tuple[str, ...], entries: list[PassEntry]) -> None:
    """Each name at which the program is to be shown is that of an entry or of a pass."""
    known = sorted({name for entry in entries for name in (entry.name, entry.pass_.pass_name)})
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, f"there are {', '.join(known) or 'none'}")
            raise ConfigError(f"{option}: no pass '{name}' runs here", hint=hint)
