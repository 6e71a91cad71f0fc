"""`stripe-run`: compiles a tensor program as `stripe-opt` does, runs it on data, and compares and times it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from stripe.cli.guard import MISMATCH, OK, CrashRecord, guarded
from stripe.cli.options import InputOptions, PipelineOptions, add_common, input_options, pipeline_options
from stripe.cli.streams import write_stdout
from stripe.cli.usage import Parser, UsageError, file_name, one_of, positive, whole

ENGINES = ("interp", "c")
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

    engine: str
    data: str | None
    seed: int
    compare: str | None
    out: str | None
    bench: int | None
    json: str | None
    openmp: bool


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
        "--engine", type=one_of(*ENGINES), default="interp", metavar="|".join(ENGINES),
        help="the interpreter, or emitted C (default: interp)",
    )  # fmt: skip
    group.add_argument(
        "--openmp",
        action="store_true",
        help="with --engine c: blocks tagged thread or parallel run on several threads",
    )
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
    group.add_argument(
        "--json",
        type=file_name,
        metavar="FILE",
        help="write what is printed as JSON (- for standard output instead of it)",
    )
    return parser


def _command(argv: Sequence[str], record: CrashRecord) -> int:
    parser = _parser()
    namespace = parser.read(argv)
    if namespace.help:
        write_stdout(parser.format_help())
        return OK
    if namespace.version or namespace.list_passes is not None:
        from stripe.cli import answers
        from stripe.cli.files import write_text

        write_text(
            None,
            answers.version("stripe-run") if namespace.version else answers.passes(namespace.list_passes),
        )
        return OK
    if namespace.openmp and namespace.engine != "c":
        raise UsageError("--openmp is for --engine c", "add --engine c, or leave it out")
    if namespace.data is not None and namespace.random is not None:
        raise UsageError("--data and --random are two sources for the same inputs", "give one of them")
    options = RunOptions(
        namespace.engine, namespace.data, namespace.random or 0, namespace.compare, namespace.out,
        namespace.bench, namespace.json, namespace.openmp,
    )  # fmt: skip
    return _run(input_options(namespace), pipeline_options(namespace), options, record)


def _run(given: InputOptions, options: PipelineOptions, running: RunOptions, record: CrashRecord) -> int:
    from stripe.cli import execution, report
    from stripe.cli.compile import remember, run_passes, set_up
    from stripe.cli.sources import load_program, read_source

    if given.path is None:
        raise UsageError("no INPUT is given", "name a .tile or .stripe file, or - for standard input")
    setup = set_up(options)
    remember(record, setup, options, given)
    source = read_source(given)
    record.source = source
    loaded = load_program(source, given)
    original = loaded.program
    execution.require_memory(original, source.name)
    if running.engine == "c" and source.format == "stripe" and options.verify == "structural":
        # Tile cannot say what Stripe by hand can: C with an access out of bounds would take this process down.
        execution.require_sound(original)
    program = run_passes(loaded, setup, options, record)
    inputs = execution.find_inputs(original, running.data, running.seed)
    # A pass list decides on the order of loops; without one the emitter may choose one that suits caches.
    engine = execution.make_engine(running.engine, program, openmp=running.openmp, reorder=not setup.entries)
    outputs = engine.run(inputs)
    dtypes = {ref.name: ref.dtype.name for ref in program.outputs}
    found = report.Report(running.engine, source.name, outputs, dtypes)
    if running.compare is not None:
        subject = execution.Subject(
            source, original, program, inputs, outputs, running.engine, running.data is None, given.shapes
        )
        found.comparison = subject.against(running.compare)
    if running.bench is not None:
        found.times = engine.bench(inputs, running.bench)
    if running.out is not None:
        execution.save(running.out, outputs)
    report.write(found, running.json)
    return MISMATCH if found.comparison is not None and found.comparison.differences else OK


if __name__ == "__main__":
    sys.exit(main())
