"""`--timing`: how long each pass took."""

from __future__ import annotations

import time

from typing_extensions import override

from stripe.ir import Program
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument


class Timing(Instrument):
    """Measures passes; has to be the first client, so that no other is measured with them."""

    def __init__(self, reading: float = 0.0) -> None:
        self.reading = reading
        """Seconds that reading and lowering the input took."""
        self.seconds: list[tuple[str, float]] = []
        self._created = time.perf_counter()
        self._started = 0.0
        self._running = False

    @override
    def before(self, entry: PassEntry, program: Program) -> None:
        self._started = time.perf_counter()
        self._running = True

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        self._add(entry.title)

    @override
    def failed(self, entry: PassEntry, program: Program, error: Exception) -> None:
        if self._running:  # the pass itself, and no client after it
            self._add(f"{entry.title}, failed")

    def _add(self, title: str) -> None:
        self.seconds.append((title, time.perf_counter() - self._started))
        self._running = False

    def table(self) -> str:
        """Seconds and share of each line, in the order in which they ran, and their sum."""
        passes = sum(seconds for _, seconds in self.seconds)
        watching = max(0.0, time.perf_counter() - self._created - passes)
        rows = [
            ("reading and lowering the input", self.reading),
            *self.seconds,
            ("checks, dumps, prints", watching),
        ]
        total = self.reading + passes + watching
        lines = ["  seconds   share  what"]
        for name, seconds in rows:
            share = 100 * seconds / total if total else 0.0
            lines.append(f"{seconds:9.4f} {share:6.1f}%  {name}")
        lines.append(f"{total:9.4f} {100:6.1f}%  total")
        return "\n".join(lines)
