"""The configuration of a run: pass lists and passes in their order, and the machine that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from stripe.ir import ConfigError
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.passlist import parse_passes

if TYPE_CHECKING:
    from stripe.config.model import Scalar
    from stripe.hw.schema import HardwareModel

PassSource: TypeAlias = tuple[Literal["config", "passes"], str]
"""A pass list by name or path (`config`), or passes as they are spelled (`passes`)."""


def read_setup(
    sources: Sequence[PassSource | PassEntry],
    machine: str | HardwareModel | None,
    defines: Mapping[str, Scalar],
    source: str = "--passes",
) -> tuple[tuple[PassEntry, ...], HardwareModel | None]:
    """The passes of `sources` in their order, and the machine: `machine` (a model, or its name or path), else the model
    that the pass lists name. `defines` are values of parameters of the machine and of the lists; `source` is the place
    of errors in spelled passes. Raises ConfigError.
    """
    loaded = None if isinstance(machine, str) else machine
    if loaded is not None and (late := sorted(defines.keys() & loaded.parameters.keys())):
        reason = f"the hardware model is loaded already, and {', '.join(late)} cannot change it"
        raise ConfigError(reason, hint="set parameters where it is loaded")
    lists = [given[1] for given in sources if not isinstance(given, PassEntry) and given[0] == "config"]
    entries_of: dict[str, tuple[PassEntry, ...]] = {}
    if lists or isinstance(machine, str):
        from stripe.pipeline.files import read_files  # Jinja and the schema of machines, for files alone

        entries_of, machine = read_files(lists, machine, defines)
    entries: list[PassEntry] = []
    for given in sources:
        if isinstance(given, PassEntry):
            entries.append(given)
        else:
            kind, text = given
            entries += parse_passes(text, source) if kind == "passes" else entries_of[text]
    return tuple(entries), machine
