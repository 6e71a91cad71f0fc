"""The event simulator: tasks on units, which share buses.

A task waits for those that it depends on and for its units, then for its latency; then it works. While it works it
needs a part of what each bus, transfer unit and memory port can do. Where all the working tasks together need more than
that, they slow down evenly (max-min fairness): buses interleave bursts of all that use them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_EPSILON = 1e-9


@dataclass(frozen=True)
class Task:
    """A unit of work. `pools` are sets of units, of each of which it takes so many; `demand` has the cycles for which
    it needs all of a shared resource, of the `cycles` that it works alone; `own` is the same for each of its units,
    which others may need too without occupying them."""

    name: str
    latency: float
    cycles: float
    pools: tuple[tuple[tuple[str, ...], int], ...]
    demand: Mapping[str, float]
    deps: tuple[int, ...]
    own: float = 0.0


@dataclass
class Run:
    """The times of a task, and the causes of its waiting."""

    ready: float = 0.0
    last_dep: int | None = None
    """The task that it waited for longest."""
    start: float = 0.0
    end: float = 0.0
    units: tuple[str, ...] = ()
    slowed: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Cycles lost by resource, because others used it too."""


@dataclass(eq=False)
class _Working:
    number: int
    latency: float
    left: float
    shares: Mapping[str, float]
    speed: float = 1.0
    bottleneck: str = ""


def simulate(tasks: Sequence[Task], channels: Mapping[str, int]) -> list[Run]:
    """The run of each task. `channels` says how many tasks a unit takes at once; a unit that is not named takes one.

    Tasks that are ready start in the order in which they became so, and then in program order.
    """
    runs = [Run() for _ in tasks]
    users: list[list[int]] = [[] for _ in tasks]
    waits = [0] * len(tasks)
    for number, task in enumerate(tasks):
        for dep in set(task.deps):
            users[dep].append(number)
            waits[number] += 1
    free: dict[str, int] = {u: channels.get(u, 1) for t in tasks for pool, _ in t.pools for u in pool}
    ready = [number for number, count in enumerate(waits) if count == 0]
    working: list[_Working] = []
    now = 0.0
    while ready or working:
        started = _start(tasks, runs, ready, free, now)
        if started:
            working += started
            _set_speeds(working)
        step = min(w.latency if w.latency > _EPSILON else w.left / w.speed for w in working)
        now += step
        done = _advance(working, runs, step)
        for finished in done:
            working.remove(finished)
            run = runs[finished.number]
            run.end = now
            for unit in run.units:
                free[unit] += 1
            for user in users[finished.number]:
                waits[user] -= 1
                if waits[user] == 0:
                    runs[user].ready, runs[user].last_dep = now, finished.number
                    ready.append(user)
        ready.sort(key=lambda n: (runs[n].ready, n))
        _set_speeds(working)
    return runs


def _start(
    tasks: Sequence[Task], runs: list[Run], ready: list[int], free: dict[str, int], now: float
) -> list[_Working]:
    started: list[_Working] = []
    for number in tuple(ready):
        task = tasks[number]
        pools = [[unit for unit in pool if free[unit] > 0][:count] for pool, count in task.pools]
        if any(len(found) < count for found, (_, count) in zip(pools, task.pools, strict=True)):
            continue
        units = tuple(unit for found in pools for unit in found)
        ready.remove(number)
        for unit in units:
            free[unit] -= 1
        runs[number].start, runs[number].units = now, units
        needs = dict(task.demand)
        for unit in units if task.own else ():
            needs[unit] = needs.get(unit, 0.0) + task.own
        shares = {r: need / task.cycles for r, need in needs.items() if need > 0} if task.cycles else {}
        started.append(_Working(number, task.latency, task.cycles, shares))
    return started


def _advance(working: Sequence[_Working], runs: Sequence[Run], step: float) -> list[_Working]:
    """Lets all tasks work for `step` cycles; gives the tasks that are done."""
    done: list[_Working] = []
    for work in working:
        if work.latency > _EPSILON:
            work.latency -= step
            if work.latency <= _EPSILON and work.left <= _EPSILON:
                done.append(work)
            continue
        work.left -= step * work.speed
        if work.speed < 1.0:
            runs[work.number].slowed[work.bottleneck] += step * (1.0 - work.speed)
        if work.left <= _EPSILON * max(1.0, step):
            done.append(work)
    return done


def _set_speeds(working: Sequence[_Working]) -> None:
    """The fastest even pace at which no resource is used more than it can bear."""
    moving = [work for work in working if work.latency <= _EPSILON]
    for work in moving:
        work.speed, work.bottleneck = 1.0, ""
    total: dict[str, float] = defaultdict(float)
    for work in moving:
        for resource, share in work.shares.items():
            total[resource] += share
    crowded = {resource for resource, share in total.items() if share > 1.0 + _EPSILON}
    if not crowded:
        return
    left = dict.fromkeys(crowded, 1.0)
    pending = [work for work in moving if crowded & work.shares.keys()]
    while pending:
        need: dict[str, float] = defaultdict(float)
        for work in pending:
            for resource in crowded & work.shares.keys():
                need[resource] += work.shares[resource]
        pace, tightest = min((left[resource] / share, resource) for resource, share in need.items())
        if pace >= 1.0:
            return
        frozen = [work for work in pending if tightest in work.shares]
        for work in frozen:
            work.speed, work.bottleneck = max(pace, _EPSILON), tightest
            for resource in crowded & work.shares.keys():
                left[resource] = max(0.0, left[resource] - pace * work.shares[resource])
        pending = [work for work in pending if tightest not in work.shares]
