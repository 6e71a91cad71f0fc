"""`stripe-run`: compiles, runs on data, compares and times."""

from __future__ import annotations

import tempfile
from pathlib import Path

from stripe.cli.arguments.run import RunSpec
from stripe.cli.commands import execution, run_report
from stripe.cli.compiling import begin, load, require_bounds, require_sound, run_passes
from stripe.cli.guard import MISMATCH, OK
from stripe.cli.job import Job
from stripe.config.output import check_output
from stripe.exec.data import load_inputs, random_inputs, save_arrays
from stripe.exec.isolation import EngineCrash
from stripe.ir import Program
from stripe.pipeline.engines import Arrays, parse_engine


def perform(job: Job, spec: RunSpec) -> int:
    """Compiles, runs, compares and times; gives the exit status."""
    engine = parse_engine(spec.engine)
    for path in (spec.out, spec.json):  # before the run, which may take hours
        if path not in (None, "-"):
            check_output(path)
    source = begin(job, spec)
    loaded, reading = load(job, source, spec)
    original = loaded.program
    execution.require_memory(original, source.name)
    if engine.engine_name != "interp":
        require_bounds(original, source, spec)
    program = run_passes(job, spec, original, reading)
    inputs = _inputs(job, spec, original)
    # A pass list decides on the order of loops; without one the emitter may choose one that suits caches.
    runner = engine.load(program, reorder=not job.entries)
    try:
        outputs = runner.run(inputs)
    except EngineCrash:
        require_sound(
            original, source
        )  # a program that is wrong in itself (--verify none) is no fault of ours
        raise
    comparison = None
    if spec.compare is not None:
        subject = execution.Subject(
            source, original, program, inputs, outputs, engine.engine_name, spec.data is None, spec.shape
        )
        comparison = subject.against(spec.compare)
    times = None if spec.bench is None else run_report.times_json(runner.bench(inputs, spec.bench))
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
