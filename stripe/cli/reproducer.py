"""Crash reproducers of commands: written when a command falls over, and read back as the job that it was."""

from __future__ import annotations

import json
import traceback
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

from stripe.cli.arguments.compile import CompileSpec
from stripe.cli.arguments.opt import OptSpec
from stripe.cli.arguments.run import RunSpec
from stripe.cli.arguments.sim import SimSpec
from stripe.cli.job import Job
from stripe.cli.usage import UsageError
from stripe.config.document import Document, parse_document
from stripe.config.json5 import JsonPath
from stripe.config.validate import validate
from stripe.frontends.frontend import Source
from stripe.frontends.registry import find_front_end, languages
from stripe.hw.schema import HardwareModel
from stripe.pipeline.passlist import entry_json, read_pass_list
from stripe.pipeline.reproducer import Reproducer, read_reproducer

REPLAYED: dict[str, type[CompileSpec]] = {spec.prog: spec for spec in (OptSpec, RunSpec, SimSpec)}
"""The commands that `--run-reproducer` replays. A sweep writes a reproducer of `stripe-sim` for a point that fails."""


def write(job: Job, reason: str, raised: BaseException | None) -> Path | None:
    """Writes the reproducer of `job` to the folder of its dumps, or to that for temporary files. None when neither can
    be written.
    """
    spec, source = job.spec, job.source
    contents = dict(job.contents)
    for name, made in spec.options():
        path: str | None = getattr(spec, name)
        if made.content and path is not None and name not in contents and Path(path).is_file():
            contents[name] = Path(path).read_bytes()
    dump_dir = spec.dump_dir if isinstance(spec, CompileSpec) else None
    text = ""
    if source is not None:
        text = _base64(source.data) if find_front_end(source.language).binary else source.text
    return Reproducer(
        error=reason,
        traceback="".join(traceback.format_exception(raised)) if raised else "",
        command=job.command,
        tool=spec.prog,
        options=spec.words(),
        files={name: _base64(data) for name, data in contents.items()},
        input_format=source.language if source else "stripe",
        input=text,
        passes=tuple(entry_json(entry) for entry in job.entries),
        hardware=job.hardware and job.hardware.model_dump(mode="json", exclude_defaults=True),
    ).write(None if dump_dir is None else Path(dump_dir))


def read_into(job: Job, path: str) -> CompileSpec:
    """Turns `job` into the job of a reproducer, watched as its own command line asks; gives the recorded command line.

    Raises ConfigError when the file is no reproducer.
    """
    found, document = read_reproducer(Path(path))
    spec_class = REPLAYED.get(found.tool)
    if spec_class is None:
        raise document.error(
            f"no command is called '{found.tool}'", ("tool",), f"known are {', '.join(REPLAYED)}"
        )
    try:
        spec = spec_class.read(found.options)
        _require_replayed(spec, found.files)
        if isinstance(job.spec, CompileSpec):
            _require_checks(spec, job.spec)
        spec = spec.watched_as(job.spec)
        spec.check()
        front_end = find_front_end(found.input_format)
    except UsageError as error:
        raise document.error(error.reason, ("options",), error.hint) from None
    except KeyError:
        hint = f"known are {', '.join(languages())}"
        raise document.error(
            f"no language is called '{found.input_format}'", ("input_format",), hint
        ) from None
    passes = read_pass_list(parse_document(json.dumps({"passes": found.passes}), f"{path}: passes"))
    data = _bytes(found.input, document, ("input",)) if front_end.binary else found.input.encode()
    job.spec = spec
    job.source = Source(data, f"{path}: input", found.input_format)
    job.entries = passes.entries
    job.hardware = None if found.hardware is None else validate(HardwareModel, document, ("hardware",))
    job.contents = {name: _bytes(text, document, ("files", name)) for name, text in found.files.items()}
    return spec


def _require_replayed(spec: CompileSpec, files: Mapping[str, str]) -> None:
    """UsageError for options that no reproducer records: they write files, or read files of this machine."""
    for name, made in spec.options():
        given = getattr(spec, name) != getattr(type(spec)(), name)
        flag = made.flags[0] if made.flags else "INPUT"
        if given and not made.replayed:
            raise UsageError(f"a reproducer cannot set {flag}", "take the option out")
        if given and made.content and name not in files:
            raise UsageError(f"the file of {flag} is missing", f"put it under files.{name}, as base64")


def _require_checks(spec: CompileSpec, own: CompileSpec) -> None:
    """UsageError for recorded C without checks, unless this very command line asks for it."""
    runs_c = isinstance(spec, RunSpec) and spec.engine != RunSpec().engine
    if isinstance(spec, RunSpec) and runs_c:
        from stripe.pipeline.engines import parse_engine

        engine = parse_engine(spec.engine)
        if dangerous := sorted(engine.untrusted & engine.model_fields_set):
            raise UsageError(f"a reproducer cannot set {dangerous[0]} of an engine", "take the option out")
    if runs_c and spec.verify == "none" != own.verify:
        reason = "the recorded run executes C with --verify none, which can do anything"
        raise UsageError(reason, "read the program first, then add --verify none to this command line too")


def _bytes(text: str, document: Document, where: JsonPath) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise document.error("this is no base64", where, "encode the bytes of the file again") from None


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
