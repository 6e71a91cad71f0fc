"""What surrounds every command: exceptions become messages and exit statuses, never a traceback."""

from __future__ import annotations

import base64
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from stripe.cli.streams import silence_stdout
from stripe.cli.usage import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from stripe.cli.sources import Source

_DETAILS = 20

OK, INPUT_ERROR, USAGE_ERROR, MISMATCH, FAULT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 70, 130, 141


@dataclass(slots=True)
class CrashRecord:
    """What a command knows of its run so far: enough to replay it, should it crash. `own` are the options that `tool`
    has for itself.
    """

    command: tuple[str, ...] = ()
    source: Source | None = None
    shapes: tuple[str, ...] = ()
    passes: tuple[dict[str, JsonValue], ...] = ()
    hardware: JsonValue = None
    verify: str = "structural"
    verify_roundtrip: bool = False
    emit: str = "stripe"
    tool: str = "stripe-opt"
    own: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    data: Path | bytes | None = None
    folder: Path | None = None


def guarded(
    prog: str, argv: Sequence[str] | None, command: Callable[[Sequence[str], CrashRecord], int]
) -> int:
    """Runs a command and gives its exit status. Whatever is raised ends as one message on stderr."""
    words = sys.argv[1:] if argv is None else list(argv)
    with _interrupts() as interrupts:
        try:
            return _reported(prog, words, command, interrupts)
        except BaseException as error:
            # Foreign code makes other errors of an interrupt: a module of C that cannot load, for one.
            if not (interrupts or isinstance(error, KeyboardInterrupt)):
                raise
            print(f"{prog}: interrupted", file=sys.stderr)
            return INTERRUPTED


@contextmanager
def _interrupts() -> Generator[list[int]]:
    """A list that fills with the interrupts of this process (of the main thread, which alone can ask for them)."""
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _reported(
    prog: str,
    words: Sequence[str],
    command: Callable[[Sequence[str], CrashRecord], int],
    interrupts: Sequence[int],
) -> int:
    """The exit status; an error that came of an interrupt passes."""
    record = CrashRecord(command=(prog, *words))
    try:
        return command(words, record)
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
        return _report(prog, error, record)


def _report(prog: str, error: Exception, record: CrashRecord) -> int:
    from stripe.ir import StripeError

    if isinstance(error, StripeError):
        print(error, file=sys.stderr)
        return error.exit_status
    return _report_fault(prog, error, record)


def _report_fault(prog: str, error: Exception, record: CrashRecord) -> int:
    """One line that says what happened and where the reproducer lies; then the findings, if there are any."""
    from stripe.pipeline.instrument import InternalFault

    fault = error if isinstance(error, InternalFault) else None
    reason, *more = (fault.reason if fault else f"{type(error).__name__}: {error}").splitlines() or [""]
    path = (fault.reproducer if fault else None) or _write_reproducer(reason, error, record)
    where = (
        f"replay it with: stripe-opt --run-reproducer {path}" if path else "no reproducer could be written"
    )
    print(f"{prog}: internal fault: {reason}{_origin(error)}; {where}", file=sys.stderr)
    for line in [*more, *(fault.details if fault else ())][:_DETAILS]:
        print(f"  {line}", file=sys.stderr)
    return FAULT


def _origin(error: Exception) -> str:
    """Where in our code the exception was raised, for whoever is writing a pass; empty for findings."""
    from stripe.pipeline.instrument import InternalFault

    raised = error.__cause__ if isinstance(error, InternalFault) else error
    if raised is None:
        return ""
    frames = [
        frame for frame in traceback.extract_tb(raised.__traceback__) if "site-packages" not in frame.filename
    ]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def _data(record: CrashRecord) -> dict[str, JsonValue]:
    """The file of --data, whole: it may be gone when the run is replayed."""
    data = record.data
    if isinstance(data, Path):
        data = data.read_bytes() if data.is_file() else None
    return {} if data is None else {"data": base64.b64encode(data).decode()}


def _write_reproducer(reason: str, error: Exception, record: CrashRecord) -> Path | None:
    from stripe.pipeline.reproducer import Reproducer

    source = record.source
    return Reproducer(
        error=reason,
        traceback="".join(traceback.format_exception(error)),
        command=record.command,
        input_format=source.format if source else "stripe",
        input=source.text if source else "",
        shapes=record.shapes,
        passes=record.passes,
        hardware=record.hardware,
        verify=record.verify,
        verify_roundtrip=record.verify_roundtrip,
        emit=record.emit,
        tool=record.tool,
        options={**record.own, **_data(record)},
    ).write(record.folder)
