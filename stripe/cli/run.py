"""`stripe-run`: compiles a tensor program as `stripe-opt` does, runs it on data, and compares and times it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stripe.cli.guard import MISMATCH, OK, CrashRecord, guarded
from stripe.cli.options import add_common, add_json, add_listing
from stripe.cli.streams import write_stdout
from stripe.cli.usage import Parser, UsageError, file_name, one_of, positive, whole

if TYPE_CHECKING:
    from stripe.cli.engines import Engine
    from stripe.cli.job import Job

REFERENCES = ("interp", "numpy", "onnx")

_USAGE = "stripe-run INPUT [options]"
_EPILOG = """\
examples:
  stripe-run examples/conv_bias_relu.tile
  stripe-run examples/conv_bias_relu.tile --config dsp_conv --engine c --compare interp
  stripe-run examples/matmul.tile --data inputs.npz --out results.npz --engine c --bench 20

--compare interp runs the program as it was before the passes in the interpreter, so that it judges passes and engine;
--compare numpy evaluates the Tile source by itself, so that it judges the lowering too.

exit status: 0 success, 1 an error in the input, 2 wrong usage or configuration, 3 the comparison failed,
70 a fault of ours (a line on stderr says where the crash reproducer lies)
"""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """On what data, by which engine, and what is done with the results."""

    engine: Engine
    data: str | None
    seed: int
    compare: str | None
    out: str | None
    bench: int | None
    json: str | None


def main(argv: Sequence[str] | None = None) -> int:
    """The command; gives its exit status."""
    return guarded("stripe-run", argv, _command)


def _parser() -> Parser:
    parser = Parser(
        "stripe-run", "Runs tensor programs, compares their results and times them.", _USAGE, _EPILOG
    )
    add_common(parser)
    group = parser.add_argument_group("running")
    group.add_argument(
        "--engine", default="interp", metavar="ENGINE",
        help="interp (the interpreter, the default), c (emitted C), or with options 'c{openmp=true}'",
    )  # fmt: skip
    add_listing(group, "engines")
    group.add_argument(
        "--data", type=file_name, metavar="FILE.npz", help="inputs, one array for each by its name"
    )
    group.add_argument(
        "--random", type=whole, metavar="SEED", help="inputs of small random integers (default: 0)"
    )
    group.add_argument(
        "--compare",
        type=one_of(*REFERENCES),
        metavar="|".join(REFERENCES),
        help="compare the results with another way to get them",
    )
    group.add_argument("--bench", type=positive, metavar="N", help="run N times more and show the times")
    group.add_argument("--out", type=file_name, metavar="FILE.npz", help="write the outputs")
    add_json(group, "what is printed")
    return parser


def _command(argv: Sequence[str], record: CrashRecord) -> int:
    parser = _parser()
    namespace = parser.read(argv)
    from stripe.cli.answers import asked

    if (answer := asked(parser, namespace)) is not None:
        write_stdout(answer)
        return OK
    if namespace.data is not None and namespace.random is not None:
        raise UsageError("--data and --random are two sources for the same inputs", "give one of them")
    from stripe.cli.engines import parse_engine
    from stripe.cli.job import begin

    options = RunOptions(
        parse_engine(namespace.engine), namespace.data, namespace.random or 0, namespace.compare,
        namespace.out, namespace.bench, namespace.json,
    )  # fmt: skip

    return perform(begin(namespace, record), options)


def perform(job: Job, running: RunOptions) -> int:
    """Compiles, runs, compares and times; gives the exit status."""
    from stripe.cli import execution, report
    from stripe.cli.isolation import EngineCrash

    _remember(job, running)
    source = job.source
    loaded = job.load()
    original = loaded.program
    execution.require_memory(original, source.name)
    name = running.engine.engine_name
    if name != "interp" and source.format == "stripe" and job.options.verify == "structural":
        # Tile cannot say what Stripe by hand can: C with an access out of bounds would crash.
        execution.require_sound(original)
    program = job.run(loaded)
    inputs = execution.find_inputs(original, running.data, running.seed)
    # A pass list decides on the order of loops; without one the emitter may choose one that suits caches.
    runner = running.engine.load(program, reorder=not job.setup.entries)
    try:
        outputs = runner.run(inputs)
    except EngineCrash:
        execution.require_sound(
            original
        )  # a program that is wrong in itself (--verify none) is no fault of ours
        raise
    dtypes = {ref.name: ref.dtype.name for ref in program.outputs}
    found = report.Report(name, source.name, outputs, dtypes)
    if running.compare is not None:
        subject = execution.Subject(
            source, original, program, inputs, outputs, name, running.data is None, job.given.shapes
        )
        found.comparison = subject.against(running.compare)
    if running.bench is not None:
        found.times = runner.bench(inputs, running.bench)
    if running.out is not None:
        execution.save(running.out, outputs)
    report.write(found, running.json)
    return MISMATCH if found.comparison is not None and found.comparison.differences else OK


def _remember(job: Job, running: RunOptions) -> None:
    job.record.tool = "stripe-run"
    job.record.own = {
        "engine": running.engine.spelling, "seed": running.seed, "compare": running.compare,
        "bench": running.bench,
    }  # fmt: skip
    job.record.data = None if running.data is None else Path(running.data)


if __name__ == "__main__":
    sys.exit(main())
