"""Bounds on the work that isl may do: past them the answer is *unknown*, never a hang."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

import islpy as isl

Answer = TypeVar("Answer")
Raw = TypeVar("Raw", isl.Set, isl.Map)

CONTEXT: isl.Context = isl.DEFAULT_CONTEXT
DEFAULT_OPERATIONS = 20_000_000
"""isl's own unit of work. Usually two to five seconds; where many floors are tangled, numbers become long and a step
twenty times dearer: a minute or two. So much is for lowering alone, which past it has to refuse the program."""


class PolyLimit(Exception):
    """A question about integer sets would take too long, or isl failed at it; its answer is unknown."""


@dataclass(slots=True)
class _Deadline:
    """The processor time of a thread after which its questions raise `PolyLimit`. It cannot be reached before
    `earliest`, a time of the clock, which costs a fraction of what reading the processor time does."""

    processor: float
    earliest: float

    @staticmethod
    def after(seconds: float) -> _Deadline:
        return _Deadline(time.thread_time() + seconds, time.monotonic() + seconds)

    @property
    def is_past(self) -> bool:
        clock = time.monotonic()
        if clock < self.earliest:
            return False
        left = self.processor - time.thread_time()
        self.earliest = clock + left
        return left < 0


_DEADLINE: ContextVar[_Deadline | None] = ContextVar("deadline of the proof", default=None)


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Within the context `check_time` raises `PolyLimit` after so many seconds of processor time of this thread, or
    where an outer limit ends. The time is read between questions, never inside one, so that it decides no answer of a
    single question.
    """
    outer, own = _DEADLINE.get(), _Deadline.after(seconds)
    token = _DEADLINE.set(own if outer is None or own.processor < outer.processor else outer)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_time() -> None:
    """Raises PolyLimit past the limit of processor time."""
    deadline = _DEADLINE.get()
    if deadline is not None and deadline.is_past:
        raise PolyLimit("the processor time for the proof is used up")


@contextmanager
def isl_failures() -> Generator[None]:
    """Within the context any failure of isl is a `PolyLimit`."""
    try:
        yield
    except isl.Error as error:
        raise PolyLimit(" ".join(f"isl failed: {error}".split())) from error


@contextmanager
def operation_limit(operations: int = DEFAULT_OPERATIONS) -> Generator[None]:
    """Within the context isl raises `PolyLimit` after `operations` steps in all, or as many as an outer limit allows;
    the count of that one begins anew afterwards.
    """
    check_time()
    outer = CONTEXT.get_max_operations()
    operations = min(operations, outer or operations)
    CONTEXT.reset_operations()
    CONTEXT.set_max_operations(operations)
    try:
        yield
    except isl.Error as error:
        if _is_limit(error):
            raise PolyLimit(f"more than {operations} isl operations") from error
        raise
    finally:
        CONTEXT.set_max_operations(outer)
        CONTEXT.reset_operations()


def _is_limit(error: isl.Error) -> bool:
    return "max" in str(error).lower() or "quota" in str(error).lower()


def coalesced(raw: Raw) -> Raw:
    """The same set in fewer pieces. In rare cases of many pieces isl's own check of its result fails ("original tableau
    does not correspond to original basic map"); the set that was given is equal.
    """
    try:
        return raw.coalesce()
    except isl.Error as error:
        if _is_limit(error):
            raise
        return raw


def within(operations: int, question: Callable[[], Answer]) -> Answer | None:
    """The answer to `question`, or None when it takes more than `operations` isl steps."""
    try:
        with operation_limit(operations):
            return question()
    except PolyLimit:
        return None
