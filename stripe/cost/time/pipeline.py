"""The time of a loop over tiles with `depth` copies of each of its buffers.

Each tile is a list of stages, each on one resource. A stage waits for its resource, for the stages of its tile that it
depends on, and for the stages of the tile `depth` before that use its buffers; where addresses leave a buffer fewer
copies, for those of the tile before. The first tiles are simulated; such a system settles into a rhythm, after which a
few tiles more take a fixed time more. That rhythm is looked for, not assumed: total times of runs of different lengths
are compared, so that filling and draining come out exactly.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from typing import NamedTuple

_FIRST = 48
_LAST = 3072
_PERIODS = 8
_CLOSE = 1e-9


@dataclass(frozen=True)
class PipelineStage:
    """One step of a tile: its cycles on a resource, the steps of its tile that it waits for, and the steps of the
    tile that had its buffers before (`shares`), or of the tile before, where that is another one (`turns`)."""

    resource: Hashable
    cycles: float
    deps: tuple[int, ...] = ()
    shares: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    each: tuple[float, ...] = ()
    """The cycles in each tile, where they differ."""

    def at(self, tile: int) -> float:
        """Cycles in the tile of this number, 0 first."""
        return self.each[tile] if self.each else self.cycles


class Slice(NamedTuple):
    """The times of one stage of one tile, in cycles from the start of the loop."""

    tile: int
    stage: int
    start: float
    end: float


@dataclass(frozen=True)
class Duration:
    """Cycles from the first stage's start to the last one's end; `exact` unless they follow from the mean rate."""

    cycles: float
    exact: bool = True


def pipeline_cycles(stages: Sequence[PipelineStage], tiles: int, depth: int) -> Duration:
    """The time of `tiles` tiles with `depth` in flight; depth 1 is one tile after the other."""
    return _duration(tuple(stages), tiles, depth)


@lru_cache(maxsize=1024)
def _duration(stages: tuple[PipelineStage, ...], tiles: int, depth: int) -> Duration:
    """`pipeline_cycles`. Answers are kept: a tile that was priced comes back in the program, and so do equal layers."""
    if tiles <= 0 or not stages:
        return Duration(0.0)
    if depth <= 1 or tiles == 1:
        return Duration(sum(_alone(stages, tiles)))
    if any(stage.each for stage in stages):
        return Duration(_simulate(stages, tiles, depth)[-1])
    length = _FIRST
    while length < tiles:
        ends = _simulate(stages, length, depth)
        # extrapolated from runs of about `length` tiles whose lengths differ by whole periods
        for period in range(1, _PERIODS + 1) if _settled(ends) else ():
            start = length + (tiles - length) % period
            times = [_simulate(stages, start + k * period, depth)[-1] for k in range(3)]
            first, second = times[1] - times[0], times[2] - times[1]
            if abs(first - second) <= _CLOSE * max(1.0, times[2]):
                return Duration(times[0] + (tiles - start) // period * first)
        if length >= _LAST:
            break
        length *= 4
    if tiles <= 4 * _LAST:
        return Duration(_simulate(stages, tiles, depth)[-1])
    short, long = (_simulate(stages, n, depth)[-1] for n in (_LAST // 2, _LAST))
    rate = (long - short) / (_LAST - _LAST // 2)
    return Duration(long + rate * (tiles - _LAST), exact=False)


def pipeline_slices(stages: Sequence[PipelineStage], tiles: int, depth: int) -> tuple[Slice, ...]:
    """Every stage of every tile, in the order in which they start."""
    return _slices(tuple(stages), tiles, depth)


@lru_cache(maxsize=32)
def _slices(stages: tuple[PipelineStage, ...], tiles: int, depth: int) -> tuple[Slice, ...]:
    """`pipeline_slices`. Answers are kept for equal layers."""
    found: list[Slice] = []
    if depth > 1:
        _simulate(stages, tiles, depth, found)
        return tuple(found)
    now = 0.0
    for tile in range(tiles):
        one: list[Slice] = []
        length = _simulate(_only(stages, tile), 1, 1, one)[-1]
        found += [Slice(tile, s.stage, now + s.start, now + s.end) for s in one]
        now += length
    return tuple(found)


def _alone(stages: Sequence[PipelineStage], tiles: int) -> list[float]:
    """The time of each tile when it has all units for itself."""
    if not any(stage.each for stage in stages):
        return [_simulate(stages, 1, 1)[-1]] * tiles
    known: dict[tuple[float, ...], float] = {}
    found: list[float] = []
    for tile in range(tiles):
        key = tuple(stage.at(tile) for stage in stages)
        if key not in known:
            known[key] = _simulate(_only(stages, tile), 1, 1)[-1]
        found.append(known[key])
    return found


def _only(stages: Sequence[PipelineStage], tile: int) -> list[PipelineStage]:
    """The stages of one tile."""
    return [
        PipelineStage(stage.resource, stage.at(tile), stage.deps, stage.shares, stage.turns)
        for stage in stages
    ]


def _settled(ends: Sequence[float]) -> bool:
    """Whether late tiles end at a steady pace over some period."""
    middle = len(ends) // 2
    return any(
        all(
            abs((ends[middle - k * p] - ends[middle - (k + 1) * p]) - (ends[middle] - ends[middle - p]))
            <= _CLOSE * max(1.0, ends[-1])
            for k in range(2)
        )
        for p in range(1, _PERIODS + 1)
    )


def _simulate(
    stages: Sequence[PipelineStage], tiles: int, depth: int, slices: list[Slice] | None = None
) -> list[float]:
    """The time at which each tile has ended. A free resource takes the stage that was ready first."""
    count = len(stages)
    numbers = {resource: number for number, resource in enumerate({s.resource: None for s in stages})}
    resource_of = [numbers[stage.resource] for stage in stages]
    # the users of each stage (tiles ahead, stage), and how many stages each stage of each tile waits for
    users: list[list[tuple[int, int]]] = [[] for _ in stages]
    for number, stage in enumerate(stages):
        for ahead, others in ((0, stage.deps), (1, stage.turns), (depth, stage.shares)):
            for other in others:
                users[other].append((ahead, number))
    cycles = [stage.each or (stage.cycles,) * tiles for stage in stages]
    first = [len(stage.deps) for stage in stages]
    second = [len(stage.deps) + len(stage.turns) for stage in stages]
    later = [len(stage.deps) + len(stage.turns) + len(stage.shares) for stage in stages]
    waits = [*first, *second * (min(depth, tiles) - 1), *later * (tiles - depth)]
    # by resource, the stages that wait for none: when they became so, tile, stage
    ready: list[list[tuple[float, int, int]]] = [[] for _ in numbers]
    for place, waiting in enumerate(waits):
        if not waiting:
            tile, number = divmod(place, count)
            ready[resource_of[number]].append((0.0, tile, number))
    idle = [True] * len(numbers)
    left = [count] * tiles
    ends = [0.0] * tiles
    events: list[tuple[float, int, int]] = []
    touched = set(range(len(numbers)))
    now = 0.0
    while True:
        for resource in touched:
            if idle[resource] and ready[resource]:
                _, tile, number = heappop(ready[resource])
                idle[resource] = False
                end = now + cycles[number][tile]
                heappush(events, (end, tile, number))
                if slices is not None:
                    slices.append(Slice(tile, number, now, end))
        if not events:
            return ends
        now = events[0][0]
        touched = set[int]()
        while events and events[0][0] == now:
            _, tile, number = heappop(events)
            resource = resource_of[number]
            idle[resource] = True
            touched.add(resource)
            left[tile] -= 1
            if left[tile] == 0:
                ends[tile] = now
            for ahead, user in users[number]:
                if tile + ahead < tiles:
                    place = (tile + ahead) * count + user
                    waits[place] -= 1
                    if not waits[place]:
                        heappush(ready[resource_of[user]], (now, tile + ahead, user))
                        touched.add(resource_of[user])
