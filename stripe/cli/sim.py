"""`stripe-sim`: compiles a tensor program as `stripe-opt` does, and simulates it on a hardware model."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripe.cli.guard import OK, CrashRecord, guarded
from stripe.cli.options import InputOptions, PipelineOptions, add_common, input_options, pipeline_options
from stripe.cli.usage import Parser, UsageError, file_name, one_of

if TYPE_CHECKING:
    from stripe.cli.compile import Setup
    from stripe.cost.loops import Halo
    from stripe.ir import Program

SCHEMAS = ("sim", "counts")
HALO_RULES: tuple[Halo, ...] = ("refetch", "keep")

_USAGE = "stripe-sim INPUT --hw H [options]"
_EPILOG = """\
examples:
  stripe-sim examples/slides_layer.tile --hw dsp_conv
  stripe-sim examples/conv_bias_relu.tile --config dsp_conv --trace trace.json --plot picture.svg
  stripe-sim examples/conv_bias_relu.tile --config dsp_conv -D NUM_CONV=1 --json -
  stripe-sim examples/mappings/conv3x3.stripe --hw ref16x16 --counts --halo keep

A program that no pass has scheduled is simulated too: one statement after the other, what has no location on the units
that take least time. The report says so.

exit status: 0 success, 1 an error in the input, 2 wrong usage or configuration,
70 a fault of ours (a line on stderr says where the crash reproducer lies)
"""


@dataclass(frozen=True, slots=True)
class SimOptions:
    """What is computed, and where it goes."""

    counts: bool
    halo: Halo
    json: str | None
    trace: str | None
    plot: str | None


def main(argv: Sequence[str] | None = None) -> int:
    """The command; gives its exit status."""
    return guarded("stripe-sim", argv, _command)


def _parser() -> Parser:
    parser = Parser("stripe-sim", "Simulates tensor programs on hardware models.", _USAGE, _EPILOG)
    add_common(parser)
    group = parser.add_argument_group("simulating")
    group.add_argument(
        "--json",
        type=file_name,
        metavar="FILE",
        help="write the report as JSON (- for standard output instead of the tables)",
    )
    group.add_argument(
        "--trace",
        type=file_name,
        metavar="FILE",
        help="write a Chrome trace, which https://ui.perfetto.dev opens",
    )
    group.add_argument(
        "--plot", type=file_name, metavar="FILE.svg", help="draw timeline, roofline and energy"
    )
    group.add_argument(
        "--counts", action="store_true",
        help="count exactly what each memory level reads and writes in a mapping, instead of simulating",
    )  # fmt: skip
    group.add_argument(
        "--halo", type=one_of(*HALO_RULES), metavar="|".join(HALO_RULES),
        help="with --counts: a box that moves is fetched again whole, or keeps what it held (default: refetch)",
    )  # fmt: skip
    group.add_argument(
        "--schema",
        type=one_of(*SCHEMAS),
        metavar="|".join(SCHEMAS),
        help="show the JSON Schema of --json and end",
    )
    return parser


def _command(argv: Sequence[str], record: CrashRecord) -> int:
    parser = _parser()
    namespace = parser.read(argv)
    if namespace.help:
        parser.print_help()
        return OK
    if namespace.schema is not None:
        sys.stdout.write(_schema(namespace.schema))
        return OK
    if namespace.version or namespace.list_passes is not None:
        from stripe.cli import answers

        sys.stdout.write(
            answers.version("stripe-sim") if namespace.version else answers.passes(namespace.list_passes)
        )
        return OK
    if namespace.counts and (namespace.trace or namespace.plot):
        raise UsageError(
            "--counts has no times to show", "leave --trace and --plot out, or leave --counts out"
        )
    if namespace.halo is not None and not namespace.counts:
        raise UsageError("--halo is a rule for counting", "give --counts with it")
    if namespace.plot is not None and not namespace.plot.lower().endswith(".svg"):
        raise UsageError(f"--plot draws SVG, and '{namespace.plot}' ends otherwise", "name a file FILE.svg")
    options = SimOptions(
        namespace.counts, namespace.halo or "refetch", namespace.json, namespace.trace, namespace.plot
    )
    return _run(input_options(namespace), pipeline_options(namespace), options, record)


def _schema(what: str) -> str:
    """The JSON Schema of what `--json` writes."""
    from stripe.cost.schema import CountsJson, SimulationJson

    model = SimulationJson if what == "sim" else CountsJson
    return json.dumps(model.model_json_schema(), indent=2) + "\n"


def _run(given: InputOptions, options: PipelineOptions, simulating: SimOptions, record: CrashRecord) -> int:
    from stripe.cli.compile import remember, run_passes, set_up
    from stripe.cli.sources import load_program, read_source

    if given.path is None:
        raise UsageError("no INPUT is given", "name a .tile or .stripe file, or - for standard input")
    setup = set_up(options)
    remember(record, setup, options, given)
    if setup.hardware is None and not simulating.counts:
        raise UsageError("no machine is given to simulate", "name one with --hw, such as --hw dsp_conv")
    source = read_source(given)
    record.source = source
    program = run_passes(load_program(source, given), setup, options, record)
    if simulating.counts:
        _count(program, source.name, setup, simulating)
    else:
        _simulate(program, source.name, setup, simulating)
    return OK


def _count(program: Program, name: str, setup: Setup, options: SimOptions) -> None:
    from stripe.cli.files import write_text
    from stripe.cli.simtables import print_counts
    from stripe.cost.counts import count_program
    from stripe.cost.report import counts_json

    found = count_program(program, options.halo, setup.hardware)
    report = counts_json(found, options.halo, name, setup.hardware)
    if options.json is not None:
        write_text(options.json, json.dumps(report.model_dump(mode="json"), indent=2) + "\n")
    if options.json != "-":
        print_counts(report)


def _simulate(program: Program, name: str, setup: Setup, options: SimOptions) -> None:
    from stripe.cli.files import write_text
    from stripe.cli.simtables import print_simulation
    from stripe.cost.report import simulation_json
    from stripe.cost.simulate import simulate_program

    if setup.hardware is None:
        raise AssertionError("the machine was looked at before")
    found = simulate_program(program, setup.hardware)
    report = simulation_json(found, name)
    if options.trace is not None:
        from stripe.cost.trace import chrome_trace

        write_text(options.trace, json.dumps(chrome_trace(found), indent=1) + "\n")
    if options.plot is not None:
        from stripe.cost.plot import picture

        write_text(options.plot, picture(report))
    if options.json is not None:
        write_text(options.json, json.dumps(report.model_dump(mode="json"), indent=2) + "\n")
    if options.json != "-":
        print_simulation(report)


if __name__ == "__main__":
    sys.exit(main())
