"""The statements of a block as a line in which two can be brought together where dependences allow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from stripe.ir import Block, Statement, reads_of, scalar_defined, scalars_used, with_statements, writes_of


@dataclass(frozen=True, slots=True)
class Uses:
    """What orders a statement: the buffers and scalars that it reads and writes."""

    reads: frozenset[str]
    writes: frozenset[str]

    def conflicts(self, other: Uses) -> bool:
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


@dataclass(frozen=True, slots=True)
class Node:
    """A statement and its number, with the numbers of those that it depends on by its `deps`, as they were at first."""

    number: int
    statement: Statement
    uses: Uses
    deps: frozenset[int]


class Line:
    """The statements of a block in slots; a slot becomes empty where two statements were fused.

    Buffers are told apart by the allocation or the view outside that they stand for, so that two views of one source
    conflict.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.buffers = {ref.name: ref for ref in block.refinements}
        self._keys = {ref.name: f"view {ref.source}" if ref.source else ref.name for ref in block.refinements}
        self.nodes: list[Node | None] = [
            Node(number, s, self._uses(s), frozenset(s.deps)) for number, s in enumerate(block.statements)
        ]
        self._became: dict[int, int] = {}
        self._made = len(self.nodes)
        self._users: dict[str, set[int]] = {}
        for slot, node in enumerate(self.nodes):
            if node is not None:
                self._enter(slot, node)

    def _uses(self, statement: Statement) -> Uses:
        keys = self._keys
        reads = {keys.get(name, name) for name in reads_of(statement)}
        reads |= {f"${name}" for name in scalars_used(statement)}
        writes = {keys.get(name, name) for name in writes_of(statement)}
        defined = scalar_defined(statement)
        if defined is not None:
            writes.add(f"${defined}")
        return Uses(frozenset(reads), frozenset(writes))

    def _enter(self, slot: int, node: Node) -> None:
        for key in node.uses.reads | node.uses.writes:
            self._users.setdefault(key, set()).add(slot)

    def _leave(self, slot: int, node: Node) -> None:
        for key in node.uses.reads | node.uses.writes:
            self._users[key].discard(slot)

    def blocks(self) -> Iterator[tuple[int, Block]]:
        """The slots that hold blocks."""
        for slot, node in enumerate(self.nodes):
            if node is not None and isinstance(node.statement, Block):
                yield slot, node.statement

    def block_at(self, slot: int) -> Block | None:
        node = self.nodes[slot]
        return node.statement if node is not None and isinstance(node.statement, Block) else None

    def users(self, name: str) -> list[int]:
        """The slots of the statements that use the buffer `name` or what shares its source."""
        return sorted(self._users.get(self._keys.get(name, name), ()))

    def uses(self, slot: int) -> Uses:
        """What the statement at a slot, which must hold one, reads and writes."""
        node = self.nodes[slot]
        assert node is not None
        return node.uses

    def readers_after(self, slot: int) -> list[int]:
        """The slots after `slot` that read what it writes."""
        writes = self.uses(slot).writes
        near = {user for key in writes for user in self._users.get(key, ()) if user > slot}
        return sorted(user for user in near if self.uses(user).reads & writes)

    def writers_before(self, slot: int, *, of_inputs: bool) -> list[int]:
        """The slots before `slot` that write what it reads, or what it writes."""
        wanted = self.uses(slot).reads if of_inputs else self.uses(slot).writes
        near = {user for key in wanted for user in self._users.get(key, ()) if user < slot}
        return sorted(user for user in near if self.uses(user).writes & wanted)

    def between(self, first: int, second: int) -> tuple[list[int], list[int]] | int:
        """The slots between that can stand before both and those that have to stand after both; or a slot that
        depends on the first and that the second depends on.
        """
        before: list[int] = []
        after: list[int] = []
        followed = [first]
        for slot in range(first + 1, second):
            if self.nodes[slot] is None:
                continue
            if any(self._follows(earlier, slot) for earlier in followed):
                followed.append(slot)
                after.append(slot)
            else:
                before.append(slot)
        blocker = next((slot for slot in after if self._follows(slot, second)), None)
        return (before, after) if blocker is None else blocker

    def _follows(self, earlier: int, later: int) -> bool:
        first, second = self.nodes[earlier], self.nodes[later]
        assert first is not None and second is not None
        if first.uses.conflicts(second.uses):
            return True
        return any(self._resolve(dep) == first.number for dep in second.deps)

    def _resolve(self, number: int) -> int:
        """The number of the node that the statement `number` is in now."""
        while number in self._became:
            number = self._became[number]
        return number

    def join(self, first: int, second: int, fused: Block) -> None:
        """Puts `fused` in the place of both; what stands between moves before or behind it."""
        order = self.between(first, second)
        assert not isinstance(order, int)
        before, after = order
        a, b = self.nodes[first], self.nodes[second]
        assert a is not None and b is not None
        node = Node(self._made, fused, self._uses(fused), a.deps | b.deps)
        self._made += 1
        self._became[a.number] = self._became[b.number] = node.number
        moved = [self.nodes[slot] for slot in before] + [node] + [self.nodes[slot] for slot in after]
        span = range(first, second + 1)
        for slot in span:
            old = self.nodes[slot]
            if old is not None:
                self._leave(slot, old)
            self.nodes[slot] = None
        for slot, entry in zip(range(second + 1 - len(moved), second + 1), moved, strict=True):
            assert entry is not None
            self.nodes[slot] = entry
            self._enter(slot, entry)

    def finish(self) -> tuple[Block, frozenset[int]]:
        """The block with the statements as they stand now, the same object when nothing was joined; and the numbers of
        those that were made here.
        """
        if not self._became:
            return self.block, frozenset()
        nodes = [node for node in self.nodes if node is not None]
        place = {node.number: number for number, node in enumerate(nodes)}
        statements: list[Statement] = []
        for number, node in enumerate(nodes):
            found = {place[self._resolve(dep)] for dep in node.deps} - {number}
            deps = tuple(sorted(found))
            same = deps == node.statement.deps
            statements.append(node.statement if same else replace(node.statement, deps=deps))
        made = frozenset(place[node.number] for node in nodes if node.number >= len(self.nodes))
        return with_statements(self.block, statements), made


class PairQueue:
    """Producers and their consumers in a line, those that share the most bytes first, then in program order."""

    def __init__(self, line: Line, refused: Callable[[Block, Block], bool]) -> None:
        self._line = line
        self._refused = refused
        self._heap: list[tuple[int, int, int, int]] = []
        self._blocks: list[tuple[Block, Block]] = []
        for slot, _ in line.blocks():
            self._push(slot)

    def _push(self, slot: int) -> None:
        a = self._line.block_at(slot)
        if a is None:
            return
        for reader in self._line.readers_after(slot):
            b = self._line.block_at(reader)
            if b is not None and not self._refused(a, b):
                heappush(self._heap, (-self._shared_bytes(a, b), slot, reader, len(self._blocks)))
                self._blocks.append((a, b))

    def _shared_bytes(self, a: Block, b: Block) -> int:
        read = {ref.source for ref in b.refinements if ref.dir.reads}
        written = {ref.source for ref in a.refinements if ref.dir.writes}
        buffers = [self._line.buffers[name] for name in sorted(read & written)]
        return sum(ref.elements * ref.dtype.bytes for ref in buffers)

    def refresh(self, first: int, second: int) -> None:
        """Enters the pairs of all that stands from one slot to another, after a join there."""
        for slot in range(first, second + 1):
            if self._line.block_at(slot) is not None:
                self._push(slot)
                for writer in self._line.writers_before(slot, of_inputs=True):
                    if writer < first:
                        self._push(writer)

    def pop(self) -> tuple[int, int] | None:
        """The slots of the next pair that still stands; None at the end."""
        while self._heap:
            _, first, second, number = heappop(self._heap)
            a, b = self._blocks[number]
            if self._line.block_at(first) is a and self._line.block_at(second) is b:
                return first, second
        return None
