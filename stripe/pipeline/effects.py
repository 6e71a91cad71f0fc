"""Parameters that change nothing: whether a run would differ with their defaults.

A run reads fields of its machine, which a recording model notes (`stripe.hw.trace`). Where the machine with the default
of a parameter has the same values in all of them, and the pass list the same entries, the run is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stripe.config.model import Scalar
from stripe.hw.schema import HardwareModel
from stripe.hw.trace import MachineFacts, Reads
from stripe.ir import ConfigError
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.setup import PassSource, read_setup

_NOTES = frozenset({"name", "description", "parameters", "sources"})
"""Fields of a model that describe it."""


@dataclass(frozen=True, slots=True)
class GivenParameters:
    """The parameters given with `-D`, and the entries and the machine that they make."""

    sources: Sequence[PassSource]
    hardware: str | None
    defines: Mapping[str, Scalar]
    entries: tuple[PassEntry, ...]
    model: HardwareModel
    reads: Reads = field(default_factory=dict[str, str])

    def traced(self) -> HardwareModel:
        """The machine as a model that notes its reads."""
        return MachineFacts(self.model).traced(self.reads)

    def without_effect(self, result: Callable[[HardwareModel], object] | None = None) -> Iterator[str]:
        """A message for each parameter that changes neither an entry nor a field that was read. `result` is computed
        from a machine after the passes, and has to be equal too."""
        facts = {name: value for name, value in self.reads.items() if name not in _NOTES}
        found = result(self.model) if result is not None else None
        for name in self.defines:
            rest = {other: value for other, value in self.defines.items() if other != name}
            try:
                entries, machine = read_setup(self.sources, self.hardware, rest)
            except ConfigError:
                continue  # it has no default
            if machine is None or entries != self.entries or not MachineFacts(machine).agree(facts):
                continue
            given, default = (model.parameters.get(name) for model in (self.model, machine))
            if given != default and (result is None or result(machine) == found):
                area = " but the area" if machine.total_area_mm2 != self.model.total_area_mm2 else ""
                yield f"-D {name}={given} changes nothing here{area}: the result is that with {default}, its default"
