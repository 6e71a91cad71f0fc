"""`stripe-sim`: compiles a tensor program as `stripe-opt` does, and simulates it on a hardware model."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripe.cli.guard import OK, CrashRecord, guarded
from stripe.cli.options import add_common, add_json, add_schema
from stripe.cli.streams import write_stdout
from stripe.cli.usage import Parser, UsageError, file_name, one_of

if TYPE_CHECKING:
    from stripe.cli.compile import Setup
    from stripe.cli.job import Job
    from stripe.cost.counts.loops import Halo
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
    add_json(group, "the report")
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
    add_schema(group, "print the JSON Schema of --json", SCHEMAS)
    return parser


def _command(argv: Sequence[str], record: CrashRecord) -> int:
    parser = _parser()
    namespace = parser.read(argv)
    from stripe.cli.answers import asked

    if (answer := asked(parser, namespace)) is not None:
        write_stdout(answer)
        return OK
    if namespace.schema is not None:
        write_stdout(_schema(namespace.schema))
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
    from stripe.cli.job import begin

    return perform(begin(namespace, record), options)


def _schema(what: str) -> str:
    """The JSON Schema of what `--json` writes."""
    from stripe.cost.report.schema import CountsJson, SimulationJson

    model = SimulationJson if what == "sim" else CountsJson
    return json.dumps(model.model_json_schema(), indent=2) + "\n"


def perform(job: Job, simulating: SimOptions) -> int:
    """Compiles and simulates, or counts; gives the exit status."""
    job.record.tool = "stripe-sim"
    job.record.own = {"counts": simulating.counts, "halo": simulating.halo}
    if job.setup.hardware is None and not simulating.counts:
        raise UsageError("no machine is given to simulate", "name one with --hw, such as --hw dsp_conv")
    program = job.run(job.load())
    if simulating.counts:
        _count(program, job.source.name, job.setup, simulating)
    else:
        _simulate(program, job.source.name, job.setup, simulating)
    return OK


def _count(program: Program, name: str, setup: Setup, options: SimOptions) -> None:
    from stripe.cli.files import write_text
    from stripe.cli.simtables import print_counts
    from stripe.cost.counts.counts import count_program
    from stripe.cost.report.report import counts_json

    found = count_program(program, options.halo, setup.hardware)
    report = counts_json(found, options.halo, name, setup.hardware)
    if options.json is not None:
        write_text(options.json, json.dumps(report.model_dump(mode="json"), indent=2) + "\n")
    if options.json != "-":
        print_counts(report)


def _simulate(program: Program, name: str, setup: Setup, options: SimOptions) -> None:
    from stripe.cli.files import write_text
    from stripe.cli.simtables import print_simulation
    from stripe.cost.report.report import simulation_json
    from stripe.cost.time.simulate import simulate_program

    if setup.hardware is None:
        raise AssertionError("the machine was looked at before")
    found = simulate_program(program, setup.hardware)
    report = simulation_json(found, name)
    if options.trace is not None:
        from stripe.cost.report.trace import chrome_trace

        write_text(options.trace, json.dumps(chrome_trace(found), indent=1) + "\n")
    if options.plot is not None:
        from stripe.cost.report.plot import picture

        write_text(options.plot, picture(report))
    if options.json is not None:
        write_text(options.json, json.dumps(report.model_dump(mode="json"), indent=2) + "\n")
    if options.json != "-":
        print_simulation(report)


if __name__ == "__main__":
    sys.exit(main())
