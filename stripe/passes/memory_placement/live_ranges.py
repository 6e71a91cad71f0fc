"""When buffers are alive: which of them may share memory, and how much is alive at one time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stripe.ir import Block, Path, Refinement, uses_by_name


@dataclass(frozen=True)
class Order:
    """Which statements of a block run before which: by dependences in `main`, one after the other elsewhere.

    Sets of statements are numbers with bit n for statement n: long programs compare very many of them.
    """

    before: tuple[int, ...]

    @staticmethod
    def of(block: Block) -> Order:
        before: list[int] = []
        for number, statement in enumerate(block.statements):
            if "main" in block.tags:
                reach = _mask(statement.deps)
                for dep in statement.deps:
                    reach |= before[dep]
            else:
                reach = (1 << number) - 1
            before.append(reach)
        return Order(tuple(before))

    def before_all(self, statements: Iterable[int]) -> int:
        """The statements for which each of `statements` waits."""
        common = -1
        for number in statements:
            common &= self.before[number]
        return common


def _mask(statements: Iterable[int]) -> int:
    mask = 0
    for number in statements:
        mask |= 1 << number
    return mask


@dataclass(frozen=True)
class Buffer:
    """An allocation with the statements of its own block and of those around it in which it is alive.

    `home` is the block in which it lives and dies: the one that allocates it, or `main` for what the entry allocates
    and `main` alone uses. `uses[d]` belongs to the block at depth d of `home`: all statements that use the buffer in
    its home, the one that contains the home further out. `always` says that it outlives all of
    them: what the user gives and gets.
    """

    path: Path
    home: Path
    ref: Refinement
    uses: tuple[frozenset[int], ...]
    orders: tuple[Order, ...]

    @cached_property
    def always(self) -> bool:
        return "user" in self.ref.tags or "const" in self.ref.tags


@dataclass(frozen=True)
class _Span:
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


def overlapping(buffers: Sequence[Buffer]) -> list[list[int]]:
    """For each buffer the numbers of the others that may be alive at the same time, in order; those that always are
    have no list and stand in none.

    Two buffers meet in the innermost block that holds the homes of both. There they do not overlap when all statements
    of one wait for all statements of the other.
    """
    found: list[set[int]] = [set() for _ in buffers]
    levels: dict[Path, list[int]] = {}
    for number, buffer in enumerate(buffers):
        if not buffer.always:
            for depth in range(1, len(buffer.home) + 1):
                levels.setdefault(buffer.home[:depth], []).append(number)
    for path, members in levels.items():
        for first, second in _meeting(_spans(buffers, members, len(path))):
            for one in first.members:
                found[one].update(second.members)
            for other in second.members:
                found[other].update(first.members)
    return [sorted(numbers) for numbers in found]


def _spans(buffers: Sequence[Buffer], members: Sequence[int], depth: int) -> list[_Span]:
    """The spans of buffers in the block at a depth. Those of one block inside, which have met in there, share one."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number in members:
        home = buffers[number].home
        groups.setdefault(home[depth : depth + 1] or (-1, number), []).append(number)
    spans: list[_Span] = []
    for numbers in groups.values():
        uses, order = buffers[numbers[0]].uses[depth - 1], buffers[numbers[0]].orders[depth - 1]
        if uses:
            spans.append(_Span(tuple(numbers), _mask(uses), order.before_all(uses)))
    return spans


def _meeting(spans: Sequence[_Span]) -> Iterator[tuple[_Span, _Span]]:
    """The pairs of which not all statements of one wait for all of the other: long chains have few of them, so each
    is found without a look at the others.

    Statements wait for earlier ones only. Hence of two spans the one that begins first meets the other when it is
    still in use at the other's beginning, or uses an earlier statement that the other does not wait for.
    """
    users: dict[int, list[_Span]] = {}
    alive: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.first, span.members)):
        alive = [other for other in alive if other.last >= span.first]
        met = {other.members: other for other in alive}
        for statement in _numbers(((1 << span.first) - 1) & ~span.after):
            met.update((other.members, other) for other in users.get(statement, ()))
        for other in met.values():
            yield other, span
        alive.append(span)
        for statement in _numbers(span.uses):
            users.setdefault(statement, []).append(span)


def _numbers(mask: int) -> Iterator[int]:
    """The statements in a mask, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def find_buffers(entry: Block) -> list[Buffer]:
    """All allocations of the program, outer before inner.

    One that the entry holds and that `main` alone uses counts as one of main's, since that is where it lives and dies.
    """
    return list(_buffers(entry, (0,), (), ()))


def _buffers(
    block: Block, path: Path, uses: tuple[frozenset[int], ...], orders: tuple[Order, ...]
) -> Iterator[Buffer]:
    orders = (*orders, Order.of(block))
    used = uses_by_name(block)
    inside = _Inside(block, {})
    for ref in block.allocs:
        own = frozenset(used.get(ref.name, ()))
        found = Buffer(path, path, ref, (*uses, own), orders)
        yield found if found.always or len(path) > 1 or len(own) != 1 else inside.sunk(found)
    for number, statement in enumerate(block.statements):
        if isinstance(statement, Block):
            yield from _buffers(statement, (*path, number), (*uses, frozenset({number})), orders)


@dataclass(frozen=True)
class _Inside:
    """The statements of the entry, looked into once each: who uses what in there, and in which order they run."""

    entry: Block
    seen: dict[int, tuple[dict[str, tuple[int, ...]], Order]]

    def sunk(self, found: Buffer) -> Buffer:
        """The buffer of the entry as one of the block that alone uses it, where several statements in there use it."""
        (number,) = found.uses[-1]
        child = self.entry.statements[number]
        if not isinstance(child, Block):
            return found
        views = [view.name for view in child.refinements if view.source == found.ref.name]
        if number not in self.seen:
            self.seen[number] = uses_by_name(child), Order.of(child)
        used, order = self.seen[number]
        inner = frozenset(n for view in views for n in used.get(view, ()))
        home = (*found.path, number)
        return Buffer(found.path, home, found.ref, (*found.uses, inner), (*found.orders, order))


def peak_bytes(buffers: Sequence[Buffer]) -> int:
    """The most bytes alive at one statement, in program order: no placement takes less."""
    always = sum(buffer.ref.bytes for buffer in buffers if buffer.always)
    spans = [(*_span(buffer), buffer.ref.bytes) for buffer in buffers if not buffer.always]
    starts = sorted((start, size) for start, _, size in spans)
    ends = sorted((end, size) for _, end, size in spans)
    peak, alive, ended = 0, 0, 0
    for start, size in starts:
        alive += size
        while ends[ended][0] < start:
            alive -= ends[ended][1]
            ended += 1
        peak = max(peak, alive)
    return always + peak


def _span(buffer: Buffer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """First and last program point at which the buffer is alive; the deepest statements end their own points last."""
    prefix = tuple(min(numbers, default=0) for numbers in buffer.uses[:-1])
    last = buffer.uses[-1]
    return (*prefix, min(last, default=0)), (*prefix, max(last, default=0), _INFINITY)


_INFINITY = 1 << 60
