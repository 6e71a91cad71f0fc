"""When buffers are alive: which of them may share memory, and how much is alive at one time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

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

    def overlaps(self, other: Buffer) -> bool:
        """Whether the two may be alive at the same time."""
        if self.always or other.always:
            return True
        depth = _common_depth(self.home, other.home)
        first, second = self._spans[depth], other._spans[depth]
        return not (first[0] & ~second[1] == 0 or second[0] & ~first[1] == 0)

    @cached_property
    def _spans(self) -> tuple[tuple[int, int], ...]:
        """At each depth the statements that use the buffer, and those for which all of them wait."""
        return tuple(
            (_mask(uses), order.before_all(uses)) for uses, order in zip(self.uses, self.orders, strict=True)
        )


def overlapping(buffers: Sequence[Buffer]) -> list[list[int]]:
    """For each buffer the numbers of the others that may be alive at the same time, in order."""
    found: list[list[int]] = [[] for _ in buffers]
    for (first, mine), (second, theirs) in combinations(enumerate(buffers), 2):
        if mine.overlaps(theirs):
            found[first].append(second)
            found[second].append(first)
    return found


def _common_depth(first: Path, second: Path) -> int:
    """The depth of the innermost block that holds both."""
    depth = 0
    while depth + 1 < min(len(first), len(second)) and first[depth + 1] == second[depth + 1]:
        depth += 1
    return depth


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
    points = sorted({_span(buffer)[0] for buffer in buffers})
    spans = [(_span(buffer), buffer) for buffer in buffers]
    peak = 0
    for point in points:
        peak = max(peak, sum(b.ref.bytes for (start, end), b in spans if start <= point <= end or b.always))
    return peak


def _span(buffer: Buffer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """First and last program point at which the buffer is alive; the deepest statements end their own points last."""
    prefix = tuple(min(numbers, default=0) for numbers in buffer.uses[:-1])
    last = buffer.uses[-1]
    return (*prefix, min(last, default=0)), (*prefix, max(last, default=0), _INFINITY)


_INFINITY = 1 << 60
