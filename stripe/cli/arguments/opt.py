"""The options of `stripe-opt`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from stripe.cli.arguments.compile import PassDiffSpec
from stripe.cli.option import exclusive, option
from stripe.cli.usage import file_name
from stripe.emit.target_names import BUILTIN_TARGETS

SCHEMAS = ("config", "hw", "ir", "sweep")

_output = partial(option, group="output")
_testing = partial(option, group="testing", replayed=False)


@dataclass(frozen=True, kw_only=True)
class OptSpec(PassDiffSpec):
    """`stripe-opt`: reads a tensor program, runs passes over it, and writes it in one of several forms."""

    prog = "stripe-opt"
    summary = "Rewrites tensor programs for a machine by a list of passes."
    usage = "stripe-opt INPUT [options]\n       stripe-opt --hw H --emit dot [-o FILE]"
    epilog = """\
examples:
  stripe-opt examples/matmul.tile
  stripe-opt examples/conv_bias_relu.tile --config dsp_conv --remarks
  stripe-opt net.stripe --passes 'fusion{a_reqs=[conv],b_reqs=[eltwise]},dce' --emit c -o net.c

exit status: 0 success, 1 an error in the input, 2 wrong usage or configuration, 3 a failed proof,
70 a fault of ours (a line on stderr says where the crash reproducer lies)
"""
    command = "opt"

    emit: str = _output(
        "--emit", metavar="TARGET", default="stripe", complete="targets",
        help=f"form of the output, stripe by default: {', '.join(BUILTIN_TARGETS)}; with options as 'c{{openmp=true}}'",
    )  # fmt: skip
    output: str | None = _output(
        "-o", metavar="FILE", read=file_name, complete="files", replayed=False,
        help="write FILE (a folder for `library`) instead of standard output, whole or not at all",
    )  # fmt: skip
    list_targets: str | None = _output(
        "--list-targets", metavar="NAME", optional=True, complete="targets", replayed=False,
        help="list the targets with their options, or that of one, and end",
    )  # fmt: skip
    schema: str | None = _output(
        "--schema", choices=SCHEMAS, replayed=False, help="print a JSON Schema and end"
    )
    verify_against: str | None = _testing(
        "--verify-against", metavar="FILE", read=file_name, complete="files", replayed=True, content=True,
        help="prove the result equal to the program in FILE; a Tile program takes the same --shape",
    )  # fmt: skip
    split_input_file: bool = _testing(
        "--split-input-file", help="treat the parts between lines '// -----' as inputs"
    )
    verify_diagnostics: bool = _testing(
        "--verify-diagnostics",
        help="compare errors, warnings and remarks with '// expected-error@+1 {{...}}'",
    )
    run_reproducer: str | None = _testing(
        "--run-reproducer", metavar="FILE", read=file_name, complete="files",
        help="replay the run that a crash reproducer holds",
    )  # fmt: skip

    def question(self) -> bool:
        asked = self.schema is not None or self.list_targets is not None
        return asked or self.asks_for_machine() or super().question()

    def module(self) -> str:
        return "replay" if self.run_reproducer is not None and not self.question() else super().module()

    def asks_for_machine(self) -> bool:
        """Whether the hardware model itself is the product."""
        return self.input is None and self.hw is not None and self.emit in ("dot", "json")

    def check(self) -> None:
        against, parts = self.verify_against is not None, "give the parts one by one"
        exclusive(
            self.split_input_file and self.dump_dir is not None,
            "--dump-dir holds one run, and --split-input-file makes one of each part",
            parts,
        )
        exclusive(against and self.split_input_file, "--verify-against compares one result", parts)
        exclusive(
            against and self.run_reproducer is not None,
            "--run-reproducer makes the comparison of the recorded run",
            "leave --verify-against out",
        )
        exclusive(
            self.verify_against == "-" == self.input,
            "standard input holds one program",
            "name a file for INPUT or for --verify-against",
        )
