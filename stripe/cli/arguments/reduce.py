"""The options of `stripe-reduce`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial

from stripe.cli.arguments.compile import InputSpec
from stripe.cli.option import exclusive, option
from stripe.cli.usage import UsageError, file_name, number

_reducing = partial(option, group="reducing")
_EXAMPLE = "--test 'stripe-opt --passes fusion'"


@dataclass(frozen=True, kw_only=True)
class ReduceSpec(InputSpec):
    """`stripe-reduce`: shrinks a program or a crash reproducer while a command goes on to fail."""

    prog = "stripe-reduce"
    summary = "Shrinks a program while a command goes on to fail."
    usage = "stripe-reduce INPUT --test COMMAND [options]"
    epilog = """\
examples:
  stripe-reduce net.stripe --test 'stripe-opt --passes fusion --verify exact' --exit-status 3 -o small.stripe
  stripe-reduce crash.reproducer.json --test 'stripe-opt --run-reproducer {}' --exit-status 70

INPUT may be a crash reproducer (.json) too. COMMAND gets the candidate as its last argument, or where {} stands.
Candidates are valid programs. FILE holds the smallest so far while the search goes on.

exit status: 0 success, 1 an error in the input or COMMAND does not fail on it, 2 wrong usage, 70 a fault of ours
"""
    command = "reduce"

    test: str | None = _reducing("--test", metavar="COMMAND", help="the command that has to go on failing")
    exit_status: int | None = _reducing(
        "--exit-status", metavar="N", read=number(0),
        help="COMMAND fails with this status (default: any but 0)",
    )  # fmt: skip
    timeout: int = _reducing(
        "--timeout", metavar="SECONDS", read=number(1), default=60,
        help="a longer run does not count as failing (default: 60)",
    )  # fmt: skip
    jobs: int = _reducing(
        "-j", metavar="N", read=number(1), default=1, help="try N candidates at a time (default: 1)"
    )
    output: str | None = _reducing(
        "-o", metavar="FILE", read=file_name, complete="files", help="write FILE instead of standard output"
    )

    def check(self) -> None:
        exclusive(
            self.input is None,
            "no INPUT is given",
            "name a .tile, .stripe or .json file, or - for standard input",
        )
        exclusive(self.test is None, "no --test is given", _EXAMPLE)
        exclusive(not self.test_words(), "--test: COMMAND is empty", _EXAMPLE)

    def test_words(self) -> tuple[str, ...]:
        """The words of COMMAND, as a shell splits them."""
        try:
            return tuple(shlex.split(self.test or ""))
        except ValueError as error:
            raise UsageError(f"--test: {error}", "quote COMMAND as a shell does") from None
