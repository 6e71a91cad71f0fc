"""A pytest plugin: Ctrl-C ends the run, no matter how a test answers the interrupt.

A command that runs in process turns an interrupt into its exit status, 130, and foreign code into errors of its own.
Without this plugin only that test fails, and the run goes on with the next.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from types import FrameType

import pytest


class Interrupts:
    """The handler of SIGINT during a session; commands chain to it. The session ends after the test that met it."""

    def __init__(self) -> None:
        self.interrupted = False

    def note(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        signal.default_int_handler(number, frame)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        result = yield
        if self.interrupted:
            raise KeyboardInterrupt
        return result


def pytest_configure(config: pytest.Config) -> None:
    """Take SIGINT over, in the process of xdist's controller as in those of its workers."""
    if threading.current_thread() is threading.main_thread():
        interrupts = Interrupts()
        config.pluginmanager.register(interrupts)
        before = signal.signal(signal.SIGINT, interrupts.note)

        def restore() -> None:
            signal.signal(signal.SIGINT, before)

        config.add_cleanup(restore)
