"""Live ranges of buffers: the statements in which each is alive, which of them interfere, and the peak of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stripe.ir.block import Block
from stripe.ir.refinement import Refinement
from stripe.ir.uses import uses_by_name
from stripe.ir.walk import Path, walk


@dataclass(frozen=True)
class LiveRange:
    """An allocation with the statements of its own block and of the blocks around it in which it is alive.

    `home` is the block in which it lives and dies: the block that allocates it, or a `main` of one point for an
    allocation of the entry that `main` alone uses. `uses[d]` and `waits[d]` belong to the block at depth d of `home`:
    the statements that use the buffer (further out the one that contains the home), and the masks of `waits_of`.
    """

    path: Path
    home: Path
    ref: Refinement
    uses: tuple[frozenset[int], ...]
    waits: tuple[tuple[int, ...], ...]

    @cached_property
    def always(self) -> bool:
        """Whether the buffer outlives all statements: a tensor of the user, a constant."""
        return self.ref.is_kept

    @cached_property
    def bytes(self) -> int:
        """Bytes that it takes in a unit of its memory: of all copies, and of one bank where it has banks."""
        return self.ref.reserved_bytes


def waits_of(block: Block) -> tuple[int, ...]:
    """For each statement the statements that run before it: by dependences in `main`, in order elsewhere.

    Sets of statements are masks, with bit n for statement n: long programs compare very many of them.
    """
    before: list[int] = []
    for number, statement in enumerate(block.statements):
        reach = (1 << number) - 1
        if block.is_main:
            reach = _mask(statement.deps)
            for dep in statement.deps:
                reach |= before[dep]
        before.append(reach)
    return tuple(before)


def live_ranges(entry: Block) -> list[LiveRange]:
    """The live ranges of all allocations of a program, outer before inner."""
    blocks = dict(walk(entry))
    used = {path: uses_by_name(block) for path, block in blocks.items()}
    waits = {path: waits_of(block) for path, block in blocks.items()}
    found: list[LiveRange] = []
    for path, block in blocks.items():
        around = tuple(frozenset({number}) for number in path[1:])
        for ref in block.allocs:
            own = frozenset(used[path].get(ref.name, ()))
            home, uses, inside = path, (*around, own), (*path, *own)
            once = inside in blocks and blocks[inside].points == 1
            if len(path) == 1 and len(own) == 1 and once and not ref.is_kept:
                # An allocation of the entry that one block alone uses, once, lives and dies in that block.
                views = [view.name for view in blocks[inside].refinements if view.source == ref.name]
                home = inside
                uses = (*uses, frozenset(n for view in views for n in used[inside].get(view, ())))
            orders = tuple(waits[home[:depth]] for depth in range(1, len(home) + 1))
            found.append(LiveRange(path, home, ref, uses, orders))
    return found


@dataclass(frozen=True)
class _Cohort:
    """Buffers that are alive in the same statements of a block (a mask), which all wait for those in `after`."""

    members: tuple[int, ...]
    uses: int
    after: int

    @property
    def first(self) -> int:
        return (self.uses & -self.uses).bit_length() - 1

    @property
    def last(self) -> int:
        return self.uses.bit_length() - 1


def interference(ranges: Sequence[LiveRange]) -> list[list[int]]:
    """For each buffer the numbers of the others that may be alive at the same time, in order; buffers that are always
    alive have no list and are in none.

    Two buffers meet in the innermost block that holds the homes of both. There they do not interfere when all
    statements of one wait for all statements of the other.
    """
    found: list[set[int]] = [set() for _ in ranges]
    levels: dict[Path, list[int]] = {}
    for number, live in enumerate(ranges):
        if not live.always:
            for depth in range(1, len(live.home) + 1):
                levels.setdefault(live.home[:depth], []).append(number)
    for path, members in levels.items():
        for first, second in _meeting(_cohorts(ranges, members, len(path))):
            for one in first.members:
                found[one].update(second.members)
            for other in second.members:
                found[other].update(first.members)
    return [sorted(numbers) for numbers in found]


def _cohorts(ranges: Sequence[LiveRange], members: Sequence[int], depth: int) -> list[_Cohort]:
    """The cohorts in the block at a depth. Buffers of one block inside, which have met in there, share one."""
    together: dict[tuple[int, ...], list[int]] = {}
    for number in members:
        home = ranges[number].home
        together.setdefault(home[depth : depth + 1] or (-1, number), []).append(number)
    cohorts: list[_Cohort] = []
    for numbers in together.values():
        uses, waits = ranges[numbers[0]].uses[depth - 1], ranges[numbers[0]].waits[depth - 1]
        if uses:
            common = -1  # the statements for which all of them wait
            for number in uses:
                common &= waits[number]
            cohorts.append(_Cohort(tuple(numbers), _mask(uses), common))
    return cohorts


def _meeting(cohorts: Sequence[_Cohort]) -> Iterator[tuple[_Cohort, _Cohort]]:
    """The pairs of which not all statements of one wait for all of the other: long chains have few of them, so each
    is found without a look at the others.

    Statements wait for earlier ones only. Hence of two cohorts the one that begins first meets the other when it is
    still in use at the other's beginning, or uses an earlier statement that the other does not wait for.
    """
    users: dict[int, list[_Cohort]] = {}
    alive: list[_Cohort] = []
    for cohort in sorted(cohorts, key=lambda cohort: (cohort.first, cohort.members)):
        alive = [other for other in alive if other.last >= cohort.first]
        met = {other.members: other for other in alive}
        for statement in _numbers(((1 << cohort.first) - 1) & ~cohort.after):
            met.update((other.members, other) for other in users.get(statement, ()))
        for other in met.values():
            yield other, cohort
        alive.append(cohort)
        for statement in _numbers(cohort.uses):
            users.setdefault(statement, []).append(cohort)


def peak_bytes(ranges: Sequence[LiveRange]) -> int:
    """The most bytes alive at one statement, in program order: no placement takes less."""
    always = sum(live.bytes for live in ranges if live.always)
    changes: list[tuple[tuple[int, ...], int]] = []
    for live in ranges:
        if not live.always:
            # From its first statement to its last; the deepest statements end their own points last.
            prefix = tuple(min(numbers, default=0) for numbers in live.uses[:-1])
            last = live.uses[-1]
            changes.append(((*prefix, min(last, default=0), -1), live.bytes))
            changes.append(((*prefix, max(last, default=0), _INFINITY), -live.bytes))
    peak, alive = 0, 0
    for _, change in sorted(changes):
        alive += change
        peak = max(peak, alive)
    return always + peak


_INFINITY = 1 << 60


def _mask(statements: Iterable[int]) -> int:
    mask = 0
    for number in statements:
        mask |= 1 << number
    return mask


def _numbers(mask: int) -> Iterator[int]:
    """The statements in a mask, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
