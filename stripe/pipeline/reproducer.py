"""Crash reproducers: input, pass list, rendered model and options in a JSON file, which `--run-reproducer` replays."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from stripe.config.document import Document, read_json
from stripe.config.validate import validate
from stripe.output import replace_file


class Reproducer(BaseModel):
    """The input and the configuration of a run, and the error that ended it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stripe_reproducer: int = Field(default=2, ge=2, le=2, description="version of this format")
    error: str = Field(description="the error")
    traceback: str = Field(default="", description="its place in our code")
    command: tuple[str, ...] = Field(default=(), description="the command line that failed")
    tool: str = Field(default="stripe-opt", description="the command: stripe-opt, stripe-run or stripe-sim")
    options: tuple[str, ...] = Field(
        default=(), description="its options, without those for input, passes, machine and watchers"
    )
    files: dict[str, str] = Field(
        default_factory=dict[str, str], description="files of options, by the option's name, as base64"
    )
    input_format: str = Field(description="language of `input`, such as tile")
    input: str = Field(description="the text that was read; base64 for a language of bytes")
    passes: tuple[dict[str, JsonValue], ...] = Field(default=(), description="entries as in a pass list")
    hardware: JsonValue = Field(default=None, description="the rendered hardware model")

    def write(self, folder: Path | None) -> Path | None:
        """Writes the file to `folder`, or to the folder for temporary files; None when neither can be written.

        The name follows from the fault, not from the command that met it: a replay leaves no other file.
        """
        text = json.dumps(self.model_dump(mode="json"), indent=2) + "\n"
        fault = self.model_dump_json(exclude={"command", "traceback"})
        name = f"stripe-crash-{hashlib.sha256(fault.encode()).hexdigest()[:12]}.reproducer.json"
        for place in (folder, Path(tempfile.gettempdir())):
            try:
                if place is not None:
                    place.mkdir(parents=True, exist_ok=True)
                    replace_file(place / name, text.encode("utf-8", "backslashreplace"))
                    return place / name
            except OSError:
                continue
        return None


def read_reproducer(path: Path) -> tuple[Reproducer, Document]:
    """A reproducer's file, and its text. Raises ConfigError when the file is no reproducer."""
    document = read_json(path)
    if not isinstance(document.data, dict) or "stripe_reproducer" not in document.data:
        hint = "it is the file that the report of a fault names"
        raise document.error("this is no crash reproducer", (), hint)
    return validate(Reproducer, document), document
