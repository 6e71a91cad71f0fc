"""Around every command: exceptions become messages and exit statuses, never a traceback."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

from stripe.cli.job import Job
from stripe.cli.option import Spec
from stripe.cli.streams import safe_stderr, silence_stdout, write_stdout
from stripe.cli.usage import UsageError
from stripe.exit_status import BROKEN_PIPE, INTERRUPTED, OK, SIGNALLED, USAGE_ERROR

_ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a process: of `kill`, and of a terminal that closes."""


def guarded(spec_class: type[Spec], argv: Sequence[str] | None) -> int:
    """Performs a command line and gives its exit status. Whatever is raised ends as one message on stderr."""
    words = sys.argv[1:] if argv is None else list(argv)
    with safe_stderr(), _interrupts() as interrupts:
        try:
            return _reported(spec_class, words, interrupts)
        except BaseException as error:
            # Foreign code makes other errors of an interrupt: a module of C that cannot load, for one.
            if not (interrupts or isinstance(error, KeyboardInterrupt)):
                raise
            ended = next((number for number in interrupts if number in _ENDS), None)
            print(f"{spec_class.prog}: {'interrupted' if ended is None else 'terminated'}", file=sys.stderr)
            return INTERRUPTED if ended is None else SIGNALLED + ended


@contextmanager
def _interrupts() -> Generator[list[int]]:
    """A list that fills with the interrupts of this process (of the main thread, which alone can ask for them).

    The handler of a caller in process is called too: its run ends, though the command ends with an exit status.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if number in _ENDS:
            for other in ended:
                signal.signal(other, signal.SIG_IGN)  # no second one while temporary files are removed
        elif callable(before):
            before(number, frame)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, note)
    ended = [number for number in _ENDS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ended:
        signal.signal(number, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
        for number in ended:
            signal.signal(number, signal.SIG_DFL)


def _reported(spec_class: type[Spec], words: Sequence[str], interrupts: Sequence[int]) -> int:
    """The exit status; an error that came of an interrupt passes."""
    prog = spec_class.prog
    job = Job((prog, *words), spec_class())
    try:
        job.spec = spec_class.read(words)
        spec = job.spec
        if spec.help:
            write_stdout(spec.parser().format_help())
            return OK
        if spec.version:
            from stripe import __version__

            write_stdout(f"{spec.prog} {__version__}\n")
            return OK
        if not spec.question():
            spec.check()
        # the one place where the heavy side of the commands is loaded: each has a function `perform`
        status: int = import_module(f"stripe.cli.commands.{spec.module()}").perform(job, spec)
        return status
    except UsageError as error:
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        print(f"{prog}: error: {error.reason}{hint}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        silence_stdout()
        return BROKEN_PIPE
    except Exception as error:  # the last place that can turn a fault of ours into a report
        if interrupts:
            raise
        from stripe.cli.fault import report

        return report(error, job)
