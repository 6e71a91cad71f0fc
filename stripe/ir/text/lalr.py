"""A fast run of lark's LALR tables: values instead of trees.

lark makes a `Token` of eight fields for each word and a `Tree` for each rule, which takes longer than the IR that is
built of them. This run takes tables and terminals from a `lark.Lark`, so that the grammar stays the only definition
of the language; a word is a pair of its text and its offset, and a rule calls its action as soon as it is complete.
A text that does not fit is left to lark, which knows what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import lark
from lark.lexer import _create_unless  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]

Word: TypeAlias = tuple[str, int]
"""A word of the text and the offset where it begins."""

Action: TypeAlias = Callable[[list[Any], int, int], Any]
"""The value of a rule from the values of its parts, and the offsets of its first character and behind its last."""

_SPACES = " \t\r\n\f"
"""Skipped before each word: white space, with which no word of a grammar begins."""

_LONGEST = 400
"""Characters of the longest text that is looked up among the texts so far."""


class NotInGrammar(Exception):
    """The text does not fit the grammar."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A production: its number of symbols, and its parts as (position, whether its members are the parts), at position
    -1 an option that is left out; None when every symbol is a part. `action` is empty for a list of parts.
    """

    origin: str
    size: int
    parts: tuple[tuple[int, bool], ...] | None
    has_lists: bool
    passes_single: bool
    action: str
    recurs: bool


@dataclass(frozen=True, slots=True)
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
    values: list[Any] = field(default_factory=list[Any])
    begins: list[int] = field(default_factory=list[int])
    known: dict[tuple[int, str], Any] = field(default_factory=dict[tuple[int, str], Any])
    """The values of recurring texts by state and text."""
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

    def __init__(self, parser: lark.Lark, recurring: Mapping[str, str]) -> None:
        front: Any = parser.parser
        self._table: Any = front.parser._parse_table
        self._lexers: Any = front.lexer.lexers
        self._ignored = frozenset[str](front.lexer_conf.ignore)
        self._with_nones = bool(parser.options.maybe_placeholders)
        self._recurring = recurring
        self._rules: dict[Any, _Rule] = {}
        self._scanners: dict[int, Any] = {}
        self._states: dict[int, _State] = {}

    def read(self, text: str, start: str, actions: Mapping[str, Action]) -> Any:
        """The value of `text` as the rule `start`; raises NotInGrammar."""
        run = _Stacks(text, actions, [self._table.start_states[start]])
        last, stack, states = self._table.end_states[start], run.stack, self._states
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
        shifts: dict[str, int] = {}
        reductions: dict[str, _Rule] = {}
        gotos: dict[str, int] = {}
        for name, (_, argument) in self._table.states[number].items():
            if not isinstance(argument, int):
                reductions[name] = self._rules.get(argument) or self._rule(argument)
            elif name.isupper() or name.startswith("$"):
                shifts[name] = argument
            else:
                gotos[name] = argument
        lexer = self._lexers[number]
        if id(lexer) not in self._scanners:
            self._scanners[id(lexer)] = _scanner(lexer)
        match, keywords = self._scanners[id(lexer)]
        recurring = next((name for name in self._recurring if name in gotos), "")
        made = _State(match, keywords, shifts, reductions, gotos, recurring)
        self._states[number] = made
        return made

    def _rule(self, rule: Any) -> _Rule:
        """The production as lark's `ParseTreeBuilder` understands it."""
        nones = rule.options.empty_indices if self._with_nones else ()
        parts: list[tuple[int, bool]] = []
        places = iter(range(len(rule.expansion)))
        for is_none in nones or [False] * len(rule.expansion):
            if is_none:
                parts.append((-1, False))
                continue
            place = next(places)
            symbol = rule.expansion[place]
            if rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
                parts.append((place, not symbol.is_term and symbol.name.startswith("_")))
        whole = [(place, False) for place in range(len(rule.expansion))]
        origin = str(rule.origin.name)
        made = _Rule(
            origin, len(rule.expansion), None if parts == whole else tuple(parts),
            any(is_list for _, is_list in parts), rule.options.expand1 and not rule.alias,
            "" if origin.startswith("_") else str(rule.alias or origin), origin in self._recurring,
        )  # fmt: skip
        self._rules[rule] = made
        return made


def _scanner(lexer: Any) -> tuple[Callable[[str, int], re.Match[str] | None], dict[str, dict[str, str]]]:
    """The pattern of all words that a lexer of lark knows, and the keywords among the words of each kind."""
    terminals, callbacks = cast(Any, _create_unless)(lexer.terminals, lexer.g_regex_flags, re, False)
    words = "|".join(f"(?P<{item.name}>{item.pattern.to_regexp()})" for item in terminals)
    keywords = {
        str(kind): {str(item.pattern.value): str(item.name) for item in unless.scanner.terminals}
        for kind, unless in callbacks.items()
    }
    return re.compile(f"[{_SPACES}]*(?:{words})", lexer.g_regex_flags).match, keywords


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
