"""`--run-reproducer`: a run as a crash reproducer recorded it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from stripe.cli.compile import Setup
from stripe.cli.options import InputOptions
from stripe.cli.sources import Source
from stripe.hw.schema import HardwareModel
from stripe.hw.template import parse_document, read_json
from stripe.hw.validate import validate
from stripe.pipeline.passlist import read_pass_list
from stripe.pipeline.reproducer import Reproducer


@dataclass(frozen=True, slots=True)
class Replay:
    """All that a recorded run needs."""

    source: Source
    given: InputOptions
    setup: Setup
    verify: str
    verify_roundtrip: bool
    emit: str


def load_reproducer(path: str) -> Replay:
    """Reads a crash reproducer. Raises ConfigError when it is none."""
    document = read_json(Path(path))
    found = validate(Reproducer, document)
    passes = read_pass_list(parse_document(json.dumps({"passes": found.passes}), f"{path}: passes"))
    model = None if found.hardware is None else validate(HardwareModel, document, ("hardware",))
    source = Source(found.input, f"{path}: input", found.input_format)
    given = InputOptions(source.name, found.input_format, found.shapes)
    return Replay(
        source, given, Setup(passes.entries, model), found.verify, found.verify_roundtrip, found.emit
    )
