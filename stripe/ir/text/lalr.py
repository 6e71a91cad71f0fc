"""A fast run of lark's LALR tables: values instead of trees.

lark makes a `Token` of eight fields for each word and a `Tree` for each rule, which takes longer than the IR that is
built of them. This run takes its tables as lark computes them (`stripe.ir.text.tables`), so that the grammar stays the
only definition of the language; a word is a pair of its text and its offset, and a rule calls its action as soon as it
is complete. A text that does not fit is left to lark, which knows what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypedDict

from stripe.ir.frozen import frozen

Word: TypeAlias = tuple[str, int]
"""A word of the text and the offset where it begins."""

Action: TypeAlias = Callable[[list[Any], int, int], Any]
"""The value of a rule from the values of its parts, and the offsets of its first character and behind its last."""

Known: TypeAlias = dict[tuple[int, str], Any]
"""The values of recurring texts by state and text."""

_SPACES = " \t\r\n\f"
"""Skipped before each word: white space, with which no word of a grammar begins."""

_LONGEST = 400
"""Characters of the longest text that is looked up among the texts so far."""


class NotInGrammar(Exception):
    """The text does not fit the grammar."""


class Production(TypedDict):
    """A production: its number of symbols, and its parts as (position, whether its members are the parts), at position
    -1 an option that is left out; None when every symbol is a part. `action` is empty for a list of parts.
    """

    origin: str
    size: int
    parts: list[tuple[int, bool]] | None
    has_lists: bool
    passes_single: bool
    action: str


class Scanner(TypedDict):
    """The pattern of the words that can come in a state, and the keywords among the words of each kind."""

    words: str
    keywords: dict[str, dict[str, str]]


class LalrState(TypedDict):
    """A state: the number of its scanner, the next states by terminal and by rule, and productions by terminal."""

    scanner: int
    shifts: dict[str, int]
    gotos: dict[str, int]
    reductions: dict[str, int]


class Tables(TypedDict):
    """LALR tables as plain data: `starts` has the first and the last state of each start rule."""

    starts: dict[str, tuple[int, int]]
    ignored: list[str]
    productions: list[Production]
    scanners: list[Scanner]
    rows: list[LalrState]


@frozen
class _Rule:
    """A production with its parts, see `Production`, and whether its texts recur."""

    origin: str
    size: int
    parts: list[tuple[int, bool]] | None
    has_lists: bool
    passes_single: bool
    action: str
    recurs: bool


@frozen
class _State:
    """A row of the table: the scanner of the words that can come, the keywords among them, and what they cause."""

    match: Callable[[str, int], re.Match[str] | None]
    keywords: Mapping[str, Mapping[str, str]]
    shifts: dict[str, int]
    reductions: dict[str, _Rule]
    gotos: dict[str, int]
    recurring: str
    """The rule whose texts recur that can begin here, or nothing."""


@dataclass(slots=True)
class _Stacks:
    """The stacks of one parse: states, and for each state but the first the value and the offset of its symbol."""

    text: str
    actions: Mapping[str, Action]
    stack: list[int]
    known: Known
    values: list[Any] = field(default_factory=list[Any])
    begins: list[int] = field(default_factory=list[int])
    pending: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """Depth, begin and end of the recurring texts under way; an end of -1 for a text too long to keep."""

    def recall(self, state: _State, closing: str, place: int) -> int:
        """Takes the value of a recurring text at `place` when it is known; the place from where to read on."""
        close = self.text.find(closing, place, place + _LONGEST)
        if close >= 0:
            value = self.known.get((self.stack[-1], self.text[place:close]))
            if value is not None:
                self.stack.append(state.gotos[state.recurring])
                self.values.append(value)
                self.begins.append(place)
                return close
        self.pending.append((len(self.stack), place, close))
        return place

    def reduce(self, rule: _Rule, following: int, end: int) -> None:
        """Replaces the symbols of a rule by its value; the next word begins at `following`, the last ended at `end`."""
        size = rule.size
        if size:
            parts, begin = self.values[-size:], self.begins[-size]
            del self.values[-size:], self.begins[-size:], self.stack[-size:]
        else:
            parts, begin = [], following
        if rule.parts is not None:
            parts = _parts(rule, parts)
        if not rule.action:
            value = parts
        elif rule.passes_single and len(parts) == 1:
            value = parts[0]
        else:
            value = self.actions[rule.action](parts, begin, end)
        self.values.append(value)
        self.begins.append(begin)
        if rule.recurs:
            while self.pending and self.pending[-1][0] > len(self.stack):
                self.pending.pop()
            if self.pending and self.pending[-1][0] == len(self.stack):
                _, opening, close = self.pending.pop()
                if close == following:
                    self.known[self.stack[-1], self.text[opening:close]] = value


class Automaton:
    """The tables of a grammar.

    `recurring` names rules whose texts come again and again, each with the character behind them. Equal texts in one
    state of the automaton have one value, built once; it may not depend on its place.
    """

    def __init__(self, tables: Tables, recurring: Mapping[str, str]) -> None:
        self._tables = tables
        self._ignored = frozenset(tables["ignored"])
        self._recurring = recurring
        self._rules: dict[int, _Rule] = {}
        self._scanners: dict[int, Callable[[str, int], re.Match[str] | None]] = {}
        self._states: dict[int, _State] = {}

    def read(self, text: str, start: str, actions: Mapping[str, Action], known: Known | None = None) -> Any:
        """The value of `text` as the rule `start`; raises NotInGrammar. `known` are values of recurring texts that
        these actions gave before; the new ones are added."""
        first, last = self._tables["starts"][start]
        run = _Stacks(text, actions, [first], {} if known is None else known)
        stack, states = run.stack, self._states
        place = 0  # behind the last word
        while True:
            state = states.get(stack[-1]) or self._state(stack[-1])
            if state.recurring:
                place = run.recall(state, self._recurring[state.recurring], place)
                state = states.get(stack[-1]) or self._state(stack[-1])
            found, since = state.match(text, place), place
            while found is not None and found.lastgroup in self._ignored:
                since = found.end()
                found = state.match(text, since)
            if found is None:
                if text[since:].strip(_SPACES):
                    raise NotInGrammar
                kind, begin = "$END", len(text)
            else:
                kind = found.lastgroup or ""
                begin = found.start(kind)
                if kind in state.keywords:
                    kind = state.keywords[kind].get(found[kind], kind)
            # the rules that end before this word
            target = state.shifts.get(kind)
            while target is None:
                rule = state.reductions.get(kind)
                if rule is None:
                    raise NotInGrammar
                run.reduce(rule, begin, place)
                state = states.get(stack[-1]) or self._state(stack[-1])
                number = state.gotos[rule.origin]
                stack.append(number)
                if number == last and found is None:
                    return run.values[-1]
                state = states.get(number) or self._state(number)
                target = state.shifts.get(kind)
            if found is None:
                raise NotInGrammar
            stack.append(target)
            run.values.append((found[found.lastgroup or ""], begin))
            run.begins.append(begin)
            place = found.end()

    def _state(self, number: int) -> _State:
        """A row of the table, made when a text first needs it: its scanner takes long to compile."""
        row = self._tables["rows"][number]
        scanner = self._tables["scanners"][row["scanner"]]
        if row["scanner"] not in self._scanners:
            self._scanners[row["scanner"]] = re.compile(f"[{_SPACES}]*(?:{scanner['words']})").match
        made = self._states[number] = _State(
            self._scanners[row["scanner"]],
            scanner["keywords"],
            row["shifts"],
            {terminal: self._rule(rule) for terminal, rule in row["reductions"].items()},
            row["gotos"],
            next((name for name in self._recurring if name in row["gotos"]), ""),
        )
        return made

    def _rule(self, number: int) -> _Rule:
        if number not in self._rules:
            found = self._tables["productions"][number]
            self._rules[number] = _Rule(
                found["origin"], found["size"], found["parts"], found["has_lists"], found["passes_single"],
                found["action"], found["origin"] in self._recurring,
            )  # fmt: skip
        return self._rules[number]


def _parts(rule: _Rule, symbols: list[Any]) -> list[Any]:
    assert rule.parts is not None
    if not rule.has_lists:
        return [symbols[place] if place >= 0 else None for place, _ in rule.parts]
    made: list[Any] = []
    for place, is_list in rule.parts:
        if not is_list:
            made.append(symbols[place] if place >= 0 else None)
        elif made:
            made += symbols[place]
        else:  # the list itself, so that a repetition takes linear time
            made = symbols[place]
    return made
