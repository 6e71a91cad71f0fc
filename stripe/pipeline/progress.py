"""Progress of a step that takes long: a line on a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self


class ElapsedLine:
    """Within the context a line names the step and its seconds so far, renewed each `every` seconds; it disappears in
    the end. A step shorter than `every` shows nothing."""

    def __init__(self, write: Callable[[str], None], text: str, every: float = 1.0) -> None:
        self._write = write
        self._text = text
        self._every = every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _renew(self) -> None:
        started, shown = time.perf_counter(), False
        while not self._ended.wait(self._every):
            self._write(f"\r\x1b[K{self._text}, {time.perf_counter() - started:.0f} s")
            shown = True
        if shown:
            self._write("\r\x1b[K")
