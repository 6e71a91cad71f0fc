"""Results of passes that hold for other machines too.

A pass is run on a recording machine (`stripe.hw.trace`). Its result is taken again wherever the same entries ran before
on the same program, and the machine agrees in all that they read. So a point that changes only a bus does not tile
again where tiling never asked for the bus. A pass that asked for prices depends on the entries behind it, too; the
programs that it had priced, and their prices, hold for other machines in the same way.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field

from typing_extensions import override

from stripe.cost.time.price import Price, price_program
from stripe.hw.trace import MachineFacts, Reads
from stripe.ir import Program, StripeError
from stripe.pipeline.instrument import Instrument, PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import entry_json

MAX_PROGRAMS = 400
"""Programs that a memo keeps, over all workloads."""

MAX_PRICED = 5_000
"""Programs of tiles that a memo keeps with their prices."""


@dataclass(frozen=True, slots=True, eq=False)
class _Result:
    """The result of an entry, and all that it depends on beside the entry and the program."""

    reads: Reads
    rest: tuple[str, ...] | None
    """The entries behind, as JSON, where the pass asked for prices."""
    after: _Programs | StripeError


@dataclass(slots=True, eq=False)
class _Programs:
    """A program reached by some entries, and the results of the next entry on it."""

    program: Program
    next: dict[str, list[_Result]] = field(default_factory=dict[str, "list[_Result]"])
    """By the entry as JSON."""


@dataclass(frozen=True, slots=True, eq=False)
class _PricedProgram:
    """A program that a pass asked the price of, after the rest of the list; and its prices on machines."""

    reads: Reads
    after: Program | StripeError
    prices: list[tuple[Reads, Price | StripeError]]


@dataclass(slots=True)
class PassMemo:
    """The programs that passes made of one workload, as a tree of entries; the least recently used are dropped."""

    root: Program
    kept: int = MAX_PROGRAMS
    passes_run: int = 0
    passes_reused: int = 0
    priced: int = 0
    """Simulations of candidates."""
    _tree: _Programs | None = None
    _used: OrderedDict[_Result, list[_Result]] = field(default_factory=OrderedDict[_Result, "list[_Result]"])
    """The results, the least recently used first, each with the list that holds it."""
    _priced_programs: OrderedDict[tuple[str, Program], list[_PricedProgram]] = field(
        default_factory=OrderedDict[tuple[str, Program], "list[_PricedProgram]"]
    )
    """By the entries behind, as JSON, and the program; the least recently used first."""

    def run(self, entries: tuple[PassEntry, ...], machine: MachineFacts, reads: Reads) -> Program:
        """The program after all entries. `reads` receives the fields of the machine that it, or the error, depends on.
        Raises StripeError.
        """
        reached = self._tree = self._tree or _Programs(self.root)
        spelled = tuple(json.dumps(entry_json(entry), sort_keys=True) for entry in entries)
        for number in range(len(entries)):
            result = self._step(reached, entries, spelled, number, machine)
            reads |= result.reads
            if isinstance(result.after, StripeError):
                raise result.after.with_traceback(None)
            reached = result.after
        return reached.program

    def _step(
        self,
        reached: _Programs,
        entries: tuple[PassEntry, ...],
        spelled: tuple[str, ...],
        number: int,
        machine: MachineFacts,
    ) -> _Result:
        rest = spelled[number + 1 :]
        known = reached.next.setdefault(spelled[number], [])
        for found in known:
            if found.rest in (None, rest) and machine.agree(found.reads):
                self.passes_reused += 1
                self._used.move_to_end(found)
                return found
        self.passes_run += 1
        reads: Reads = {}
        watch = _PriceWatch()
        pricing = _KnownPrices(self, spelled, machine, reads)
        try:
            manager = PassManager(entries, machine.traced(reads), (watch,), pricing=pricing)
            after = _Programs(manager.step(number, reached.program))
        except StripeError as error:
            after = error
        made = _Result(reads, rest if watch.asked else None, after)
        known.append(made)
        self._used[made] = known
        while len(self._used) > self.kept:
            oldest, holding = self._used.popitem(last=False)
            holding.remove(oldest)
        return made

    def priced_program(
        self, spelled: tuple[str, ...], rest: PassManager, program: Program, machine: MachineFacts
    ) -> _PricedProgram:
        """`program` after the entries of `rest`, the last of those that are `spelled`, on a machine."""
        key = (json.dumps(spelled[len(spelled) - len(rest.entries) :]), program)
        known = self._priced_programs.setdefault(key, [])
        self._priced_programs.move_to_end(key)
        for found in known:
            if machine.agree(found.reads):
                return found
        reads: Reads = {}
        try:
            pricing = _KnownPrices(self, spelled, machine, reads)
            after = PassManager(rest.entries, machine.traced(reads), pricing=pricing).run(program)
        except StripeError as error:
            after = error
        made = _PricedProgram(reads, after, [])
        known.append(made)
        while len(self._priced_programs) > MAX_PRICED:
            self._priced_programs.popitem(last=False)
        return made


@dataclass(frozen=True, slots=True)
class _KnownPrices:
    """Prices of candidates on one machine, those known included. `reads` receives the fields that they depend on."""

    memo: PassMemo
    spelled: tuple[str, ...]
    machine: MachineFacts
    reads: Reads

    def price(self, rest: PassManager, program: Program) -> Price:
        found = self.memo.priced_program(self.spelled, rest, program, self.machine)
        self.reads.update(found.reads)
        if isinstance(found.after, StripeError):
            raise found.after.with_traceback(None)
        known = next((pair for pair in found.prices if self.machine.agree(pair[0])), None)
        if known is None:
            self.memo.priced += 1
            made: Reads = {}
            try:
                known = made, price_program(found.after, self.machine.traced(made))
            except StripeError as error:
                known = made, error
            found.prices.append(known)
        reads, price = known
        self.reads.update(reads)
        if isinstance(price, StripeError):
            raise price.with_traceback(None)
        return price


class _PriceWatch(Instrument):
    """Notices whether a pass asks for prices."""

    def __init__(self) -> None:
        self.asked = False

    @override
    def priced(self, entry: PassEntry) -> None:
        self.asked = True
