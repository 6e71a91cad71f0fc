"""The argument parser of all commands: wrong usage is an exception with a suggestion, never an exit.

Nothing but argparse is imported here, because `--help` passes by.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn


class UsageError(Exception):
    """A wrong command line, with a suggestion."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of exiting, and names the option nearest to an unknown one."""

    absent = argparse.SUPPRESS
    """The default of an option that leaves no attribute when it is not given."""

    def __init__(self, prog: str, description: str, usage: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            usage=usage,
            epilog=epilog,
            allow_abbrev=False,
            add_help=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Called by argparse for every complaint; complaints about its insides are put in other words."""
        if match := re.fullmatch(r"argument (\S+): expected one argument", message):
            metavar = self._option_string_actions[match[1].split("/")[0]].metavar
            raise UsageError(f"{match[1]} needs a value", f"write {match[1]} {metavar}")
        if match := re.fullmatch(r"argument (\S+): ignored explicit argument (.*)", message):
            raise UsageError(f"{match[1]} takes no value, and {match[2]} is given", f"write {match[1]} alone")
        raise UsageError(message, f"'{self.prog} --help' lists the options")

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The parsed command line; raises UsageError."""
        namespace, extra = self.parse_known_args(list(argv))
        if extra:
            word = extra[0]
            if not word.startswith("-"):
                reason = f"unexpected argument '{word}'"
                raise UsageError(reason, "one input is read at a time; several options come one by one")
            name = word.split("=", 1)[0]
            hint = suggestion(name, self._option_string_actions, f"'{self.prog} --help' lists the options")
            raise UsageError(f"unknown option '{name}'", hint)
        return namespace


def suggestion(word: str, known: Iterable[str], otherwise: str) -> str:
    """A hint that names the known word most like `word`, or `otherwise`."""
    from stripe.ir.errors import did_you_mean  # for wrong command lines alone

    return did_you_mean(word, known, otherwise)


def one_of(*words: str, more: Callable[[], Iterable[str]] = tuple[str, ...]) -> Callable[[str], str]:
    """An argparse type for a closed set of words, which names the nearest; `more` finds further words late."""

    def check(text: str) -> str:
        if text in words or text in (found := tuple(more())):
            return text
        known = tuple(dict.fromkeys((*words, *found)))
        hint = suggestion(text, known, f"known are {', '.join(known)}")
        raise argparse.ArgumentTypeError(f"unknown value '{text}'; {hint}")

    return check


def number(least: int) -> Callable[[str], int]:
    """An argparse type for a whole number of at least `least`."""

    def check(text: str) -> int:
        if len(text) > 18 and text.isdigit():
            raise argparse.ArgumentTypeError(f"a number of {len(text)} digits is too large")
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {least} on")
        return int(text)

    return check


def file_name(text: str) -> str:
    """An argparse type for the name of a file or folder, which cannot be empty."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    return text
