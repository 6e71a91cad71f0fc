"""One description of a command: its options are the fields of a frozen dataclass.

From the class follow the parser and its help, the command line that a crash reproducer records and replays, and the
completion of shells. Nothing heavy is imported here, because `--help` passes by.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self, cast

from stripe.cli.usage import Parser, UsageError, one_of

OTHER = "other"
"""The group of options that every command has; help shows it last."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. Without `flags` it is the positional argument, and without `read` a switch."""

    flags: tuple[str, ...]
    group: str
    help: str
    metavar: str | None = None
    read: Callable[[str], object] | None = None
    many: bool = False
    optional: bool = False
    replayed: bool = True
    content: bool = False
    complete: str | tuple[str, ...] = ()
    """The values that a shell proposes: words, or a kind of names ("files", "passes", "hwmodels", "optconfigs")."""

    def add_to(self, parser: Parser, group: Any, name: str) -> None:
        """Declares the option to argparse; only an option that is given sets its attribute."""
        settings: dict[str, Any] = {"default": parser.absent, "help": self.help}
        if self.read is None:
            settings["action"] = "store_true"
        else:
            settings |= {"type": self.read, "metavar": self.metavar}
            if self.many:
                settings["action"] = "append"
            elif self.optional:
                settings |= {"nargs": "?", "const": ""}
        if self.flags:
            group.add_argument(*self.flags, dest=name, **settings)
        else:
            group.add_argument(name, nargs="?", **settings)


def option(
    *flags: str,
    group: str,
    help: str,
    metavar: str | None = None,
    read: Callable[[str], object] | None = None,
    choices: Sequence[str] = (),
    more: Callable[[], Iterable[str]] = tuple[str, ...],
    default: object = None,
    many: bool = False,
    optional: bool = False,
    replayed: bool = True,
    content: bool = False,
    complete: str | tuple[str, ...] = (),
) -> Any:
    """A field that is an option. `choices` are its values, beside those of `more`; `many` collects them in a
    tuple; an `optional` value may be left out (then it is empty). `replayed` tells whether the result of the command
    depends on the option, and `content` whether it depends on the file that the option names.
    """
    if choices:
        read, metavar = one_of(*choices, more=more), "|".join(choices)
        complete = complete or tuple(choices)
    if read is None and metavar is not None:
        read = str
    made = Option(flags, group, help, metavar, read, many, optional, replayed, content, complete)
    return filled_by(made, default=() if many else False if read is None else default)


def filled_by(*options: Option, default: object) -> Any:
    """A field that one option fills, or several, such as a list in the order of the command line."""
    return field(default=default, metadata={"options": options})


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A command line. Its class describes the command."""

    prog: ClassVar[str]
    summary: ClassVar[str]
    usage: ClassVar[str]
    epilog: ClassVar[str]
    command: ClassVar[str]
    """Its module in `stripe.cli.commands`."""

    completion: str | None = option(
        "--completion", group=OTHER, choices=("bash", "zsh", "fish"), replayed=False,
        help="print a script that completes this command in a shell, and end",
    )  # fmt: skip
    version: bool = option("--version", group=OTHER, replayed=False, help="say the version and end")
    help: bool = option("-h", "--help", group=OTHER, replayed=False, help="show this text and end")

    @classmethod
    def read(cls, words: Sequence[str]) -> Self:
        """The command line `words`. Raises UsageError; whether options agree is asked by `check`."""
        given: dict[str, Any] = vars(cls.parser().read(words))
        lists: dict[str, Any] = {
            name: tuple(cast("list[Any]", v)) for name, v in given.items() if isinstance(v, list)
        }
        return cls(**(given | lists))

    @classmethod
    def parser(cls) -> Parser:
        """The parser, which writes the help too."""
        parser = Parser(cls.prog, cls.summary, cls.usage, cls.epilog)
        groups: dict[str, Any] = {}
        for name, made in sorted(cls.options(), key=lambda pair: pair[1].group == OTHER):
            if made.group not in groups:
                groups[made.group] = parser.add_argument_group(made.group)
            made.add_to(parser, groups[made.group], name)
        return parser

    @classmethod
    def options(cls) -> Iterator[tuple[str, Option]]:
        """The options with the names of their fields."""
        for described in fields(cls):
            for made in cast("tuple[Option, ...]", described.metadata["options"]):
                yield described.name, made

    @classmethod
    def family(cls) -> tuple[type[Spec], ...]:
        """The command, and its subcommands after it."""
        return (cls,)

    def check(self) -> None:
        """Raises UsageError for options that contradict each other."""

    def question(self) -> bool:
        """Whether the command is asked about itself (its passes, its schemas) instead of being run."""
        return self.completion is not None

    def module(self) -> str:
        """The module of `stripe.cli.commands` that performs the command line."""
        return "answers" if self.question() else self.command

    def words(self) -> tuple[str, ...]:
        """The command line of the options that decide on the result; `read` gives an equal one back."""
        found: list[str] = []
        defaults = type(self)()
        for name, made in self.options():
            value: object = getattr(self, name)
            if not made.replayed or value == getattr(defaults, name):
                continue
            flag = f"{made.flags[0]}=" if made.flags else ""
            values = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            found += [flag.rstrip("=")] if value is True else [f"{flag}{item}" for item in values]
        return tuple(found)

    def watched_as(self, other: Spec) -> Self:
        """The same result, shown and written as the command line `other` wants it."""
        shared = {name for name, made in other.options() if not made.replayed}
        own = {name for name, made in self.options() if not made.replayed}
        return dataclasses.replace(self, **{name: getattr(other, name) for name in sorted(shared & own)})


def exclusive(given: bool, reason: str, hint: str) -> None:
    """UsageError when options contradict each other."""
    if given:
        raise UsageError(reason, hint)
