"""When buffers are alive: which of them may share memory, and how much is alive at one time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stripe.ir import Block, Path, Refinement, uses_of


@dataclass(frozen=True)
class Order:
    """Which statements of a block run before which: by dependences in `main`, one after the other elsewhere."""

    before: tuple[frozenset[int], ...]

    @staticmethod
    def of(block: Block) -> Order:
        before: list[frozenset[int]] = []
        for number, statement in enumerate(block.statements):
            if "main" in block.tags:
                reach = frozenset(statement.deps).union(*(before[dep] for dep in statement.deps))
            else:
                reach = frozenset(range(number))
            before.append(reach)
        return Order(tuple(before))

    def precede(self, first: frozenset[int], second: frozenset[int]) -> bool:
        """Whether each statement of `second` waits for each of `first`."""
        return all(first <= self.before[number] for number in second)


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

    @property
    def always(self) -> bool:
        return "user" in self.ref.tags or "const" in self.ref.tags

    def overlaps(self, other: Buffer) -> bool:
        """Whether the two may be alive at the same time."""
        if self.always or other.always:
            return True
        depth = _common_depth(self.home, other.home)
        mine, theirs, order = self.uses[depth], other.uses[depth], self.orders[depth]
        return not (order.precede(mine, theirs) or order.precede(theirs, mine))


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
    for ref in block.allocs:
        yield _sunk(block, path, ref, uses, orders)
    for number, statement in enumerate(block.statements):
        if isinstance(statement, Block):
            yield from _buffers(statement, (*path, number), (*uses, frozenset({number})), orders)


def _sunk(
    block: Block, path: Path, ref: Refinement, uses: tuple[frozenset[int], ...], orders: tuple[Order, ...]
) -> Buffer:
    """The buffer with its uses; from the entry down to where more than one statement uses it."""
    own = frozenset(uses_of(block, ref.name))
    found = Buffer(path, path, ref, (*uses, own), orders)
    if found.always or len(path) > 1 or len(own) != 1:
        return found
    (number,) = own
    child = block.statements[number]
    views = (
        [view for view in child.refinements if view.source == ref.name] if isinstance(child, Block) else []
    )
    if not isinstance(child, Block) or not views:
        return found
    inner = frozenset(n for view in views for n in uses_of(child, view.name))
    return Buffer(path, (*path, number), ref, (*uses, own, inner), (*orders, Order.of(child)))


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
