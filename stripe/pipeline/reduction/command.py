"""Whether a command still fails on a candidate, which it gets as a file."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stripe.ir import ConfigError
from stripe.pipeline.reduction.input import ReductionInput

Tool = Callable[[list[str]], int]
"""A command of this program: takes its arguments and gives its exit status."""


class _Process(Protocol):
    """A process of either kind."""

    def wait(self, seconds: float) -> int | None:
        """The exit status, negative for a signal; None when the process runs on."""
        ...

    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Command:
    """`words` are the program and its arguments: `{}` stands for the file, which comes last when it stands nowhere.

    A candidate fails when the status is `status`, or any but 0 when that is None, within `seconds`. A program
    of `tools` that belongs to this installation is called in a copy of this process, which has loaded it already.
    """

    words: tuple[str, ...]
    status: int | None = None
    seconds: float = 60.0
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])

    def start(self, document: ReductionInput) -> CommandTrial:
        """Starts the command on a candidate. Raises ConfigError when it cannot be run at all."""
        folder = tempfile.TemporaryDirectory(prefix="stripe-reduce-")
        path = Path(folder.name) / f"candidate{document.suffix}"
        path.write_text(document.render(), "utf-8")
        words = [word.replace("{}", str(path)) for word in self.words]
        if words == list(self.words):
            words.append(str(path))
        deadline = time.monotonic() + self.seconds
        tool = self.tools.get(words[0]) if _is_ours(words[0]) else None
        process = _External(words) if tool is None else _Copy(tool, words[1:])
        return CommandTrial(process, folder, self.status, deadline)


@dataclass(frozen=True, slots=True)
class CommandTrial:
    """A command that runs on a candidate."""

    process: _Process
    folder: tempfile.TemporaryDirectory[str]
    status: int | None
    deadline: float

    def fails(self) -> bool:
        """Waits for the end."""
        found = self.process.wait(max(0.0, self.deadline - time.monotonic()))
        self.cancel()
        if found is None:
            return False
        return found != 0 if self.status is None else found == self.status

    def cancel(self) -> None:
        """Ends the command and removes its file."""
        self.process.kill()
        self.folder.cleanup()


def _is_ours(name: str) -> bool:
    """Whether the shell would find the command of this very installation under a name."""
    found = shutil.which(name)
    return found is None or Path(found).parent == Path(sys.executable).parent


class _External:
    """A program of the system."""

    def __init__(self, words: list[str]) -> None:
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise ConfigError(f"cannot run '{words[0]}': {error.strerror}", hint="check --test") from None

    def wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class _Copy:
    """A tool in a copy of this process: a crash or an endless loop of the tool is the copy's alone."""

    def __init__(self, tool: Tool, arguments: list[str]) -> None:
        self._process = multiprocessing.get_context("fork").Process(target=_call, args=(tool, arguments))
        self._process.start()

    def wait(self, seconds: float) -> int | None:
        self._process.join(seconds)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def _call(tool: Tool, arguments: list[str]) -> None:
    """The life of a copy: silent, and without a terminal."""
    with open(os.devnull, "r+", encoding="utf-8") as null:  # noqa: PTH123 - no path of a file
        for stream in range(3):
            os.dup2(null.fileno(), stream)
        sys.stdin = sys.stdout = sys.stderr = null
        sys.exit(tool(arguments))
