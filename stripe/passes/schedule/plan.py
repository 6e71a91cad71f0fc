"""Which buffers lie in the near memories when: residency, eviction by next use, streaming by tiles.

Statements are taken in program order. For each, its operands become resident as whole copies or are streamed tile by
tile; of the ways that fit, the one that moves the fewest bytes is taken, the bytes of what has to be evicted for it
included. What is evicted is what is needed again last (Belady's rule).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stripe.ir import Block, ConfigError
from stripe.passes.schedule.banks import Banks, Place
from stripe.passes.schedule.uses import Operand, Scratch, operands_of


@dataclass(eq=False, slots=True)
class Entry:
    """A whole copy of a buffer in near memory. `dirty`: the far buffer does not hold its contents."""

    buffer: str
    version: int
    place: Place
    dirty: bool = False
    steps: list[int] = field(default_factory=list[int])

    @property
    def name(self) -> str:
        return f"{self.buffer}^{self.version}"


@dataclass(frozen=True, slots=True)
class SwapIn:
    """Far to near."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class SwapOut:
    """Near to far."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Run:
    """The statement, on these copies; `streams` are the operands that it moves tile by tile through these places,
    `scratch` the places of what it allocates itself.
    """

    number: int
    entries: Mapping[str, Entry]
    streams: Mapping[str, Place]
    scratch: Mapping[Scratch, Place]


Step = SwapIn | SwapOut | Run


@dataclass(frozen=True, slots=True)
class Limits:
    """What a plan must respect. `banks_of[n]` are the banks that statement n reaches; `fresh` are the buffers that hold
    nothing at the beginning.
    """

    banks: Banks
    depth: int
    banks_of: Sequence[Sequence[int]]
    outputs: frozenset[str]
    fresh: frozenset[str]
    streamable: Sequence[bool]
    scratch: Sequence[Sequence[Scratch]]


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the operands of one statement go: whole copies, tiles of streams, and what it allocates itself."""

    whole: dict[str, Place] = field(default_factory=dict[str, Place])
    streams: dict[str, Place] = field(default_factory=dict[str, Place])
    scratch: dict[Scratch, Place] = field(default_factory=dict[Scratch, Place])


@dataclass(frozen=True, slots=True)
class _Choice:
    """One way to run a statement."""

    cost: int
    evicted: tuple[Entry, ...]
    places: _Places
    banks: Banks


class Planner:
    """Makes the steps of one block; use once."""

    def __init__(self, block: Block, limits: Limits) -> None:
        self._block = block
        self._limits = limits
        self._banks = limits.banks
        self._operands = [operands_of(block, number) for number in range(len(block.statements))]
        self._uses: dict[str, list[int]] = {}
        for number, operands in enumerate(self._operands):
            for operand in operands:
                self._uses.setdefault(operand.name, []).append(number)
        self._written = {
            op.name: max(
                n for n, ops in enumerate(self._operands) for o in ops if o.name == op.name and o.writes
            )
            for ops in self._operands
            for op in ops
            if op.writes
        }
        self._resident: dict[str, Entry] = {}
        self._versions: dict[str, int] = {}
        self._far: set[str] = set()  # buffers that a swap-out or a stream wrote
        self.entries: list[Entry] = []
        self.steps: list[Step] = []

    def run(self) -> list[Step]:
        """All steps; raises ConfigError, with the sizes, when a statement cannot be made to fit."""
        for number in range(len(self._block.statements)):
            self._place(number)
        return self.steps

    def _place(self, number: int) -> None:
        operands = self._operands[number]
        choice = self._cheapest(number, operands)
        if choice is None:
            raise self._too_large(number, operands)
        for entry in choice.evicted:
            self._evict(entry, number)
        self._banks = choice.banks
        for name, place in choice.places.whole.items():
            self._enter(name, place, number)
        step = len(self.steps)
        entries = {op.name: self._resident[op.name] for op in operands if op.name in self._resident}
        for entry in entries.values():
            entry.steps.append(step)
        places = choice.places
        self.steps.append(Run(number, entries, places.streams, places.scratch))
        for place in (*places.streams.values(), *places.scratch.values()):
            self._banks.release(place)
        self._after(number, operands)

    def _enter(self, name: str, place: Place, number: int) -> None:
        entry = Entry(name, self._versions.get(name, 0), place)
        self._versions[name] = entry.version + 1
        self._resident[name] = entry
        self.entries.append(entry)
        operand = next(op for op in self._operands[number] if op.name == name)
        if self._has_to_come(operand):
            entry.steps.append(len(self.steps))
            self.steps.append(SwapIn(entry))

    def _has_to_come(self, operand: Operand) -> bool:
        """Whether the far memory holds what the statement needs: what it reads of a fresh buffer it writes itself."""
        return operand.name in self._far or (operand.reads and operand.name not in self._limits.fresh)

    def _after(self, number: int, operands: Sequence[Operand]) -> None:
        """Marks what was written, stores outputs that are complete, and gives back what nobody needs again."""
        for operand in operands:
            entry = self._resident.get(operand.name)
            if operand.writes and entry is None:
                self._far.add(operand.name)
            if operand.writes and entry is not None:
                entry.dirty = True
                if operand.name in self._limits.outputs and self._written[operand.name] == number:
                    self._store(entry)
            if entry is not None and self._next_use(operand.name, number) is None:
                del self._resident[operand.name]
                self._banks.release(entry.place)

    def _store(self, entry: Entry) -> None:
        entry.steps.append(len(self.steps))
        self.steps.append(SwapOut(entry))
        entry.dirty = False
        self._far.add(entry.buffer)

    def _evict(self, entry: Entry, number: int) -> None:
        if entry.dirty and self._next_use(entry.buffer, number - 1) is not None:
            self._store(entry)
        del self._resident[entry.buffer]

    def _next_use(self, name: str, after: int) -> int | None:
        return next((use for use in self._uses[name] if use > after), None)

    def _cheapest(self, number: int, operands: Sequence[Operand]) -> _Choice | None:
        """Streams the k largest operands, of those not resident or of all, for each k; the cheapest that fits."""
        by_size = sorted(operands, key=lambda op: (-op.bytes, op.name))
        absent = [op for op in by_size if op.name not in self._resident]
        candidates: list[Sequence[Operand]] = [()]
        if self._limits.streamable[number]:
            candidates += [pool[: count + 1] for pool in (absent, by_size) for count in range(len(pool))]
        best: _Choice | None = None
        for streamed in candidates:
            choice = self._choice(number, operands, streamed)
            if choice is not None and (best is None or choice.cost < best.cost):
                best = choice
        return best

    def _choice(
        self, number: int, operands: Sequence[Operand], streamed: Sequence[Operand]
    ) -> _Choice | None:
        """Evicts, one after the other, what is needed again last, until all fits; None when it never does.

        A resident operand that is to be streamed is evicted first of all.
        """
        names = {op.name for op in operands}
        whole = [op for op in operands if op not in streamed and op.name not in self._resident]
        forced = [self._resident[op.name] for op in streamed if op.name in self._resident]
        if not all(self._complete(entry, number) for entry in forced):
            return None
        others = [e for e in self._resident.values() if e.buffer not in names and self._complete(e, number)]
        others.sort(key=lambda e: (-(self._next_use(e.buffer, number - 1) or _NEVER), -e.place.bytes, e.name))
        banks = self._banks.copy()
        for entry in forced:
            banks.release(entry.place)
        for evictions in range(len(others) + 1):
            if evictions:
                banks.release(others[evictions - 1].place)
            trial = banks.copy()
            placed = self._allocate(number, streamed, whole, trial)
            if placed is not None:
                evicted = (*forced, *others[:evictions])
                return _Choice(self._cost(number, streamed, whole, evicted), evicted, placed, trial)
        return None

    def _allocate(
        self,
        number: int,
        streamed: Sequence[Operand],
        whole: Sequence[Operand],
        banks: Banks,
    ) -> _Places | None:
        """Places for the whole copies, for the buffers of the streams and for scratch, the largest first."""
        align = banks.alignment
        wanted: list[tuple[int, str, str | Scratch, bool]] = [
            (op.bytes, op.name, op.name, False) for op in whole
        ]
        for op in streamed:
            size = -(-op.tile_bytes // align) * align * self._limits.depth
            wanted.append((size, op.name, op.name, True))
        wanted += [(scratch.bytes, scratch.name, scratch, True) for scratch in self._limits.scratch[number]]
        wanted.sort(key=lambda item: (-item[0], item[1]))
        places = _Places()
        for size, _, key, streams in wanted:
            place = banks.allocate(size, self._limits.banks_of[number])
            if place is None:
                return None
            if isinstance(key, Scratch):
                places.scratch[key] = place
            else:
                (places.streams if streams else places.whole)[key] = place
        return places

    def _complete(self, entry: Entry, number: int) -> bool:
        """Whether all writers of the buffer have run: a half-written copy stays."""
        return self._written.get(entry.buffer, -1) < number

    def _cost(
        self, number: int, streamed: Sequence[Operand], whole: Sequence[Operand], evicted: Sequence[Entry]
    ) -> int:
        """Bytes moved now, or later because of this choice."""
        cost = sum(op.streamed_bytes for op in streamed)
        for op in whole:
            cost += op.bytes * (int(self._has_to_come(op)) + int(op.name in self._limits.outputs))
        for op in streamed:
            if op.writes and self._next_use(op.name, number) is not None:
                cost += op.bytes  # it will have to come back
        for entry in evicted:
            if self._next_use(entry.buffer, number - 1) is not None:
                cost += entry.place.bytes * (1 + int(entry.dirty))
        return cost

    def _too_large(self, number: int, operands: Sequence[Operand]) -> ConfigError:
        statement = self._block.statements[number]
        title = statement.name if isinstance(statement, Block) else f"statement {number}"
        sizes = ", ".join(f"{op.name} {op.bytes}" for op in operands)
        tiles = sum(op.tile_bytes for op in operands) * self._limits.depth
        banks = self._limits.banks
        own = sum(scratch.bytes for scratch in self._limits.scratch[number])
        return ConfigError(
            f"{title} does not fit into the near memory: {banks.count} banks of {banks.bytes} bytes; its operands take "
            f"{sizes} bytes whole, its tiles {tiles} bytes with {self._limits.depth} buffers "
            f"each, what it allocates itself {own}",
            hint="tile it more finely (autotile with memory), or enlarge the memory",
        )


_NEVER = 1 << 60
