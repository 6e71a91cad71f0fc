"""`stripe-reduce`: shrinks a program or a crash reproducer while a command goes on to fail."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stripe.cli.guard import OK, CrashRecord, guarded
from stripe.cli.options import InputOptions, add_about, add_input_file
from stripe.cli.streams import write_stdout
from stripe.cli.usage import Parser, UsageError, file_name, positive, whole

if TYPE_CHECKING:
    from stripe.pipeline.reduction.document import Document

_USAGE = "stripe-reduce INPUT --test COMMAND [options]"
_EPILOG = """\
examples:
  stripe-reduce net.stripe --test 'stripe-opt --passes fusion --verify exact' --exit-status 3 -o small.stripe
  stripe-reduce crash.reproducer.json --test 'stripe-opt --run-reproducer {}' --exit-status 70

COMMAND gets the candidate as its last argument, or where {} stands. Candidates are valid programs.

exit status: 0 success, 1 an error in the input or COMMAND does not fail on it, 2 wrong usage, 70 a fault of ours
"""


def main(argv: Sequence[str] | None = None) -> int:
    """The command; gives its exit status."""
    return guarded("stripe-reduce", argv, _command)


def _parser() -> Parser:
    parser = Parser("stripe-reduce", "Shrinks a program while a command goes on to fail.", _USAGE, _EPILOG)
    add_input_file(parser, "a .tile or .stripe file, a crash reproducer (.json), or -")
    parser.add_argument("--test", metavar="COMMAND", help="the command that has to go on failing")
    parser.add_argument(
        "--exit-status", type=whole, metavar="N", help="COMMAND fails with this status (default: any but 0)"
    )
    parser.add_argument(
        "--timeout", type=positive, default=60, metavar="SECONDS",
        help="what takes longer does not count as failing (default: 60)",
    )  # fmt: skip
    parser.add_argument(
        "-o", dest="output", type=file_name, metavar="FILE", help="write FILE instead of standard output"
    )
    add_about(parser)
    return parser


def _command(argv: Sequence[str], record: CrashRecord) -> int:
    from stripe.cli.answers import asked

    parser = _parser()
    namespace = parser.read(argv)
    if (answer := asked(parser, namespace)) is not None:
        write_stdout(answer)
        return OK
    if namespace.input is None:
        raise UsageError("no INPUT is given", "name a .tile, .stripe or .json file, or - for standard input")
    if namespace.test is None:
        raise UsageError("no --test is given", "--test 'stripe-opt --passes fusion'")
    try:
        words = tuple(shlex.split(namespace.test))
    except ValueError as error:
        raise UsageError(f"--test: {error}", "quote COMMAND as a shell does") from None
    if not words:
        raise UsageError("--test: COMMAND is empty", "--test 'stripe-opt --passes fusion'")
    from stripe.cli.files import check_output, write_text

    check_output(namespace.output)  # before the search, which may take hours
    document = _read(namespace.input, namespace.input_format, record)
    result = _reduce(document, words, namespace.exit_status, namespace.timeout)
    write_text(namespace.output, result.render())
    return OK


def _read(path: str, input_format: str | None, record: CrashRecord) -> Document:
    from stripe.cli.sources import read_source
    from stripe.pipeline.reduction.document import Document
    from stripe.pipeline.reproducer import read_reproducer

    if path.endswith(".json"):
        from pathlib import Path

        return Document.of(read_reproducer(Path(path))[0])
    source = read_source(InputOptions(path, input_format, ()))
    record.source = source
    return Document(source.text, source.format)


def _reduce(document: Document, words: tuple[str, ...], status: int | None, seconds: int) -> Document:
    from stripe.ir import StripeError
    from stripe.pipeline.reduction.command import Command
    from stripe.pipeline.reduction.document import Document, steps_for
    from stripe.pipeline.reduction.search import Search

    command = Command(words, status, seconds)
    steps = steps_for(document)
    if not command.fails(document):
        wanted = "fail" if status is None else f"end with status {status}"
        raise StripeError(f"the command does not {wanted} on the input as it is", hint="run it by hand first")
    shown = sys.stderr.isatty()

    def progress(tried: int, kept: int) -> None:
        if shown:
            sys.stderr.write(f"\rstripe-reduce: {tried} candidates tried, {kept} kept")

    search = Search[Document](command.fails, Document.render, progress)
    result = search.run(document, steps)
    sys.stderr.write("\n" if shown else "")
    sys.stderr.write(
        f"stripe-reduce: {len(document.render())} characters became {len(result.render())} "
        f"({search.tried} candidates, {search.kept} kept)\n"
    )
    return result


if __name__ == "__main__":
    sys.exit(main())
