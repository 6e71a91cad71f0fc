"""Code that may take the process down runs in a process of its own, so that a crash is an error like any other."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import TypeVar, cast

from stripe.ir import StripeError

_Result = TypeVar("_Result")


class EngineCrash(Exception):
    """The emitted program ended its process: a fault of ours."""


def isolated(work: Callable[[], _Result]) -> _Result:
    """The result or the error of `work`, computed in a copy of this process.

    Raises EngineCrash when a signal ends it, StripeError when the system did (the memory was full).
    """
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        _work(work, send)
    os.close(send)
    try:
        with os.fdopen(receive, "rb") as stream:
            answer = stream.read()
    except BaseException:  # an interrupt: the result has no reader any more
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise _crash(os.WTERMSIG(status))
    if status:
        raise StripeError("the results of the running program were lost", hint="do they fit into memory?")
    done, value = cast("tuple[bool, object]", pickle.loads(answer))
    if not done:
        raise cast(BaseException, value)
    return cast(_Result, value)


def _work(work: Callable[[], object], send: int) -> None:
    """The whole life of the copy. It ends here, so that files and handles of the original are cleaned up once, by the
    original."""
    try:
        try:
            answer = (True, work())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the original raises it
            answer = (False, error)
        with os.fdopen(send, "wb") as stream:
            pickle.dump(answer, stream, protocol=pickle.HIGHEST_PROTOCOL)
    except BaseException as error:  # noqa: BLE001 - what cannot be sent is said
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _crash(number: int) -> Exception:
    name = signal.Signals(number).name
    if number == signal.SIGKILL:
        return StripeError(
            "the running program was killed (SIGKILL)", hint="did it take more memory than there is?"
        )
    return EngineCrash(f"the emitted program crashed: {name}, {signal.strsignal(number)}")
