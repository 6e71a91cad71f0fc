"""The search: greedy delta debugging over steps that propose smaller candidates, large cuts before small ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

Item = TypeVar("Item")
Candidate = TypeVar("Candidate")
Step: TypeAlias = Callable[[Candidate], Iterator[Candidate]]
"""All candidates that a kind of change makes of a candidate, the smallest first."""


class Trial(Protocol):
    """A test that runs on a candidate."""

    def fails(self) -> bool:
        """Waits for the result: whether the candidate still fails."""
        ...

    def cancel(self) -> None:
        """Ends the test without its result."""
        ...


@dataclass(slots=True)
class Search(Generic[Candidate]):
    """Keeps a candidate when its trial fails. Deterministic: no candidate is judged twice, and they are judged in the
    order of the steps, however many trials (`jobs`) run at a time.

    `key` identifies a candidate; `progress` gets the numbers of candidates judged and kept after each, and `keep` the
    smallest so far whenever there is a smaller one.
    """

    start: Callable[[Candidate], Trial]
    key: Callable[[Candidate], str]
    progress: Callable[[int, int], None]
    keep: Callable[[Candidate], None]
    jobs: int = 1
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
                    self.kept += 1
                    self.keep(best)
                    self.progress(self.tried, self.kept)
        return best

    def _first(self, candidates: Iterator[Candidate]) -> Candidate | None:
        """The first candidate that fails. Trials of later candidates are cancelled, as if they had never begun."""
        running: deque[tuple[str, Candidate, Trial]] = deque()
        try:
            while True:
                while (
                    len(running) < self.jobs and (candidate := self._unseen(candidates, running)) is not None
                ):
                    running.append((self.key(candidate), candidate, self.start(candidate)))
                if not running:
                    return None
                name, candidate, trial = running[0]
                failed = trial.fails()
                running.popleft()
                self._seen.add(name)
                self.tried += 1
                if failed:
                    return candidate
                self.progress(self.tried, self.kept)
        finally:
            for _, _, trial in running:
                trial.cancel()

    def _unseen(
        self, candidates: Iterator[Candidate], running: deque[tuple[str, Candidate, Trial]]
    ) -> Candidate | None:
        """The next candidate that was not judged and is not running; None at the end."""
        names = {name for name, _, _ in running}
        fresh = (candidate for candidate in candidates if self.key(candidate) not in self._seen | names)
        return next(fresh, None)


def cuts(count: int) -> Iterator[frozenset[int]]:
    """Sets of items to remove from `count`: runs of all of them, of half of them, and so on down to single ones."""
    length = count
    while length:
        for start in range(0, count, length):
            yield frozenset(range(start, min(start + length, count)))
        length //= 2


def fewer(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """The items without the runs of them that `cuts` names."""
    for cut in cuts(len(items)):
        yield tuple(item for number, item in enumerate(items) if number not in cut)


def one_changed(
    items: Sequence[Item], changes: Callable[[Item], Iterable[Item]]
) -> Iterator[tuple[Item, ...]]:
    """The items with one of them changed, in each way that `changes` gives."""
    for place, item in enumerate(items):
        for changed in changes(item):
            yield (*items[:place], changed, *items[place + 1 :])


def smaller_numbers(number: int, least: int) -> Iterator[int]:
    """Numbers between `least` and below `number`: the least, the half, one less."""
    yield from dict.fromkeys(n for n in (least, number // 2, number - 1) if least <= n < number)
