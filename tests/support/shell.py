"""A shell small enough to run in process: the part of a RUN line's syntax that the golden tests use.

A line is a pipeline of commands with `|`, `2>&1`, `>`, `2>` and `<`. Commands are the console scripts of the project
(their functions are called), `filecheck`, `not`, `cat` and `diff`. All of it means the same under `lit`.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from stripe.cli import start

TOOLS = {
    "stripe-opt": "opt",
    "stripe-run": "run",
    "stripe-sim": "sim",
    "stripe-sweep": "sweep",
    "stripe-reduce": "reduce",
}
"""The functions of `stripe.cli.start` by the names of the commands."""
INTERNAL_FAULT = 70
"""Exit status for a fault of ours: never what a test expects, so `not` does not turn it into success."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<op> 2>&1 | 2> | && | \|\| | [|<>;&] )
      | (?P<word> (?: [^\s|<>;&'"\\] | \\. | '[^']*' | "(?:[^"\\]|\\.)*" )+ )
    )""",
    re.VERBOSE,
)


class ShellError(Exception):
    """A RUN line that is not in the supported syntax."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a pipeline: its words, and where its streams go."""

    argv: tuple[str, ...]
    merge_stderr: bool = False
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command did. `crashed` is set when an exception left its `main`."""

    command: Command
    status: int
    stdout: str
    stderr: str
    crashed: bool = False


def parse_line(text: str) -> tuple[Command, ...]:
    """Split a RUN line into the commands of its pipeline. Raises ShellError."""
    commands: list[Command] = []
    words: list[str] = []
    options: dict[str, str] = {}
    merge = False
    tokens = _tokens(text)
    for kind, token in tokens:
        if kind == "word":
            words.append(token)
        elif token == "2>&1":
            merge = True
        elif token in ("<", ">", "2>"):
            target = next(tokens, ("", ""))
            if target[0] != "word":
                raise ShellError(f"no file name after {token!r}")
            options[token] = target[1]
        elif token == "|":
            commands.append(_command(words, options, merge))
            words, options, merge = [], {}, False
        else:
            raise ShellError(f"{token!r} is not supported; write one RUN line per command")
    commands.append(_command(words, options, merge))
    return tuple(commands)


def run_pipeline(commands: tuple[Command, ...], cwd: Path) -> tuple[Outcome, ...]:
    """Run the commands one after the other, each reading what the one before wrote, inside the folder `cwd`."""
    outcomes: list[Outcome] = []
    piped = ""
    with contextlib.chdir(cwd):
        for command in commands:
            outcome = _run(command, Path(command.stdin).read_text("utf-8") if command.stdin else piped)
            outcomes.append(outcome)
            piped = "" if command.stdout else outcome.stdout
    return tuple(outcomes)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ShellError(f"cannot read {text[position:]!r} (an open quote?)")
        position = match.end()
        if match["op"]:
            yield "op", match["op"]
        else:
            yield "word", "".join(shlex.split(match["word"]))


def _command(words: list[str], options: dict[str, str], merge: bool) -> Command:
    if not words:
        raise ShellError("an empty command")
    return Command(tuple(words), merge, options.get("<"), options.get(">"), options.get("2>"))


def _run(command: Command, stdin: str) -> Outcome:
    argv = list(command.argv)
    inverted = False
    while argv and argv[0] == "not":
        inverted = not inverted
        argv.pop(0)
    with _streams(stdin, command.merge_stderr) as (out, err):
        status, crashed = _call(argv)
        stdout, stderr = _text(out), _text(err)
    if command.stdout:
        Path(command.stdout).write_text(stdout, "utf-8")
    if command.stderr:
        Path(command.stderr).write_text(stderr, "utf-8")
    if inverted and not crashed and status != INTERNAL_FAULT:
        status = int(status == 0)
    return Outcome(command, status, stdout, stderr, crashed)


def _call(argv: list[str]) -> tuple[int, bool]:
    """Run one command on the current sys streams; the exit status, and whether an exception got out of it."""
    name, *arguments = argv or [""]
    try:
        if name in TOOLS:
            return _status(getattr(start, TOOLS[name])(arguments)), False
        builtin = _BUILTINS.get(name)
        if builtin is None:
            known = ", ".join([*TOOLS, *_BUILTINS, "not"])
            print(f"{name or 'not'}: unknown command; a RUN line knows {known}", file=sys.stderr)
            return 127, True
        return builtin(arguments), False
    except SystemExit as stop:
        return _status(stop.code), False
    except Exception:  # noqa: BLE001 - whatever got out is what the failure has to show
        traceback.print_exc()
        return 1, True


def _status(code: object) -> int:
    """The exit status that the interpreter would give for `sys.exit(code)`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


@contextlib.contextmanager
def _streams(stdin: str, merge: bool) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Replace the three sys streams, with `.buffer` beneath them as real ones have."""
    saved = sys.stdin, sys.stdout, sys.stderr
    out = _stream(b"")
    err = out if merge else _stream(b"")
    sys.stdin, sys.stdout, sys.stderr = _stream(stdin.encode()), out, err
    try:
        yield out, err if err is not out else _stream(b"")
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved


def _stream(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def _filecheck(arguments: list[str]) -> int:
    options = parse_argv_options(["filecheck", *arguments])
    if options.input_file == "-":
        text = FInput("-", FInput.canonicalize_line_ends(sys.stdin.read()))
    else:
        text = FInput.from_opts(options)
    return Matcher(options, text, Parser.from_opts(options)).run()


def _cat(arguments: list[str]) -> int:
    for name in arguments or ["-"]:
        sys.stdout.write(_read(name))
    return 0


def _diff(arguments: list[str]) -> int:
    first, second = [name for name in arguments if name == "-" or not name.startswith("-")]
    lines = difflib.unified_diff(
        _read(first).splitlines(), _read(second).splitlines(), first, second, lineterm=""
    )
    found = list(lines)
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


def _read(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")


_BUILTINS: dict[str, Callable[[list[str]], int]] = {
    "filecheck": _filecheck,
    "FileCheck": _filecheck,
    "cat": _cat,
    "diff": _diff,
}
