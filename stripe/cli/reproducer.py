"""Crash reproducers of commands: written when a command falls over, and read back as the job that it was."""

from __future__ import annotations

import json
import traceback
from base64 import b64decode, b64encode
from pathlib import Path

from stripe.cli.arguments.compile import CompileSpec
from stripe.cli.arguments.opt import OptSpec
from stripe.cli.arguments.run import RunSpec
from stripe.cli.arguments.sim import SimSpec
from stripe.cli.job import Job
from stripe.cli.usage import UsageError
from stripe.config.document import parse_document
from stripe.config.validate import validate
from stripe.frontends.frontend import Source
from stripe.frontends.registry import find_front_end
from stripe.hw.schema import HardwareModel
from stripe.pipeline.passlist import entry_json, read_pass_list
from stripe.pipeline.reproducer import Reproducer, read_reproducer

_SPECS: dict[str, type[CompileSpec]] = {spec.prog: spec for spec in (OptSpec, RunSpec, SimSpec)}


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
    """Makes `job` the one that a reproducer holds, watched as its command line asks; gives the recorded command line.

    Raises ConfigError when the file is no reproducer.
    """
    found, document = read_reproducer(Path(path))
    spec_class = _SPECS.get(found.tool)
    if spec_class is None:
        raise document.error(
            f"no command is called '{found.tool}'", ("tool",), f"known are {', '.join(_SPECS)}"
        )
    try:
        spec = spec_class.read(found.options).watched_as(job.spec)
        spec.check()
        front_end = find_front_end(found.input_format)
    except UsageError as error:
        raise document.error(error.reason, ("options",), error.hint) from None
    except KeyError:
        raise document.error(f"no language is called '{found.input_format}'", ("input_format",)) from None
    passes = read_pass_list(parse_document(json.dumps({"passes": found.passes}), f"{path}: passes"))
    data = b64decode(found.input) if front_end.binary else found.input.encode()
    job.spec = spec
    job.source = Source(data, f"{path}: input", found.input_format)
    job.entries = passes.entries
    job.hardware = None if found.hardware is None else validate(HardwareModel, document, ("hardware",))
    job.contents = {name: b64decode(text) for name, text in found.files.items()}
    return spec


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
