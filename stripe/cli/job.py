"""A command under way: enough to write its crash reproducer, should it fall over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stripe.cli.option import Spec

if TYPE_CHECKING:
    from stripe.frontends.frontend import Source
    from stripe.hw.schema import HardwareModel
    from stripe.pipeline.effects import GivenParameters
    from stripe.pipeline.entry import PassEntry


@dataclass(slots=True)
class Job:
    """A command line, and the files read for it so far."""

    command: tuple[str, ...]
    spec: Spec
    source: Source | None = None
    entries: tuple[PassEntry, ...] = ()
    hardware: HardwareModel | None = None
    parameters: GivenParameters | None = None
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """The bytes of files that options name, by the option's field. A replay takes them in place of the files."""
