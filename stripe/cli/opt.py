"""`stripe-opt`: reads a tensor program, runs passes over it, and writes it in one of several forms."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from stripe.cli.guard import INPUT_ERROR, OK, CrashRecord, guarded
from stripe.cli.options import add_common, add_listing, add_schema, pipeline_options
from stripe.cli.streams import write_stdout
from stripe.cli.usage import Parser, UsageError, file_name

if TYPE_CHECKING:
    from stripe.cli.expectations import Message
    from stripe.cli.job import Job
    from stripe.cli.sources import Source
    from stripe.emit.targets import SourceTarget, Target

SCHEMAS = ("config", "hw", "ir")

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
    """What is written where, how the input is taken apart, and the program that the result has to equal."""

    target: Target
    output: str | None
    split: bool
    verify_diagnostics: bool
    against: Source | None = None


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
        default="stripe",
        metavar="TARGET",
        help="form of the output: stripe (the default), tile, ast, json, dot, c, or with options 'c{openmp=true}'",
    )
    group.add_argument(
        "-o",
        dest="output",
        type=file_name,
        metavar="FILE",
        help="write FILE instead of standard output, whole or not at all",
    )
    add_listing(group, "targets")
    add_schema(group, "print a JSON Schema", SCHEMAS)
    group = parser.add_argument_group("testing")
    group.add_argument(
        "--verify-against",
        type=file_name,
        metavar="FILE",
        help="prove that the result computes what the program in FILE does; a Tile program takes the same --shape",
    )
    group.add_argument(
        "--split-input-file", action="store_true", help="treat the parts between lines '// -----' as inputs"
    )
    group.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare errors, warnings and remarks with '// expected-error@+1 {{...}}'",
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
    if (answer := _answer(parser, namespace)) is not None:
        _write_answer(namespace.output, answer)
        return OK
    from stripe.emit.targets import parse_target

    output = OutputOptions(
        parse_target(namespace.emit),
        namespace.output,
        namespace.split_input_file,
        namespace.verify_diagnostics,
    )
    if output.split and namespace.dump_dir is not None:
        raise UsageError(
            "--dump-dir holds one run, and --split-input-file makes one of each part",
            "give the parts one by one",
        )
    if namespace.verify_against is not None:
        _check_against(namespace, output.target)
    if namespace.run_reproducer is not None:
        from stripe.cli.replay import replay

        return replay(namespace.run_reproducer, output, pipeline_options(namespace), record)
    from stripe.cli.job import begin

    job = begin(namespace, record)
    if namespace.verify_against is not None:
        from stripe.cli.against import reference

        output = replace(output, against=reference(namespace.verify_against, job))
    return perform(job, output)


def _check_against(namespace: argparse.Namespace, target: Target) -> None:
    """Raises UsageError where --verify-against has not one result, or no other program, to compare."""
    from stripe.emit.targets import SourceTarget

    if namespace.split_input_file:
        raise UsageError("--verify-against compares one result", "give the parts one by one")
    if isinstance(target, SourceTarget):
        raise UsageError(
            f"--verify-against compares results, and --emit {namespace.emit} has none", "leave one out"
        )
    if namespace.run_reproducer is not None:
        raise UsageError("--run-reproducer compares what the recorded run did", "leave --verify-against out")
    if namespace.verify_against == "-" == namespace.input:
        raise UsageError("standard input holds one program", "name a file for INPUT or for --verify-against")


def _answer(parser: Parser, namespace: argparse.Namespace) -> str | None:
    """What options say that ask about the program instead of running it."""
    from stripe.cli import answers

    if (text := answers.asked(parser, namespace)) is not None:
        return text
    if namespace.schema is not None:
        return answers.schema(namespace.schema)
    if namespace.input is None and namespace.hw is not None and namespace.emit in ("dot", "json"):
        return answers.machine(namespace.hw, tuple(namespace.defines), namespace.emit)
    return None


def _write_answer(path: str | None, text: str) -> None:
    """Without -o nothing heavy is imported, as --help goes this way."""
    if path is None:
        write_stdout(text)
        return
    from stripe.cli.files import write_text

    write_text(path, text)


def perform(job: Job, output: OutputOptions) -> int:
    """Compiles all parts of the input, and writes the product when none has an error; gives the exit status."""
    from stripe.cli.files import write_text
    from stripe.cli.sources import split_source
    from stripe.ir import StripeError

    job.record.emit = output.target.spelling
    job.record.own = {"against": output.against and asdict(output.against)}
    products: list[str] = []
    status = OK
    for part in split_source(job.source) if output.split else (job.source,):
        try:
            product = _part(job.part(part), output)
        except StripeError as error:
            if not output.split:
                raise
            print(error, file=sys.stderr)
            status = max(status, error.exit_status)
            continue
        if product is None:
            status = max(status, INPUT_ERROR)
        elif product:
            products.append(product)
    if status == OK and products:
        write_text(output.output, output.target.join(products))
    return status


def _part(job: Job, output: OutputOptions) -> str | None:
    """The product of one part; with --verify-diagnostics empty when the part has the errors that it announces, and None
    when its messages differ.
    """
    if not output.verify_diagnostics:
        return _compile(job, output, None)
    from stripe.cli.expectations import error_messages, unmet
    from stripe.ir import StripeError

    messages: list[Message] = []
    product = ""
    try:
        product = _compile(job, output, messages)
    except StripeError as error:
        messages += error_messages(error, job.source)
    problems = unmet(job.source, messages)
    for problem in problems:
        print(problem, file=sys.stderr)
    return None if problems else product


def _compile(job: Job, output: OutputOptions, messages: list[Message] | None) -> str:
    """The product of one part; warnings and remarks are added to `messages` when it is a list."""
    from stripe.emit.targets import ProgramTarget, SourceTarget

    target = output.target
    if isinstance(target, SourceTarget):
        return _source(job, target)
    loaded = job.load(quiet=messages is not None)
    collector = None
    if messages is not None:
        from stripe.cli.expectations import RemarkCollector, error_messages

        for warning in loaded.warnings:
            messages += error_messages(warning, job.source)
        collector = RemarkCollector(loaded, messages)
    result = job.run(loaded, collector)
    if output.against is not None:
        from stripe.cli import against

        against.check(job, output.against, result)
    assert isinstance(target, ProgramTarget)
    return target.emit(result)


def _source(job: Job, target: SourceTarget) -> str:
    """The source in a form of Tile. Raises UsageError for passes, and ConfigError for another language."""
    name, source = target.target_name, job.source
    if job.setup.entries:
        raise UsageError(f"--emit {name} shows the source, and passes run after it", "leave the passes out")
    if source.format != "tile":
        from stripe.ir import ConfigError

        reason = f"--emit {name} shows Tile, and the input is {source.format.capitalize()}"
        raise ConfigError(reason, path=source.name, hint="give a .tile file")
    return target.emit_source(source.text, source.name)


if __name__ == "__main__":
    sys.exit(main())
