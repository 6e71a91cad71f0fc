"""The line of the statements of a block, in which producers and consumers are brought together, and the queue of
these pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain, islice, product

from stripe.ir import (
    Block,
    Edit,
    Refinement,
    Statement,
    indices_of,
    reads_of,
    scalar_defined,
    scalars_used,
    writes_of,
)


@dataclass(slots=True)
class Contents:
    """The places of the refinements of a block by name and by source, its scalars, and the indices that move its
    outputs; kept up while the block grows by fusion."""

    places: dict[str, int] = field(default_factory=dict[str, int])
    by_source: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    scalars: dict[str, None] = field(default_factory=dict[str, None])
    moving: set[str] = field(default_factory=set[str])
    statements: int = 0

    @staticmethod
    def of(block: Block) -> Contents:
        contents = Contents()
        contents.grow(block)
        return contents

    def grow(self, block: Block, changed: Iterable[str] = ()) -> None:
        """Becomes the contents of `block`, which begins with the refinements and statements known; refinements with the
        names `changed` differ in more than name and source."""
        new = range(len(self.places), len(block.refinements))
        for place in new:
            ref = block.refinements[place]
            self.places[ref.name] = place
            self.by_source.setdefault(ref.source, []).append(place)
        for ref in map(block.refinements.__getitem__, (*new, *map(self.places.__getitem__, changed))):
            self.moving.update(indices_of(ref.access) if ref.dir.writes else ())
        for statement in islice(block.statements, self.statements, None):
            if (name := scalar_defined(statement)) is not None:
                self.scalars[name] = None
        self.statements = len(block.statements)

    def views(self, refs: Sequence[Refinement], sources: Iterable[str]) -> list[Refinement]:
        """The views of the `sources` among `refs`, the refinements of the block, in their order."""
        found = {place for source in sources for place in self.by_source.get(source, ())}
        return [refs[place] for place in sorted(found)]


@dataclass(frozen=True, slots=True)
class Member:
    """A statement of a line: the numbers of the old statements in it, their dependences, and the buffers and scalars
    read and written."""

    statement: Statement
    parts: tuple[int, ...]
    deps: frozenset[int]
    reads: frozenset[str]
    writes: frozenset[str]

    def precedes(self, later: Member) -> bool:
        """Whether the statement `later` has to stay behind it."""
        conflict = self.writes & (later.reads | later.writes) or self.reads & later.writes
        return bool(conflict) or not later.deps.isdisjoint(self.parts)


class Line:
    """The statements of a block in slots; a slot becomes empty where statements were fused.

    A buffer is known by its allocation, which `allocations` has for each name, so that its views conflict.
    """

    def __init__(self, block: Block, allocations: Mapping[str, str]) -> None:
        self.block = block
        self.buffers = {ref.name: ref for ref in block.refinements}
        self._allocations = allocations
        self._slots: list[Member | None] = [None] * len(block.statements)
        self._users: dict[str, set[int]] = {}
        self._contents: dict[int, Contents] = {}
        names = Counter(allocations[name] for name in self.buffers)
        self._aliased = {name for name in self.buffers if names[allocations[name]] > 1}
        for number, statement in enumerate(block.statements):
            used, defined = scalars_used(statement), scalar_defined(statement)
            reads = {allocations[name] for name in reads_of(statement)} | {f"${name}" for name in used}
            writes = {allocations[name] for name in writes_of(statement)}
            writes |= {f"${defined}"} if defined is not None else set()
            deps = frozenset(statement.deps)
            self._put(number, Member(statement, (number,), deps, frozenset(reads), frozenset(writes)))

    def _put(self, slot: int, member: Member | None) -> None:
        """Fills or empties a slot."""
        old = self._slots[slot]
        for key in old.reads | old.writes if old is not None else ():
            self._users[key].discard(slot)
        self._slots[slot] = member
        for key in member.reads | member.writes if member is not None else ():
            self._users.setdefault(key, set()).add(slot)

    def __getitem__(self, slot: int) -> Member:
        member = self._slots[slot]
        assert member is not None
        return member

    def contents(self, slot: int) -> Contents:
        """The contents of the block at `slot`."""
        block = self.block_at(slot)
        assert block is not None
        if slot not in self._contents:
            self._contents[slot] = Contents.of(block)
        return self._contents[slot]

    def aliases(self, a: Block, b: Block) -> tuple[str, str] | None:
        """The different names of a buffer that views of `a` and `b` have, where either view writes."""
        theirs = [ref for ref in b.refinements if ref.source in self._aliased]
        for mine, other in product([ref for ref in a.refinements if ref.source] if theirs else [], theirs):
            written = mine.source != other.source and (mine.dir.writes or other.dir.writes)
            if written and self._allocations[mine.source] == self._allocations[other.source]:
                return mine.source, other.source
        return None

    def block_at(self, slot: int) -> Block | None:
        member = self._slots[slot]
        return member.statement if member is not None and isinstance(member.statement, Block) else None

    def name_at(self, slot: int) -> str:
        block = self.block_at(slot)
        return block.name if block is not None else f"statement {slot}"

    def before(self, slot: int) -> int | None:
        """The last slot before `slot` that is not empty."""
        return next((n for n in range(slot - 1, -1, -1) if self._slots[n] is not None), None)

    def users(self, name: str) -> set[int]:
        """The slots of the statements that use the buffer `name` by any of its names."""
        return self._users.get(self._allocations[name], set())

    def readers_after(self, slot: int) -> list[int]:
        """The slots after `slot` that read a buffer that it writes."""
        writes = self[slot].writes
        near = {user for key in writes for user in self._users.get(key, ()) if user > slot}
        return sorted(user for user in near if self[user].reads & writes)

    def writers_before(self, slot: int) -> list[int]:
        """The slots before `slot` that write a buffer that it reads."""
        reads = self[slot].reads
        near = {user for key in reads for user in self._users.get(key, ()) if user < slot}
        return sorted(user for user in near if self[user].writes & reads)

    def between(self, slots: Sequence[int]) -> tuple[list[int], list[int]] | int:
        """The slots between the first and the last of `slots` in two lists, slots that can run before all of these and
        slots that have to run behind them; or the slot of a statement that has to run between them."""
        before: list[int] = []
        after: list[int] = []
        reads, writes, parts = set[str](), set[str](), set[int]()

        def follow(member: Member) -> None:
            reads.update(member.reads)
            writes.update(member.writes)
            parts.update(member.parts)

        def follows(member: Member) -> bool:
            free = writes.isdisjoint(member.reads) and writes.isdisjoint(member.writes)
            return not (free and reads.isdisjoint(member.writes) and parts.isdisjoint(member.deps))

        for slot in slots[:-1]:
            follow(self[slot])
        for slot in range(slots[0] + 1, slots[-1]):
            member = self._slots[slot]
            if member is None or slot in slots:
                continue
            if follows(member):
                after.append(slot)
                follow(member)
            else:
                before.append(slot)
        last = self[slots[-1]]
        blocker = next((slot for slot in after if self[slot].precedes(last)), None)
        return (before, after) if blocker is None else blocker

    def join(self, slots: Sequence[int], fused: Block, changed: Sequence[str] | None = None) -> None:
        """Puts `fused` in the place of the statements at `slots`; statements between move before or behind it. Where it
        begins with the block at the first slot, `changed` names the views of this block that differ."""
        order = self.between(slots)
        assert not isinstance(order, int)
        contents = self.contents(slots[0]) if changed is not None else None
        made = self._joined(slots, fused)
        moved = [*(self[slot] for slot in order[0]), made, *(self[slot] for slot in order[1])]
        # The slots that become free are the first of the stretch.
        for slot in range(slots[0], slots[-1] + 1):
            self._put(slot, None)
            self._contents.pop(slot, None)
        for slot, member in zip(range(slots[-1] + 1 - len(moved), slots[-1] + 1), moved, strict=True):
            self._put(slot, member)
            if member is made and contents is not None and changed is not None:
                contents.grow(fused, changed)
                self._contents[slot] = contents

    def _joined(self, slots: Sequence[int], fused: Block) -> Member:
        """The member of the fused block, without the buffers and scalars that only these slots use: they order nothing,
        and a block that grows by thousands of statements has thousands of them."""
        members = [self[slot] for slot in slots]
        within = set(slots)
        keys = {key for member in members for key in member.reads | member.writes}
        shared = {key for key in keys if not self._users[key] <= within}
        reads = frozenset(key for member in members for key in member.reads if key in shared)
        writes = frozenset(key for member in members for key in member.writes if key in shared)
        parts = tuple(sorted(chain.from_iterable([member.parts for member in members])))
        deps = frozenset(dep for member in members for dep in member.deps)
        return Member(fused, parts, deps, reads, writes)

    def positions(self, slots: Sequence[int]) -> tuple[int, ...]:
        """The numbers of the statements at `slots` in the block as it is now."""
        return tuple(sum(member is not None for member in self._slots[:slot]) for slot in slots)

    def finish(self) -> tuple[Block, frozenset[int]]:
        """The block with its statements in their new order, the same object when nothing was joined, and the numbers of
        the fused statements."""
        edit = Edit(self.block)
        members = [member for member in self._slots if member is not None]
        places = [edit.put(member.statement, replaces=member.parts) for member in members]
        made = (place for place, member in zip(places, members, strict=True) if len(member.parts) > 1)
        return edit.result(), frozenset(made)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A producer and a consumer, and their slots in the line."""

    first: int
    second: int
    a: Block
    b: Block


class PairQueue:
    """Producers and their consumers in a line, by the bytes that they share, the most first, then in program order."""

    def __init__(self, line: Line, wanted: Callable[[Block, Block], bool]) -> None:
        self._line = line
        self._wanted = wanted
        self._heap: list[tuple[int, int, int, int]] = []
        self._entered: list[Candidate] = []
        for slot in range(len(line.block.statements)):
            self._enter(slot)

    def _enter(self, slot: int) -> None:
        """Enters the pairs of the producer at `slot`."""
        a = self._line.block_at(slot)
        for reader in self._line.readers_after(slot) if a is not None else ():
            b = self._line.block_at(reader)
            if a is None or b is None or not self._wanted(a, b):
                continue
            read = {ref.source for ref in b.refinements if ref.dir.reads}
            views = self._line.contents(slot).views(a.refinements, read)
            names = {ref.source for ref in views if ref.dir.writes}
            shared = sum(ref.elements * ref.dtype.bytes for ref in map(self._line.buffers.__getitem__, names))
            heappush(self._heap, (-shared, slot, reader, len(self._entered)))
            self._entered.append(Candidate(slot, reader, a, b))

    def refresh(self, first: int, second: int) -> None:
        """Enters the pairs of all statements from slot `first` to slot `second`, after a join there."""
        for slot in range(first, second + 1):
            if self._line.block_at(slot) is not None:
                self._enter(slot)
                for writer in self._line.writers_before(slot):
                    if writer < first:
                        self._enter(writer)

    def __iter__(self) -> Iterator[Candidate]:
        """The pairs whose blocks are still in the line, also pairs that are entered meanwhile."""
        while self._heap:
            candidate = self._entered[heappop(self._heap)[-1]]
            blocks = self._line.block_at(candidate.first), self._line.block_at(candidate.second)
            if blocks[0] is candidate.a and blocks[1] is candidate.b:
                yield candidate
