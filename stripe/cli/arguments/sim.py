"""The options of `stripe-sim`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from stripe.cli.arguments.compile import CompileSpec
from stripe.cli.option import exclusive, option
from stripe.cli.usage import file_name

SCHEMAS = ("sim", "counts")
HALO_RULES = ("refetch", "keep")

_simulating = partial(option, group="simulating", replayed=False)
_file = partial(_simulating, read=file_name, complete="files")


@dataclass(frozen=True, kw_only=True)
class SimSpec(CompileSpec):
    """`stripe-sim`: compiles a tensor program as `stripe-opt` does, and simulates it on a hardware model."""

    prog = "stripe-sim"
    summary = "Simulates tensor programs on hardware models."
    usage = "stripe-sim INPUT --hw H [options]"
    epilog = """\
examples:
  stripe-sim examples/slides_layer.tile --hw dsp_conv
  stripe-sim examples/conv_bias_relu.tile --config dsp_conv --trace trace.json --plot picture.svg
  stripe-sim examples/conv_bias_relu.tile --config dsp_conv -D NUM_CONV=1 --json -
  stripe-sim examples/mappings/conv3x3.stripe --hw ref16x16 --counts --halo keep
  stripe-sim --diff before.json after.json

A program that no pass has scheduled is simulated too: one statement after the other, what has no location on the units
that take least time. The report says so.

exit status: 0 success, 1 an error in the input, 2 wrong usage or configuration,
70 a fault of ours (a line on stderr says where the crash reproducer lies)
"""
    command = "sim"

    json: str | None = _file(
        "--json", metavar="FILE",
        help="write the report as JSON (- for standard output, and nothing else there)",
    )  # fmt: skip
    trace: str | None = _file(
        "--trace", metavar="FILE", help="write a Chrome trace, which https://ui.perfetto.dev opens"
    )
    plot: str | None = _file("--plot", metavar="FILE.svg", help="draw timeline, roofline and energy")
    counts: bool = _simulating(
        "--counts", replayed=True,
        help="count the accesses of each memory level in a mapping exactly, instead of simulating",
    )  # fmt: skip
    halo: str | None = _simulating(
        "--halo", choices=HALO_RULES, replayed=True,
        help="with --counts: a box that moves is fetched again whole, or keeps the overlap (default: refetch)",
    )  # fmt: skip
    before: str | None = _file(
        "--diff", metavar="FILE",
        help="explain how the simulation in INPUT (B; .json, of --json) differs from that in FILE (A), and end",
    )  # fmt: skip
    schema: str | None = _simulating(
        "--schema", choices=SCHEMAS, help="print the JSON Schema of --json and end"
    )

    def question(self) -> bool:
        return self.schema is not None or super().question()

    def module(self) -> str:
        return "sim_diff" if self.before is not None and not self.question() else super().module()

    def check(self) -> None:
        exclusive(
            self.before is not None and self.input is None,
            "--diff compares two simulations, and one is given",
            "write stripe-sim --diff A.json B.json",
        )
        exclusive(
            self.counts and (self.trace or self.plot) is not None,
            "--counts has no times to show",
            "leave --trace and --plot out, or leave --counts out",
        )
        exclusive(
            self.halo is not None and not self.counts,
            "--halo is a rule for counting",
            "give --counts with it",
        )
        exclusive(
            self.plot is not None and not self.plot.lower().endswith(".svg"),
            f"--plot draws SVG, and '{self.plot}' ends otherwise",
            "name a file FILE.svg",
        )
