"""Terms that describe the structure of a block, their syntax, and matching them against patterns.

    block({ref(in, [dim(0, {term(1, M)}, _, _), dim(0, {term(1, K)}, _, _)]), ... | _}, {idx(M, SIZE) | _})

A capital letter begins a variable, `_` stands for anything, other words are atoms. `[a, b]` is a list, `{a, b}` a set,
whose order does not matter; `| Rest` takes the elements that are left, which there may not be without it. `//`
begins a comment. A variable that occurs twice has to stand for the same.

A block is `block(refs, idxs)`; a view `ref(direction, dims, aggregation, dtype)`, of which a pattern may leave out the
last two; a dimension `dim(offset, terms, size, stride)` with `term(coefficient, index)` for each summand of the access;
an index `idx(name, range)`. Refs are the block's views in order, idxs the indices that it iterates.

Indices of range 1 are pruned from blocks. A variable that is the only index of some dimension may therefore stand for
one of them where the access is constant (the batch of one image): its `term` is in no access, its range is 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from stripe.ir import Block, StripeError


@dataclass(frozen=True, slots=True)
class Variable:
    """Stands for any term, everywhere the same; `_` for anything."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Structure:
    """`name(arguments)`."""

    name: str
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Items:
    """A list, or a set when the order does not matter; `rest` takes the others."""

    items: tuple[Term, ...]
    ordered: bool = True
    rest: Variable | None = None

    def __str__(self) -> str:
        first, last = "[]" if self.ordered else "{}"
        rest = f" | {self.rest}" if self.rest else ""
        return f"{first}{', '.join(map(str, self.items))}{rest}{last}"


Term: TypeAlias = int | str | Variable | Structure | Items
"""A number, an atom, or one of the classes. A term without variables is *ground*."""

Bindings: TypeAlias = Mapping[str, Term]
"""The values of the variables of a pattern."""

_TOKENS = re.compile(
    r"(?P<skip>//[^\n]*|\s+)|(?P<number>[+-]?\d+)|(?P<word>[A-Za-z_][\w.']*)|(?P<mark>[()\[\]{},|])|(?P<bad>.)",
    re.DOTALL,
)


def parse_term(text: str) -> Term:
    """The term that `text` spells; StripeError, which shows the place, when it spells none."""
    parser = _TermParser(text)
    term = parser.term()
    if parser.peek:
        parser.fail("expected the end")
    return term


class _TermParser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        for found in _TOKENS.finditer(text):
            if found.lastgroup == "bad":
                self._at(found.start(), f"'{found[0]}' has no place in a pattern")
            if found.lastgroup != "skip":
                self._tokens.append((found[0], found.start()))
        self._place = 0

    @property
    def peek(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    def term(self) -> Term:
        token = self.peek
        if token in ("[", "{"):
            return self._items()
        if not token or not re.match(r"[\w+-]", token):
            self.fail("expected a term")
        self._place += 1
        if token.lstrip("+-").isdigit():
            return int(token)
        if self.peek == "(":
            self._place += 1
            arguments, rest = self._until(")")
            if rest is not None:
                self.fail("a rest stands in lists and sets only")
            return Structure(token, arguments)
        return Variable(token) if token[0].isupper() or token == "_" else token

    def _items(self) -> Items:
        ordered = self.peek == "["
        self._place += 1
        items, rest = self._until("]" if ordered else "}")
        return Items(items, ordered, rest)

    def _until(self, end: str) -> tuple[tuple[Term, ...], Variable | None]:
        """Terms between commas (one may stand behind the last), then perhaps a rest."""
        items: list[Term] = []
        rest: Variable | None = None
        while self.peek not in (end, "|"):
            items.append(self.term())
            if self.peek == ",":
                self._place += 1
            elif self.peek not in (end, "|"):
                self.fail(f"expected ',' or '{end}'")
        if self.peek == "|":
            self._place += 1
            found = self.term()
            if not isinstance(found, Variable):
                self.fail("expected a variable for the rest")
            rest = found
        if self.peek != end:
            self.fail(f"expected '{end}'")
        self._place += 1
        return tuple(items), rest

    def fail(self, message: str) -> NoReturn:
        """Raises StripeError for the next token."""
        found = f", found '{self.peek}'" if self.peek else ", found the end"
        place = self._tokens[self._place][1] if self._place < len(self._tokens) else len(self._text)
        self._at(place, message + found)

    def _at(self, place: int, message: str) -> NoReturn:
        line = self._text.count("\n", 0, place) + 1
        column = place - (self._text.rfind("\n", 0, place) + 1) + 1
        raise StripeError(f"pattern, line {line}, column {column}: {message}")


_PRUNED = Structure("pruned", ())
"""The value of a variable that stands for a pruned index."""


def find(pattern: Term, block: Block) -> Bindings | None:
    """The first match of `pattern` in a block in which each pruned index is the only one of some dimension."""
    for bound in matches(pattern, term_of(block), {}):
        pruned = (name for name, value in bound.items() if value == _PRUNED)
        if all(_alone(name) in bound for name in pruned):
            return {name: value for name, value in bound.items() if value != _PRUNED}
    return None


def _alone(name: str) -> str:
    """The key under which bindings say that a pruned index is the only one of a dimension; no variable has a space."""
    return f"{name} alone"


def matches(pattern: Term, ground: Term, bound: Bindings) -> Iterator[Bindings]:
    """Each way to give the variables of `pattern` values, `bound` given, so that it becomes `ground`."""
    match pattern:
        case Variable("_"):
            yield bound
        case Variable(name):
            if name not in bound:
                yield {**bound, name: ground}
            elif bound[name] == ground:
                yield bound
        case Structure(name, arguments):
            if not isinstance(ground, Structure) or ground.name != name:
                return
            given = ground.arguments
            if name == "ref" and len(arguments) >= 2:
                given = given[: len(arguments)]
            yield from _items(arguments, given, None, bound, ordered=True)
        case Items(items, ordered, rest):
            if isinstance(ground, Items):
                yield from _items(items, ground.items, rest, bound, ordered=ordered)
                if len(items) == 1 and not ground.items:
                    for found in _pruned(items[0], bound):
                        yield {**found, _alone(str(_index_of(items[0]))): 1}
        case _:
            if pattern == ground:
                yield bound


def _items(
    patterns: tuple[Term, ...],
    ground: tuple[Term, ...],
    rest: Variable | None,
    bound: Bindings,
    *,
    ordered: bool,
) -> Iterator[Bindings]:
    if not patterns:
        if rest is not None:
            yield from matches(rest, Items(ground, ordered), bound)
        elif not ground:
            yield bound
        return
    for number in range(min(1, len(ground)) if ordered else len(ground)):
        others = ground[:number] + ground[number + 1 :]
        for found in matches(patterns[0], ground[number], bound):
            yield from _items(patterns[1:], others, rest, found, ordered=ordered)
    for found in _pruned(patterns[0], bound):
        yield from _items(patterns[1:], ground, rest, found, ordered=ordered)


def _index_of(pattern: Term) -> Variable | None:
    """The variable index of a `term` or an `idx` of a pattern."""
    if isinstance(pattern, Structure) and len(pattern.arguments) == 2:
        index = {"term": pattern.arguments[1], "idx": pattern.arguments[0]}.get(pattern.name)
        if isinstance(index, Variable) and index.name != "_":
            return index
    return None


def _pruned(pattern: Term, bound: Bindings) -> Iterator[Bindings]:
    """The bindings with which a `term` or an `idx` belongs to a pruned index: its range, and any factor, is 1."""
    index = _index_of(pattern)
    if index is None or bound.get(index.name, _PRUNED) != _PRUNED:
        return
    assert isinstance(pattern, Structure)
    if pattern.name == "idx":
        yield from matches(pattern.arguments[1], 1, {**bound, index.name: _PRUNED})
    else:
        factor = pattern.arguments[0]
        free = isinstance(factor, Variable) and factor.name not in bound
        yield from matches(factor if free else 1, 1, {**bound, index.name: _PRUNED})


def variables(term: Term) -> set[str]:
    """The names of the variables of a pattern."""
    match term:
        case Variable(name):
            return {name} - {"_"}
        case Structure(_, arguments):
            return set[str]().union(*map(variables, arguments))
        case Items(items, _, rest):
            return set[str]().union(*map(variables, items), variables(rest) if rest else ())
        case _:
            return set()


def term_of(block: Block) -> Structure:
    """The ground term that describes a block."""
    views: list[Term] = []
    for ref in block.refinements:
        dims: list[Term] = []
        for affine, dim in zip(ref.access, ref.dims, strict=True):
            terms = tuple(Structure("term", (factor, str(atom))) for atom, factor in affine.terms)
            dims.append(Structure("dim", (affine.offset, Items(terms), dim.size, dim.stride)))
        if not ref.is_alloc:
            views.append(Structure("ref", (ref.dir.value, Items(tuple(dims)), ref.agg.value, ref.dtype.name)))
    idxs = tuple(Structure("idx", (index.name, index.range)) for index in block.iterated)
    return Structure("block", (Items(tuple(views)), Items(idxs)))
