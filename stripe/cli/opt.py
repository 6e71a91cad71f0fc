"""`stripe-opt`: reads a tensor program, runs passes over it, and writes it in one of several forms."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stripe.cli.guard import INPUT_ERROR, OK, CrashRecord, guarded
from stripe.cli.options import InputOptions, PipelineOptions, add_common, input_options, pipeline_options
from stripe.cli.streams import write_stdout
from stripe.cli.usage import Parser, UsageError, file_name, one_of

if TYPE_CHECKING:
    from stripe.cli.compile import Setup
    from stripe.cli.expectations import Message
    from stripe.cli.sources import Source

SCHEMAS = ("config", "hw", "ir")
EMIT_FORMS = ("stripe", "tile", "ast", "c", "json", "dot")

_USAGE = "stripe-opt INPUT [options]\n       stripe-opt --hw H --emit dot [-o FILE]"
_EPILOG = """\
examples:
  stripe-opt examples/matmul.tile
  stripe-opt examples/conv_bias_relu.tile --config dsp_conv --remarks
  stripe-opt net.stripe --passes 'fusion{a_reqs=[conv],b_reqs=[eltwise]},dce' --emit c -o net.c

exit status: 0 success, 1 an error in the input, 2 wrong usage or configuration, 3 a failed proof,
70 a fault of ours (a line on stderr says where the crash reproducer lies)
"""


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What is written where, and how the input is taken apart."""

    emit: str
    output: str | None
    split: bool
    verify_diagnostics: bool
    openmp: bool = False


def main(argv: Sequence[str] | None = None) -> int:
    """The command; gives its exit status."""
    return guarded("stripe-opt", argv, _command)


def _parser() -> Parser:
    parser = Parser(
        "stripe-opt", "Rewrites tensor programs for a machine by a list of passes.", _USAGE, _EPILOG
    )
    add_common(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--emit",
        type=one_of(*EMIT_FORMS),
        default="stripe",
        metavar="|".join(EMIT_FORMS),
        help="form of the output (default: stripe)",
    )
    group.add_argument(
        "-o",
        dest="output",
        type=file_name,
        metavar="FILE",
        help="write FILE instead of standard output, whole or not at all",
    )
    group.add_argument(
        "--openmp",
        action="store_true",
        help="with --emit c: OpenMP loops for blocks tagged thread or parallel",
    )
    group.add_argument(
        "--schema", type=one_of(*SCHEMAS), metavar="|".join(SCHEMAS), help="print a JSON Schema and end"
    )
    group = parser.add_argument_group("testing")
    group.add_argument(
        "--split-input-file", action="store_true", help="treat the parts between lines '// -----' as inputs"
    )
    group.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare errors and remarks with '// expected-error@+1 {{...}}'",
    )
    group.add_argument(
        "--run-reproducer",
        type=file_name,
        metavar="FILE",
        help="replay the run that a crash reproducer holds",
    )
    return parser


def _command(argv: Sequence[str], record: CrashRecord) -> int:
    parser = _parser()
    namespace = parser.read(argv)
    if namespace.help:
        write_stdout(parser.format_help())
        return OK
    output = OutputOptions(
        namespace.emit,
        namespace.output,
        namespace.split_input_file,
        namespace.verify_diagnostics,
        namespace.openmp,
    )
    if output.openmp and output.emit != "c":
        raise UsageError("--openmp is for --emit c", "add --emit c, or leave it out")
    if _answer(namespace, output):
        return OK
    if namespace.run_reproducer is not None:
        return _replay(namespace.run_reproducer, output, pipeline_options(namespace), record)
    return _optimize(input_options(namespace), pipeline_options(namespace), output, record)


def _answer(namespace: argparse.Namespace, output: OutputOptions) -> bool:
    """Options that ask about the program instead of running it."""
    from stripe.cli import answers
    from stripe.cli.files import write_text

    text: str | None = None
    if namespace.version:
        text = answers.version("stripe-opt")
    elif namespace.list_passes is not None:
        text = answers.passes(namespace.list_passes)
    elif namespace.schema is not None:
        text = answers.schema(namespace.schema)
    elif namespace.input is None and namespace.hw is not None and output.emit in ("dot", "json"):
        text = answers.machine(namespace.hw, tuple(namespace.defines), output.emit)
    if text is not None:
        write_text(output.output, text)
    return text is not None


@dataclass(frozen=True, slots=True)
class Run:
    """One run over one input, which may have several parts."""

    given: InputOptions
    options: PipelineOptions
    output: OutputOptions
    setup: Setup
    record: CrashRecord

    def process(self, source: Source) -> int:
        """Compiles all parts of the input; the product is written when none has an error."""
        from stripe.cli.compile import remember
        from stripe.cli.files import write_text
        from stripe.cli.sources import split_source
        from stripe.ir import StripeError

        remember(self.record, self.setup, self.options, self.given)
        self.record.emit = self.output.emit
        products: list[str] = []
        status = OK
        for part in split_source(source) if self.output.split else (source,):
            self.record.source = part
            try:
                product = self._checked(part) if self.output.verify_diagnostics else self._compile(part, None)
            except StripeError as error:
                if not self.output.split:
                    raise
                print(error, file=sys.stderr)
                status = max(status, error.exit_status)
                continue
            if product is None:
                status = max(status, INPUT_ERROR)
            elif product:
                products.append(product)
        if status == OK and products:
            write_text(self.output.output, _join(products, self.output.emit))
        return status

    def _checked(self, part: Source) -> str | None:
        """The product of one part, empty when it has the errors that it announces; None when its messages differ."""
        from stripe.cli.expectations import error_messages, unmet
        from stripe.ir import StripeError

        messages: list[Message] = []
        product = ""
        try:
            product = self._compile(part, messages)
        except StripeError as error:
            messages += error_messages(error, part)
        problems = unmet(part, messages)
        for problem in problems:
            print(problem, file=sys.stderr)
        return None if problems else product

    def _compile(self, part: Source, remarks: list[Message] | None) -> str:
        """The product of one part; remarks are added to `remarks` when it is a list."""
        from stripe.cli import emitting
        from stripe.cli.compile import run_passes
        from stripe.cli.sources import load_program

        form = self.output.emit
        if form in emitting.SOURCE_FORMS:
            if self.setup.entries:
                raise UsageError(
                    f"--emit {form} shows the source, and passes run after it", "leave the passes out"
                )
            return emitting.emit_source(part, form)
        loaded = load_program(part, self.given)
        collector = None
        if remarks is not None:
            from stripe.cli.expectations import RemarkCollector

            collector = RemarkCollector(loaded, remarks)
        program = run_passes(loaded, self.setup, self.options, self.record, collector)
        return emitting.emit_program(program, form, openmp=self.output.openmp)


def _optimize(
    given: InputOptions, options: PipelineOptions, output: OutputOptions, record: CrashRecord
) -> int:
    from stripe.cli.compile import set_up
    from stripe.cli.sources import read_source

    if given.path is None:
        raise UsageError("no INPUT is given", "name a .tile or .stripe file, or - for standard input")
    run = Run(given, options, output, set_up(options), record)
    return run.process(read_source(given))


def _join(products: list[str], form: str) -> str:
    """Parts come out as they went in: between separators; as JSON they are a list."""
    if len(products) == 1:
        return products[0]
    if form == "json":
        return f"[{','.join(product.rstrip() for product in products)}]\n"
    return "// -----\n".join(products)


def _replay(path: str, output: OutputOptions, options: PipelineOptions, record: CrashRecord) -> int:
    """Runs what a crash reproducer holds, with the watchers that this command line asks for."""
    from stripe.cli.replay import load_reproducer

    replay = load_reproducer(path)
    options = replace(options, verify=replay.verify, verify_roundtrip=replay.verify_roundtrip)
    run = Run(replay.given, options, replace(output, emit=replay.emit), replay.setup, record)
    return run.process(replay.source)


if __name__ == "__main__":
    sys.exit(main())
