"""Results of passes that hold for other machines too.

A pass is run on a recording machine (`stripe.hw.trace`). Its result is taken again wherever the same entry meets the
same program, and the machine agrees in all that was read. So a point that changes only a bus does not tile again where
tiling never asked for the bus. A pass that asked about its list (for prices, or for the words of its options) depends
on that, too. Where a pass has to run again and makes an equal program, the results of the entries behind it are taken
again. The programs of candidates that it had priced go through the rest of the list in the same way.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field

from typing_extensions import override

from stripe.cost.time.price import Price, price_program
from stripe.hw.trace import MachineFacts, Reads
from stripe.ir import Program, StripeError
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import entry_json

MAX_RESULTS = 20_000
"""Results of passes that a memo keeps; most of them share their blocks with others."""

MAX_CANDIDATES = 5_000
"""Programs that passes had priced, of which a memo knows where they are in its graph."""


@dataclass(slots=True, eq=False)
class _KnownProgram:
    """A program, the results of entries on it, and its prices."""

    program: Program
    next: dict[str, list[_Result]] = field(default_factory=dict[str, "list[_Result]"])
    """By the entry as JSON."""
    prices: list[tuple[Reads, Price | StripeError]] = field(
        default_factory=list[tuple[Reads, "Price | StripeError"]]
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Result:
    """The result of an entry, and all that it depends on beside the entry and the program."""

    reads: Reads
    asked: tuple[object, ...] | None
    """The list, where the result depends on it."""
    after: _KnownProgram | StripeError


@dataclass(slots=True)
class PassMemo:
    """The programs that passes made of one workload, as a graph of entries; the least recently used are dropped."""

    root: Program
    kept: int = MAX_RESULTS
    passes_run: int = 0
    passes_reused: int = 0
    priced: int = 0
    """Simulations of candidates."""
    _start: _KnownProgram | None = None
    _used: OrderedDict[_Result, list[_Result]] = field(default_factory=OrderedDict[_Result, "list[_Result]"])
    """The results, the least recently used first, each with the list that holds it."""
    _candidates: OrderedDict[Program, _KnownProgram] = field(
        default_factory=OrderedDict[Program, _KnownProgram]
    )
    """Programs that passes had priced, the least recently used first."""

    def run(self, entries: tuple[PassEntry, ...], machine: MachineFacts, reads: Reads) -> Program:
        """The program after all entries. `reads` receives the fields of the machine that it, or the error, depends on.
        Raises StripeError.
        """
        self._start = self._start or _KnownProgram(self.root)
        return self._run(self._start, _SpelledEntries.of(entries), machine, reads).program

    def _run(
        self, node: _KnownProgram, listed: _SpelledEntries, machine: MachineFacts, reads: Reads
    ) -> _KnownProgram:
        for number in range(len(listed.entries)):
            result = self._step(node, listed, number, machine)
            reads |= result.reads
            if isinstance(result.after, StripeError):
                raise result.after.with_traceback(None)
            node = result.after
        return node

    def _step(
        self, node: _KnownProgram, listed: _SpelledEntries, number: int, machine: MachineFacts
    ) -> _Result:
        known = node.next.setdefault(listed.spelled[number], [])
        for found in known:
            if found.asked in (None, listed.whole) and machine.agree(found.reads):
                self.passes_reused += 1
                self._used.move_to_end(found)
                return found
        self.passes_run += 1
        reads: Reads = {}
        watch = _ListWatch()
        pricing = _KnownPrices(self, listed, machine, reads)
        manager = PassManager(
            listed.entries,
            machine.traced(reads),
            (watch,),
            pricing=pricing,
            runs_for_price=listed.runs_for_price,
        )
        try:
            after = self._node_after(node, manager.step(number, node.program), known, watch.asked)
        except StripeError as error:
            after = error
        of_list = watch.asked or isinstance(after, StripeError)  # an error may name the entries before
        made = _Result(reads, listed.whole if of_list else None, after)
        known.append(made)
        self._used[made] = known
        while len(self._used) > self.kept:
            oldest, holding = self._used.popitem(last=False)
            holding.remove(oldest)
        return made

    def _node_after(
        self, node: _KnownProgram, program: Program, known: list[_Result], priced: bool
    ) -> _KnownProgram:
        """The node of a program that an entry made: a known node, if its program is equal."""
        if program is node.program:
            return node
        nodes = (found.after for found in known if isinstance(found.after, _KnownProgram))
        equal = next((other for other in nodes if other.program == program), None)
        return equal or (self._candidate(program) if priced else _KnownProgram(program))

    def _candidate(self, program: Program) -> _KnownProgram:
        node = self._candidates.setdefault(program, _KnownProgram(program))
        self._candidates.move_to_end(program)
        if len(self._candidates) > MAX_CANDIDATES:
            self._candidates.popitem(last=False)
        return node

    def price(self, listed: _SpelledEntries, program: Program, machine: MachineFacts, reads: Reads) -> Price:
        """The price of a program after a list. Raises StripeError."""
        node = self._run(self._candidate(program), listed, machine, reads)
        known = next((pair for pair in node.prices if machine.agree(pair[0])), None)
        if known is None:
            self.priced += 1
            made: Reads = {}
            try:
                known = made, price_program(node.program, machine.traced(made))
            except StripeError as error:
                known = made, error
            node.prices.append(known)
        reads |= known[0]
        if isinstance(known[1], StripeError):
            raise known[1].with_traceback(None)
        return known[1]


@dataclass(frozen=True, slots=True)
class _SpelledEntries:
    """The entries of a list, and their spellings as JSON."""

    entries: tuple[PassEntry, ...]
    spelled: tuple[str, ...]
    runs_for_price: bool = False

    @property
    def whole(self) -> tuple[object, ...]:
        """All that a pass can ask of its list."""
        return (self.runs_for_price, *self.spelled)

    @staticmethod
    def of(entries: tuple[PassEntry, ...]) -> _SpelledEntries:
        return _SpelledEntries(
            entries, tuple(json.dumps(entry_json(entry), sort_keys=True) for entry in entries)
        )


@dataclass(frozen=True, slots=True)
class _KnownPrices:
    """Prices of candidates on one machine, from the memo where it has them. `reads` receives the fields read."""

    memo: PassMemo
    listed: _SpelledEntries
    machine: MachineFacts
    reads: Reads

    def price(self, rest: PassManager, program: Program) -> Price:
        listed = _SpelledEntries(
            rest.entries,
            self.listed.spelled[len(self.listed.spelled) - len(rest.entries) :],
            runs_for_price=rest.runs_for_price,
        )
        return self.memo.price(listed, program, self.machine, self.reads)


class _ListWatch(Instrument):
    """Notices whether a pass asks about its list."""

    def __init__(self) -> None:
        self.asked = False

    @override
    def depends_on_list(self, entry: PassEntry) -> None:
        self.asked = True
