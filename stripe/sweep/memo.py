"""Results of passes that hold for other machines too.

A pass is run on a recording machine (`stripe.hw.trace`). Its result is taken again wherever the same entries ran before
on the same program, and the machine agrees in all that they read. So a point that changes only a bus does not tile
again where tiling never asked for the bus.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field

from stripe.hw.trace import MachineFacts, Reads, traced
from stripe.ir import Program, StripeError
from stripe.pipeline.instrument import PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import entry_json

MAX_PROGRAMS = 400
"""Programs that a memo keeps, over all workloads."""


@dataclass(slots=True, eq=False)
class _Node:
    """A program reached by some entries, and the results of the next entry on it."""

    program: Program
    next: dict[str, list[tuple[Reads, _Node | StripeError]]] = field(
        default_factory=dict[str, "list[tuple[Reads, _Node | StripeError]]"]
    )
    """By the entry as JSON."""


@dataclass(slots=True)
class PassMemo:
    """The programs that passes made of one workload, as a tree of entries; the least recently used are dropped."""

    root: Program
    kept: int = MAX_PROGRAMS
    passes_run: int = 0
    passes_reused: int = 0
    _tree: _Node | None = None
    _used: OrderedDict[int, tuple[_Node, str, tuple[Reads, _Node | StripeError]]] = field(
        default_factory=OrderedDict[int, "tuple[_Node, str, tuple[Reads, _Node | StripeError]]"]
    )

    def run(self, entries: tuple[PassEntry, ...], machine: MachineFacts, reads: Reads) -> Program:
        """The program after all entries. `reads` receives the fields of the machine that it, or the error, depends on.
        Raises StripeError.
        """
        node = self._tree = self._tree or _Node(self.root)
        for entry in entries:
            depends, result = self._step(node, entry, machine)
            reads |= depends
            if isinstance(result, StripeError):
                raise result
            node = result
        return node.program

    def _step(
        self, node: _Node, entry: PassEntry, machine: MachineFacts
    ) -> tuple[Reads, _Node | StripeError]:
        spelled = json.dumps(entry_json(entry), sort_keys=True)
        known = node.next.setdefault(spelled, [])
        for found in known:
            if machine.agree(found[0]):
                self.passes_reused += 1
                if id(found) in self._used:
                    self._used.move_to_end(id(found))
                return found
        self.passes_run += 1
        reads: Reads = {}
        try:
            after = PassManager((entry,), traced(machine.model, reads)).run(node.program)
            made = (reads, _Node(after))
        except StripeError as error:
            made = (reads, error)
        known.append(made)
        self._used[id(made)] = (node, spelled, made)
        while len(self._used) > self.kept:
            _, (parent, oldest_entry, oldest) = self._used.popitem(last=False)
            known = parent.next[oldest_entry]
            parent.next[oldest_entry] = [other for other in known if other is not oldest]
        return made
