"""`--run-reproducer`: a run as a crash reproducer recorded it, by the command that crashed."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field

from stripe.cli.compile import Setup
from stripe.cli.engines import parse_engine
from stripe.cli.guard import CrashRecord
from stripe.cli.job import Job
from stripe.cli.options import InputOptions, PipelineOptions
from stripe.cli.sources import Source
from stripe.config.template import Document, parse_document
from stripe.config.validate import validate
from stripe.emit.targets import parse_target
from stripe.hw.schema import HardwareModel
from stripe.pipeline.passlist import read_pass_list
from stripe.pipeline.reproducer import Reproducer, read_reproducer

if TYPE_CHECKING:
    from stripe.cli.opt import OutputOptions


class _Own(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OptReplay(_Own):
    """What stripe-opt has for itself, beside --emit; `against` is the file of --verify-against."""

    against: Source | None = None


class RunReplay(_Own):
    """What stripe-run has for itself; `data` is the file of --data."""

    engine: str = "interp"
    data: Base64Bytes | None = None
    seed: int = Field(default=0, ge=0)
    compare: Literal["interp", "numpy", "onnx"] | None = None
    bench: int | None = Field(default=None, ge=1)


class SimReplay(_Own):
    """What stripe-sim has for itself."""

    counts: bool = False
    halo: Literal["refetch", "keep"] = "refetch"


def replay(path: str, output: OutputOptions, options: PipelineOptions, record: CrashRecord) -> int:
    """Runs what a crash reproducer holds, with the watchers that this command line asks for; gives the exit status.

    Raises ConfigError when the file is no reproducer.
    """
    found, document = read_reproducer(Path(path))
    job = _job(path, document, found, options, record)
    if found.tool == "stripe-run":
        return _replay_run(validate(RunReplay, document, ("options",)), job)
    if found.tool == "stripe-sim":
        from stripe.cli import sim

        own = validate(SimReplay, document, ("options",))
        return sim.perform(job, sim.SimOptions(own.counts, own.halo, None, None, None))
    from stripe.cli import opt

    own_options = validate(OptReplay, document, ("options",))
    target = parse_target(found.emit, f"{path}: emit")
    return opt.perform(job, replace(output, target=target, against=own_options.against))


def _job(
    path: str, document: Document, found: Reproducer, options: PipelineOptions, record: CrashRecord
) -> Job:
    passes = read_pass_list(parse_document(json.dumps({"passes": found.passes}), f"{path}: passes"))
    model = None if found.hardware is None else validate(HardwareModel, document, ("hardware",))
    source = Source(found.input, f"{path}: input", found.input_format)
    given = InputOptions(source.name, found.input_format, found.shapes)
    options = replace(options, verify=found.verify, verify_roundtrip=found.verify_roundtrip)
    return Job(source, given, options, Setup(passes.entries, model), record)


def _replay_run(own: RunReplay, job: Job) -> int:
    from stripe.cli import run

    with tempfile.TemporaryDirectory(prefix="stripe-replay-") as folder:
        data = Path(folder) / "data.npz"
        if own.data is not None:
            data.write_bytes(own.data)
        options = run.RunOptions(
            parse_engine(own.engine, f"{job.source.name}: engine"), None if own.data is None else str(data),
            own.seed, own.compare, None, own.bench, None,
        )  # fmt: skip
        try:
            return run.perform(job, options)
        finally:
            job.record.data = own.data  # the file goes now, and the next reproducer is to hold the same
