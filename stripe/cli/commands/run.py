"""`stripe-run`: compiles, runs on data, compares and times."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from stripe.cli.arguments.run import RunSpec
from stripe.cli.commands import run_report, speed
from stripe.cli.commands.comparison import ComparedRun
from stripe.cli.compiling import (
    load_program,
    read_job,
    require_fit_for_code,
    run_passes,
    to_stderr,
    warn_of_idle_parameters,
    warn_of_idle_policy,
)
from stripe.cli.job import Job
from stripe.config.files import NATIVE
from stripe.exec.data import load_inputs, random_inputs, save_arrays
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.exec.isolation import EngineCrash
from stripe.exec.native.processor import this_processor
from stripe.exit_status import MISMATCH, OK
from stripe.ir import Program, StripeError
from stripe.output import check_output
from stripe.pipeline.engines import Arrays, parse_engine
from stripe.pipeline.progress import ElapsedLine


def perform(job: Job, spec: RunSpec) -> int:
    """Compiles, runs, compares and times; gives the exit status."""
    engine = parse_engine(spec.engine).with_options(spec.engine_options())
    for path in (spec.out, spec.json):  # before the run, which may take hours
        if path not in (None, "-"):
            check_output(path)
    warn_of_idle_policy(spec, judged=engine.unchecked and spec.verify != "none")
    source = read_job(job, spec)
    loaded, reading = load_program(job, source, spec)
    original = loaded.program
    require_memory(original, source.name)
    if engine.unchecked:
        require_fit_for_code(original, source, spec)
        warn_of_vectors(job)
    program = run_passes(job, spec, original, reading, unchecked=engine.unchecked)
    warn_of_idle_parameters(job)
    inputs = _inputs(job, spec, original)
    # A pass list decides on the order of loops; without a list the emitter may choose an order that suits caches.
    runner = engine.load(program, reorder=not job.entries)
    # A line on a terminal while the interpreter runs; emitted code has a process of its own.
    shown = engine.engine_name == "interp" and sys.stderr.isatty()
    try:
        with ElapsedLine(to_stderr, "interpreting") if shown else nullcontext():
            outputs = runner.run(inputs)
    except ExecutionError as error:
        error.path = error.path or source.name
        if program is not original and _runs(original, inputs):
            error.path = f"{source.name} after the passes"
            error.hint = "it runs without them: --verify exact says which pass is at fault"
        raise
    except EngineCrash:
        # a program that is wrong in itself (--verify none) is no fault of ours
        from stripe.pipeline.checks.proof import require_sound

        require_sound(original, to_stderr, source.name)
        raise
    comparison = None
    if spec.compare is not None:
        compared = ComparedRun(
            source, original, program, inputs, outputs, engine.engine_name, spec.data is None, spec.reading
        )
        comparison = compared.against(spec.compare)
    times = (
        None if spec.bench is None else speed.measure(runner, engine, original, program, inputs, spec.bench)
    )
    if spec.out is not None:
        save_arrays(spec.out, outputs)
    dtypes = {ref.name: ref.dtype.name for ref in program.outputs}
    report = run_report.ReportJson(
        input=source.name,
        engine=engine.engine_name,
        outputs=tuple(run_report.output_json(name, dtypes[name], array) for name, array in outputs.items()),
        comparison=comparison,
        bench=times,
    )
    run_report.write(report, spec.json)
    return OK if comparison is None or comparison.equal else MISMATCH


def _runs(program: Program, inputs: Arrays) -> bool:
    """Whether the interpreter runs a program to its end."""
    try:
        interpret(program, inputs)
    except ExecutionError:
        return False
    return True


def require_memory(program: Program, name: str) -> None:
    """StripeError when the tensors of `program` are larger than the memory of this machine."""
    needed = sum(ref.bytes for ref in program.entry.allocs)
    present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > present:
        reason = f"the tensors take {needed} bytes, and this machine has {present} bytes of memory"
        hint = "make them smaller; stripe-opt and stripe-sim work on programs of any size"
        raise StripeError(reason, path=name, hint=hint)


def warn_of_vectors(job: Job) -> None:
    """Says on stderr where passes cut vectors for another processor than that which runs them."""
    given = job.hardware.parameters.get("VECTOR_BYTES") if job.hardware and job.entries else None
    if given is None or job.hardware is None:
        return
    here = this_processor().vector_bytes
    if given != here:
        print(
            f"warning: the passes are for '{job.hardware.name}' with vectors of {given} bytes, and this machine has "
            f"{here}: --hw {NATIVE} takes the numbers of this machine",
            file=sys.stderr,
        )


def _inputs(job: Job, spec: RunSpec, program: Program) -> Arrays:
    """The inputs from a file, or random ones. A replay has the bytes of the file."""
    if spec.data is None:
        return random_inputs(program, spec.random or 0)
    if "data" not in job.contents:
        return load_inputs(program, spec.data)
    with tempfile.TemporaryDirectory(prefix="stripe-replay-") as folder:
        path = Path(folder) / "data.npz"
        path.write_bytes(job.contents["data"])
        return load_inputs(program, path)
