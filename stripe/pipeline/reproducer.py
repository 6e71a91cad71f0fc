"""Crash reproducers: input, pass list and rendered model in one JSON file, which `--run-reproducer` replays."""

from __future__ import annotations

import hashlib
import json
import tempfile
import traceback
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import override

from stripe.config.template import Document, read_json
from stripe.config.validate import validate
from stripe.ir import Program, print_program
from stripe.pipeline.instrument import Instrument, InternalFault, PassEntry


class Reproducer(BaseModel):
    """All that a run depends on, and what went wrong in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stripe_reproducer: int = Field(default=1, ge=1, le=1, description="version of this format")
    error: str = Field(description="what went wrong")
    traceback: str = Field(default="", description="where in our code")
    command: tuple[str, ...] = Field(default=(), description="the command line that failed")
    input_format: str = Field(description="language of `input`: tile or stripe")
    input: str = Field(description="the text that was read")
    shapes: tuple[str, ...] = Field(default=(), description="values of --shape")
    passes: tuple[dict[str, JsonValue], ...] = Field(default=(), description="entries as in a pass list")
    hardware: JsonValue = Field(default=None, description="the rendered hardware model")
    verify: str = Field(default="structural", description="value of --verify")
    verify_roundtrip: bool = Field(default=False, description="whether --verify-roundtrip was given")
    emit: str = Field(default="stripe", description="value of --emit")
    tool: str = Field(default="stripe-opt", description="the command: stripe-opt, stripe-run or stripe-sim")
    options: dict[str, JsonValue] = Field(
        default_factory=dict[str, JsonValue], description="options that only `tool` has, by name"
    )

    def write(self, folder: Path | None) -> Path | None:
        """Writes the file to `folder`, or to the folder for temporary files; None when neither can be written.

        One fault has one name, however it was come by, so that a replay does not leave another file.
        """
        text = json.dumps(self.model_dump(mode="json"), indent=2) + "\n"
        fault = self.model_dump_json(exclude={"command", "traceback"})
        name = f"stripe-crash-{hashlib.sha256(fault.encode()).hexdigest()[:12]}.reproducer.json"
        for place in (folder, Path(tempfile.gettempdir())):
            try:
                if place is not None:
                    place.mkdir(parents=True, exist_ok=True)
                    (place / name).write_text(text, "utf-8")
                    return place / name
            except OSError:
                continue
        return None


def read_reproducer(path: Path) -> tuple[Reproducer, Document]:
    """What a reproducer's file holds, and its text. Raises ConfigError when the file is no reproducer."""
    document = read_json(path)
    if not isinstance(document.data, dict) or "stripe_reproducer" not in document.data:
        raise document.error(
            "this is no crash reproducer", (), "it is the file that the report of a fault names"
        )
    return validate(Reproducer, document), document


class CrashReproducer(Instrument):
    """Writes a reproducer when a pass is at fault, with the program that the first pass was given as its input."""

    def __init__(self, template: Reproducer, folder: Path | None) -> None:
        self._template = template
        self._folder = folder
        self._input = ""

    @override
    def begin(self, program: Program) -> None:
        self._input = print_program(program)

    @override
    def failed(self, entry: PassEntry, program: Program, error: Exception) -> None:
        if not isinstance(error, InternalFault):
            return
        reproducer = self._template.model_copy(
            update={
                "error": "\n".join((error.reason, *error.details)),
                "traceback": "".join(traceback.format_exception(error.__cause__)) if error.__cause__ else "",
                "input_format": "stripe",
                "input": self._input,
                "shapes": (),
            }
        )
        error.reproducer = reproducer.write(self._folder)
