"""LALR tables computed by lark, as plain data for `stripe.ir.text.lalr`."""

from __future__ import annotations

import re
from typing import Any, cast

import lark
from lark.lexer import _create_unless  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]

from stripe.ir.text.lalr import LalrState, Production, Scanner, Tables


def tables_of(parser: lark.Lark) -> Tables:
    """The tables of a parser."""
    front: Any = parser.parser
    table: Any = front.parser._parse_table
    with_nones = bool(parser.options.maybe_placeholders)
    lexers: dict[int, int] = {}
    rules: dict[Any, int] = {}
    scanners: list[Scanner] = []
    productions: list[Production] = []
    rows: list[LalrState] = []
    # states numbered as a walk from the start rules meets them, since lark's numbers differ from run to run
    numbers = {state: number for number, (_, state) in enumerate(sorted(table.start_states.items()))}
    for state in (queue := list(numbers)):
        row: LalrState = {"scanner": 0, "shifts": {}, "gotos": {}, "reductions": {}}
        for name, (_, argument) in sorted(table.states[state].items()):
            if isinstance(argument, int):
                if argument not in numbers:
                    numbers[argument] = len(numbers)
                    queue.append(argument)
                row["shifts" if name.isupper() or name.startswith("$") else "gotos"][name] = numbers[argument]
                continue
            if argument not in rules:
                rules[argument] = len(rules)
                productions.append(_production(argument, with_nones))
            row["reductions"][name] = rules[argument]
        lexer = front.lexer.lexers[state]  # the states of one set of words share a lexer
        if id(lexer) not in lexers:
            lexers[id(lexer)] = len(lexers)
            scanners.append(_scanner(lexer))
        row["scanner"] = lexers[id(lexer)]
        rows.append(row)
    return {
        "starts": {
            str(name): (numbers[first], numbers[table.end_states[name]])
            for name, first in sorted(table.start_states.items())
        },
        "ignored": [str(name) for name in front.lexer_conf.ignore],
        "productions": productions,
        "scanners": scanners,
        "rows": rows,
    }


def _production(rule: Any, with_nones: bool) -> Production:
    """The production as lark's `ParseTreeBuilder` understands it."""
    nones = rule.options.empty_indices if with_nones else ()
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
    origin = str(rule.origin.name)
    return {
        "origin": origin,
        "size": len(rule.expansion),
        "parts": None if parts == [(place, False) for place in range(len(rule.expansion))] else parts,
        "has_lists": any(is_list for _, is_list in parts),
        "passes_single": bool(rule.options.expand1 and not rule.alias),
        "action": "" if origin.startswith("_") else str(rule.alias or origin),
    }


def _scanner(lexer: Any) -> Scanner:
    """The words that a lexer of lark knows; a keyword is a word of another kind that lark renames."""
    terminals, callbacks = cast(Any, _create_unless)(lexer.terminals, lexer.g_regex_flags, re, False)
    return {
        "words": "|".join(f"(?P<{item.name}>{item.pattern.to_regexp()})" for item in terminals) or "(?!)",
        "keywords": {
            str(kind): {str(item.pattern.value): str(item.name) for item in unless.scanner.terminals}
            for kind, unless in callbacks.items()
        },
    }
