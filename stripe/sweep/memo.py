"""Results of passes that hold for other machines too.

A pass is run on a recording machine (`stripe.hw.trace`). Its result is taken again wherever the same entries ran before
on the same program, and the machine agrees in all that they read. So a point that changes only a bus does not tile
again where tiling never asked for the bus. A pass that asked for prices depends on the entries behind it, too.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field

from typing_extensions import override

from stripe.hw.trace import MachineFacts, Reads, traced
from stripe.ir import Program, StripeError
from stripe.pipeline.instrument import Instrument, PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import entry_json

MAX_PROGRAMS = 400
"""Programs that a memo keeps, over all workloads."""


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


@dataclass(slots=True)
class PassMemo:
    """The programs that passes made of one workload, as a tree of entries; the least recently used are dropped."""

    root: Program
    kept: int = MAX_PROGRAMS
    passes_run: int = 0
    passes_reused: int = 0
    _tree: _Programs | None = None
    _used: OrderedDict[_Result, list[_Result]] = field(default_factory=OrderedDict[_Result, "list[_Result]"])
    """The results, the least recently used first, each with the list that holds it."""

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
                raise result.after
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
        try:
            manager = PassManager(entries, traced(machine.model, reads), (watch,))
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


class _PriceWatch(Instrument):
    """Notices whether a pass asks for prices."""

    def __init__(self) -> None:
        self.asked = False

    @override
    def priced(self, entry: PassEntry) -> None:
        self.asked = True
