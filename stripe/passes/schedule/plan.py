"""Buffers in the near memories over time: residency, eviction by next use, streaming by tiles.

Statements are taken in program order. For each, its operands become resident as whole copies or are streamed tile by
tile; of the choices that fit, the planner takes the choice that its policy prefers: the fewest bytes moved, evictions
included, or more streams. The copy with the latest next use is evicted first (Belady's rule).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from stripe.ir import Block, ConfigError
from stripe.passes.schedule.banks import BankRange, Banks
from stripe.passes.schedule.uses import Needs, OperandUse, Scratch


@dataclass(eq=False, slots=True)
class NearCopy:
    """A whole copy of a buffer in near memory, for its stay number `version`; `dirty` while the far buffer lacks its
    contents."""

    buffer: str
    version: int
    place: BankRange
    dirty: bool = False

    @property
    def name(self) -> str:
        """The name of its allocation."""
        return f"{self.buffer}^{self.version}"


@dataclass(frozen=True, slots=True)
class SwapIn:
    """Far to near."""

    copy: NearCopy


@dataclass(frozen=True, slots=True)
class SwapOut:
    """Near to far."""

    copy: NearCopy


@dataclass(frozen=True, slots=True)
class Execute:
    """Statement `number` on the copies of its operands, with the places of its streams and of its scratch buffers."""

    number: int
    copies: Mapping[str, NearCopy]
    streams: Mapping[str, BankRange]
    scratch: Mapping[Scratch, BankRange]


ScheduleStep = SwapIn | SwapOut | Execute


class Residency(Enum):
    """The preference among the choices that fit, for a statement."""

    COPY = "move the fewest bytes"
    MIXED = "stream operands whose tiles overlap little, and copy the others whole"
    STREAM = "copy the fewest bytes whole, beside operands that all tiles share"
    INPUTS = "stream all operands that have to come"


def signature(step: ScheduleStep) -> tuple[object, ...]:
    """A key of the work of a step, for steps of one block."""
    if isinstance(step, Execute):
        names = ((name, copy.name) for name, copy in step.copies.items())
        return step.number, tuple(sorted(names)), tuple(sorted(step.streams))
    return type(step).__name__, step.copy.name


@dataclass(frozen=True, slots=True)
class _Assigned:
    """The places of the operands and scratch buffers of one statement: whole copies, tiles of streams, scratch."""

    whole: dict[str, BankRange] = field(default_factory=dict[str, BankRange])
    streams: dict[str, BankRange] = field(default_factory=dict[str, BankRange])
    scratch: dict[Scratch, BankRange] = field(default_factory=dict[Scratch, BankRange])


@dataclass(frozen=True, slots=True)
class _Residency:
    """A choice for one statement: the bytes that it moves, the bytes of whole copies that tiles do not share, the
    evicted copies, places, and the banks afterwards."""

    cost: int
    copied: int
    evicted: tuple[NearCopy, ...]
    places: _Assigned
    banks: Banks


@dataclass
class ResidencyPlanner:
    """Makes the steps of one block, once. `outputs` are the buffers that outlive the block, `fresh` buffers hold
    nothing at its beginning, `unread` buffers are only assigned; streams have `depth` buffers; each statement has its
    policy."""

    block: Block
    needs: Sequence[Needs]
    banks: Banks
    depth: int
    outputs: frozenset[str]
    fresh: frozenset[str]
    unread: frozenset[str]
    policies: Sequence[Residency]

    def __post_init__(self) -> None:
        self._uses: dict[str, list[int]] = {}
        self._last_write: dict[str, int] = {}
        for number, need in enumerate(self.needs):
            for operand in need.operands:
                self._uses.setdefault(operand.name, []).append(number)
                if operand.writes:
                    self._last_write[operand.name] = number
        self._resident: dict[str, NearCopy] = {}
        self._versions: dict[str, int] = {}
        self._far: set[str] = set()  # buffers that a swap-out or a stream wrote
        self.copies: list[NearCopy] = []
        self.steps: list[ScheduleStep] = []

    def run(self) -> list[ScheduleStep]:
        """All steps; raises ConfigError, with the sizes, when a statement cannot be made to fit."""
        for number, need in enumerate(self.needs):
            choice = self._preferred(number)
            if choice is None:
                raise self._too_large(number)
            for copy in choice.evicted:
                if copy.dirty and self._next_use(copy.buffer, number - 1) is not None:
                    self._store(copy)
                del self._resident[copy.buffer]
            self.banks = choice.banks
            places = choice.places
            operands = {operand.name: operand for operand in need.operands}
            for name, place in places.whole.items():
                copy = self._new_copy(name, place)
                self._resident[name] = copy
                self.copies.append(copy)
                if self._has_to_come(operands[name]):
                    self.steps.append(SwapIn(copy))
            copies = {name: self._resident[name] for name in operands if name in self._resident}
            self.steps.append(Execute(number, copies, places.streams, places.scratch))
            for place in (*places.streams.values(), *places.scratch.values()):
                self.banks.release(place)
            self._after(number)
        return self.steps

    def _new_copy(self, buffer: str, place: BankRange) -> NearCopy:
        """The copy for the next stay of a buffer, with a name that the block does not have."""
        copy = NearCopy(buffer, self._versions.get(buffer, 0), place)
        while self.block.find_ref(copy.name) is not None:
            copy = NearCopy(buffer, copy.version + 1, place)
        self._versions[buffer] = copy.version + 1
        return copy

    def _has_to_come(self, operand: OperandUse) -> bool:
        """Whether a copy has to begin with the contents of the far buffer, which later statements may read and all of
        which goes back: of a fresh buffer the block reads its own writes alone. A copy of a buffer that nothing reads
        goes back without the elements written before its stay."""
        return operand.name not in self.unread and (
            operand.name in self._far or operand.name not in self.fresh
        )

    def _after(self, number: int) -> None:
        """Marks written copies, stores outputs that are complete, and gives back the places of copies without a next
        use."""
        for operand in self.needs[number].operands:
            copy = self._resident.get(operand.name)
            if operand.writes and copy is None:
                self._far.add(operand.name)
            if operand.writes and copy is not None:
                copy.dirty = True
                if operand.name in self.outputs and self._last_write[operand.name] == number:
                    self._store(copy)
            if copy is not None and self._next_use(operand.name, number) is None:
                del self._resident[operand.name]
                self.banks.release(copy.place)

    def _store(self, copy: NearCopy) -> None:
        self.steps.append(SwapOut(copy))
        copy.dirty = False
        self._far.add(copy.buffer)

    def _next_use(self, name: str, after: int) -> int | None:
        return next((use for use in self._uses[name] if use > after), None)

    def _preferred(self, number: int) -> _Residency | None:
        """The fitting choice that the policy prefers: streams of the k largest operands, of the absent or of all, for
        each k."""
        by_size = sorted(self.needs[number].operands, key=lambda op: (-op.bytes, op.name))
        absent = [op for op in by_size if op.name not in self._resident]
        candidates: list[Sequence[OperandUse]] = [()]
        if self.needs[number].streamable:
            candidates += [pool[: count + 1] for pool in (absent, by_size) for count in range(len(pool))]
            candidates.append([op for op in absent if op.tile_bytes < op.bytes])
            once = [op for op in absent if op.streamed_bytes <= AGAIN * op.bytes * (op.reads + op.writes)]
            come = [op for op in absent if self._has_to_come(op) and op.tile_bytes < op.bytes]
            wanted = {Residency.MIXED: once, Residency.INPUTS: come}.get(self.policies[number])
            choice = self._choice(number, wanted) if wanted else None
            if choice is not None:
                return choice
        choices = (self._choice(number, streamed) for streamed in candidates)
        fitting = [choice for choice in choices if choice is not None]
        if self.policies[number] is Residency.STREAM:
            return min(fitting, key=lambda choice: (choice.copied, choice.cost), default=None)
        return min(fitting, key=lambda choice: choice.cost, default=None)

    def _choice(self, number: int, streamed: Sequence[OperandUse]) -> _Residency | None:
        """Evicts copies, the latest next use first, until all fits; None when it never does."""
        operands = self.needs[number].operands
        names = {op.name for op in operands}
        held = {
            op.name: self._resident[op.name]
            for op in operands
            if op.name in self._resident and self._resident[op.name].place.bank in self._reached(op, number)
        }
        whole = [op for op in operands if op not in streamed and op.name not in held]
        # A resident operand that is to be streamed, or lies out of reach, is evicted before all others; a half-written
        # copy stays.
        again = (*streamed, *whole)
        forced = [self._resident[op.name] for op in again if op.name in self._resident]
        if not all(self._complete(copy, number) for copy in forced):
            return None
        others = [c for c in self._resident.values() if c.buffer not in names and self._complete(c, number)]
        others.sort(key=lambda c: (-(self._next_use(c.buffer, number - 1) or _NEVER), -c.place.bytes, c.name))
        banks = self.banks.copy()
        for copy in forced:
            banks.release(copy.place)
        for evictions in range(len(others) + 1):
            if evictions:
                banks.release(others[evictions - 1].place)
            trial = banks.copy()
            places = self._allocate(number, streamed, whole, trial)
            if places is not None:
                evicted = (*forced, *others[:evictions])
                cost = self._cost(number, streamed, whole, evicted)
                copied = sum(op.bytes for op in whole if op.tile_bytes < op.bytes)
                return _Residency(cost, copied, evicted, places, trial)
        return None

    def _allocate(
        self, number: int, streamed: Sequence[OperandUse], whole: Sequence[OperandUse], banks: Banks
    ) -> _Assigned | None:
        """Places for the whole copies, for the buffers of the streams and for scratch, the largest first."""
        places = _Assigned()
        need = self.needs[number]
        copied = [(op, banks.reserved(op.bytes)) for op in whole]
        copies = self.depth * need.instances
        tiles = [(op, sum(map(banks.aligned, op.views)) * copies) for op in streamed]
        both = need.banks.of(reads=True, writes=True)
        wanted: list[tuple[int, str, Scratch | dict[str, BankRange], tuple[int, ...]]] = [
            *((size, op.name, places.whole, self._banks_of(op, number)) for op, size in copied),
            *((size, op.name, places.streams, self._reached(op, number)) for op, size in tiles),
            *((scratch.bytes, scratch.name, scratch, both) for scratch in need.scratch),
        ]
        for size, name, kind, reached in sorted(wanted, key=lambda item: (-item[0], item[1])):
            place = banks.allocate(size, reached)
            if place is None:
                return None
            if isinstance(kind, Scratch):
                places.scratch[kind] = place
            else:
                kind[name] = place
        return places

    def _banks_of(self, operand: OperandUse, number: int) -> tuple[int, ...]:
        """The banks for a copy that comes for a statement: those that all later statements reach as well, if any."""
        own = self._reached(operand, number)
        later = [
            self._reached(op, use)
            for use in self._uses[operand.name]
            for op in self.needs[use].operands
            if use > number and op.name == operand.name
        ]
        return tuple(bank for bank in own if all(bank in side for side in later)) or own

    def _reached(self, operand: OperandUse, number: int) -> tuple[int, ...]:
        return self.needs[number].banks.of(reads=operand.reads, writes=operand.writes)

    def _complete(self, copy: NearCopy, number: int) -> bool:
        """Whether all writers of the buffer have run."""
        return self._last_write.get(copy.buffer, -1) < number

    def _cost(
        self,
        number: int,
        streamed: Sequence[OperandUse],
        whole: Sequence[OperandUse],
        evicted: Sequence[NearCopy],
    ) -> int:
        """Bytes moved now, or later because of this choice."""
        cost = sum(op.streamed_bytes for op in streamed)
        for op in whole:
            cost += op.bytes * (self._has_to_come(op) + (op.name in self.outputs))
        for op in streamed:
            if op.writes and self._next_use(op.name, number) is not None:
                cost += op.bytes  # for the next use
        for copy in evicted:
            if self._next_use(copy.buffer, number - 1) is not None:
                cost += copy.place.bytes // self.banks.users * (1 + copy.dirty)
        return cost

    def _too_large(self, number: int) -> ConfigError:
        statement = self.block.statements[number]
        title = statement.name if isinstance(statement, Block) else f"statement {number}"
        operands, banks = self.needs[number].operands, self.banks
        sizes = ", ".join(f"{op.name} {op.bytes}" for op in operands)
        tiles = sum(op.tile_bytes for op in operands) * self.depth
        own = sum(scratch.bytes for scratch in self.needs[number].scratch)
        at_once = (
            f"; {banks.users} units at work at one time have their own, beside those of the other statements"
            if banks.users > 1
            else ""
        )
        return ConfigError(
            f"{title} does not fit into the near memory: {banks.count} banks of {banks.bytes} bytes; its operands take "
            f"{sizes} bytes whole, its tiles {tiles} bytes with {self.depth} buffers "
            f"each, what it allocates itself {own}{at_once}",
            hint="tile it more finely (autotile with memory), or enlarge the memory",
        )


AGAIN = 1.5
"""Most times that tiles fetch an element of an operand that the policy MIXED streams."""

_NEVER = 1 << 60
