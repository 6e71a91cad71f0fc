"""The search: greedy delta debugging over steps that propose smaller candidates, large cuts before small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

Candidate = TypeVar("Candidate")
Step: TypeAlias = Callable[[Candidate], Iterator[Candidate]]
"""All candidates that a kind of change makes of one, those that take most away first."""


@dataclass(slots=True)
class Search(Generic[Candidate]):
    """Keeps a candidate when `fails` holds for it. Deterministic: nothing is tried twice, in the order
    of the steps.

    `key` tells candidates apart; `progress` is called after each trial with the numbers of trials and of kept ones.
    """

    fails: Callable[[Candidate], bool]
    key: Callable[[Candidate], str]
    progress: Callable[[int, int], None]
    tried: int = 0
    kept: int = 0
    _seen: set[str] = field(default_factory=set[str])

    def run(self, start: Candidate, steps: Sequence[Step[Candidate]]) -> Candidate:
        """The smallest candidate found, which no step can shrink further."""
        self._seen.add(self.key(start))
        best, changed = start, True
        while changed:
            changed = False
            for step in steps:
                while (better := self._first(step(best))) is not None:
                    best, changed = better, True
        return best

    def _first(self, candidates: Iterator[Candidate]) -> Candidate | None:
        for candidate in candidates:
            name = self.key(candidate)
            if name in self._seen:
                continue
            self._seen.add(name)
            self.tried += 1
            failed = self.fails(candidate)
            self.kept += failed
            self.progress(self.tried, self.kept)
            if failed:
                return candidate
        return None


def cuts(count: int) -> Iterator[frozenset[int]]:
    """Which of `count` items to remove: runs of all of them, of half of them, and so on down to single ones."""
    length = count
    while length:
        for start in range(0, count, length):
            yield frozenset(range(start, min(start + length, count)))
        length //= 2


def smaller_numbers(number: int, least: int) -> Iterator[int]:
    """Numbers between `least` and below `number`: the least, the half, one less."""
    yield from dict.fromkeys(n for n in (least, number // 2, number - 1) if least <= n < number)
