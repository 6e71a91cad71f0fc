"""Builds the syntax tree of Tile, each node as soon as its rule of `grammar/tile.lark` is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from stripe.ir.dtypes import DTYPES
from stripe.ir.errors import did_you_mean
from stripe.ir.span import LineTable, Span
from stripe.ir.text.brackets import MAX_NESTING
from stripe.ir.text.lalr import Action, Word
from stripe.tile import ast
from stripe.tile.diagnostics import SourceText

MAX_INTEGER = 2**63 - 1

Item: TypeAlias = object
"""A finished part: a node of the syntax tree, a tuple of them, a word, or None for an option that is left out."""

_Rule: TypeAlias = Callable[["Builder", list[Item], Span], Item]


class Builder:
    """Builds one syntax tree."""

    def __init__(self, source: SourceText, filename: str) -> None:
        self.source = source
        self._filename = filename
        self._lines = LineTable(source.text)
        self._depths: dict[
            int, tuple[int, Item]
        ] = {}  # of a node by its id; the node is kept, so that no other gets it

    @property
    def actions(self) -> dict[str, Action]:
        """The function for each rule of the grammar; they raise StripeError for an unknown dtype and the like."""
        return {
            name: self._nesting(rule) if name in _NESTING else self._action(rule)
            for name, rule in _RULES.items()
        }

    def _action(self, rule: _Rule) -> Action:
        return lambda parts, begin, end: rule(self, parts, self._span(begin, end))

    def _nesting(self, rule: _Rule) -> Action:
        """A rule that puts expressions into another; raises StripeError past `MAX_NESTING` levels of them."""

        def action(parts: list[Item], begin: int, end: int) -> Item:
            node = rule(self, parts, self._span(begin, end))
            inner: list[Item] = []
            for item in parts:
                inner += cast("tuple[Item, ...]", item) if isinstance(item, tuple) else (item,)
            depth = 1 + max(self._depths[id(part)][0] if id(part) in self._depths else 0 for part in inner)
            if depth > MAX_NESTING:
                hint = f"expressions may nest {MAX_NESTING} deep; give parts of this one names of their own"
                raise self.source.error("nested too deeply", self._lines.span(self._filename, begin), hint)
            self._depths[id(node)] = depth, node
            return node

        return action

    def _span(self, begin: int, end: int) -> Span:
        """The span of a rule, in its first line."""
        newline = self.source.text.find("\n", begin, end)
        if newline >= 0:
            end = begin + len(self.source.text[begin:newline].rstrip())
        return self._lines.span(self._filename, begin, max(1, end - begin))

    def place(self, token: Word) -> Span:
        """The span of a token."""
        return self._lines.span(self._filename, token[1], len(token[0]))

    def integer(self, token: Word) -> int:
        """The value of an INT token, at most 2^63 - 1."""
        if len(token[0]) > 30 or int(token[0]) > MAX_INTEGER:
            raise self.source.error(
                "the integer is too large", self.place(token), f"the largest is {MAX_INTEGER}"
            )
        return int(token[0])

    def dtype(self, token: Word) -> str:
        """The name of a dtype; raises StripeError for an unknown one."""
        name = token[0]
        if name not in DTYPES:
            hint = did_you_mean(name, DTYPES, f"the dtypes are {' '.join(DTYPES)}")
            raise self.source.error(f"unknown dtype '{name}'", self.place(token), hint)
        return name

    def float(self, token: Word) -> str:
        """The text of a FLOAT token that an fp64 can hold."""
        if float(token[0]) == float("inf"):
            raise self.source.error(
                "the number is too large", self.place(token), "the largest is about 1.79e308"
            )
        return token[0]


def _word(token: Item) -> str:
    """The name without its escape."""
    return cast(Word, token)[0].lstrip("#$")


def _items(parts: Sequence[Item]) -> tuple[Item, ...]:
    return tuple(part for part in parts if part is not None)


def _exprs(item: Item) -> tuple[ast.Expr, ...]:
    return cast("tuple[ast.Expr, ...]", item or ())


def _as_tuple(_: Builder, parts: list[Item], __: Span) -> Item:
    return _items(parts)


def _only(_: Builder, parts: list[Item], __: Span) -> Item:
    return parts[0]


def _text(_: Builder, parts: list[Item], __: Span) -> Item:
    return cast(Word, parts[0])[0]


def _group(_: Builder, parts: list[Item], __: Span) -> Item:
    inner = parts[0]
    return replace(inner, is_bracketed=True) if isinstance(inner, ast.Cond) else inner


def _function(builder: Builder, parts: list[Item], span: Span) -> Item:
    name, inputs, outputs, *statements = parts
    return ast.Function(
        cast("tuple[ast.Input, ...]", inputs or ()), cast("tuple[ast.Output, ...]", outputs),
        cast("tuple[ast.Stmt, ...]", tuple(statements)), cast("str", name or ""), (), span, builder.source.text,
    )  # fmt: skip


def _function_name(_: Builder, parts: list[Item], __: Span) -> Item:
    return _word(parts[0])


def _input(fixed: bool, typed: bool) -> _Rule:
    def rule(builder: Builder, parts: list[Item], span: Span) -> Item:
        dims = cast("tuple[ast.InputDim, ...]", parts[1] or ()) if fixed else None
        token = cast(Word, parts[-1])
        dtype, dtype_span = (builder.dtype(token), builder.place(token)) if typed else (None, span)
        return ast.Input(_word(parts[0]), dims, dtype, span, dtype_span)

    return rule


def _input_dim(builder: Builder, parts: list[Item], span: Span) -> Item:
    size = builder.integer(cast(Word, parts[1])) if parts[1] is not None else None
    return ast.InputDim(_word(parts[0]), size, span)


def _output(_: Builder, parts: list[Item], span: Span) -> Item:
    return ast.Output(_word(parts[0]), span)


def _attribute(_: Builder, parts: list[Item], span: Span) -> Item:
    return ast.Attribute(_word(parts[0]), cast("tuple[str, ...]", parts[1] or ()), span)


def _words(_: Builder, parts: list[Item], __: Span) -> Item:
    return tuple(map(_word, parts))


def _statement_contraction(_: Builder, parts: list[Item], __: Span) -> Item:
    *attributes, contraction = parts
    found = cast("tuple[ast.Attribute, ...]", tuple(attributes))
    return replace(cast(ast.Contraction, contraction), attributes=found)


def _statement_assign(builder: Builder, parts: list[Item], _: Span) -> Item:
    *attributes, target, last = parts
    found = cast("tuple[ast.Attribute, ...]", tuple(attributes))
    value, start = cast(ast.Expr, last), builder.place(cast(Word, target))
    span = start
    if value.span.line == start.line:
        length = value.span.column + value.span.length - start.column
        span = Span(start.filename, start.line, start.column, length)
    return ast.Assignment(_word(target), value, found, span, start)


def _contraction(_: Builder, parts: list[Item], span: Span) -> Item:
    target, agg, combination, bounds, *suffixes = parts
    output, sizes = cast("tuple[ast.Access, tuple[ast.Expr, ...] | None]", target)
    comb, inputs = cast("tuple[ast.CombOp, tuple[ast.Access, ...]]", combination)
    default = next((name for name in reversed(suffixes) if isinstance(name, ast.Name)), None)
    return ast.Contraction(
        output, sizes, cast(ast.AggOp, agg), comb, inputs, cast("tuple[ast.Bound, ...]", bounds),
        no_defract=None in suffixes, default=default, span=span,
    )  # fmt: skip


def _target_bare(builder: Builder, parts: list[Item], _: Span) -> Item:
    token = cast(Word, parts[0])
    return ast.Access(_word(token), _exprs(parts[1] if len(parts) > 1 else None), builder.place(token)), None


def _target_sized(builder: Builder, parts: list[Item], _: Span) -> Item:
    token = cast(Word, parts[0])
    return ast.Access(_word(token), _exprs(parts[1]), builder.place(token)), _exprs(parts[2])


def _combination(comb: ast.CombOp | None) -> _Rule:
    def rule(_: Builder, parts: list[Item], __: Span) -> Item:
        accesses = tuple(part for part in parts if isinstance(part, ast.Access))
        return (parts[1] if comb is None else comb), accesses

    return rule


def _access(_: Builder, parts: list[Item], span: Span) -> Item:
    return ast.Access(_word(parts[0]), _exprs(parts[1]), span)


def _bound(_: Builder, parts: list[Item], span: Span) -> Item:
    return ast.Bound(cast(ast.Expr, parts[0]), cast(ast.Expr, parts[1]), span)


def _no_defract(_: Builder, __: list[Item], ___: Span) -> Item:
    return None


def _name(_: Builder, parts: list[Item], span: Span) -> Item:
    return ast.Name(_word(parts[0]), span)


def _index(_: Builder, parts: list[Item], span: Span) -> Item:
    return ast.IndexName(_word(parts[0]), span)


def _integer(builder: Builder, parts: list[Item], span: Span) -> Item:
    return ast.IntLit(builder.integer(cast(Word, parts[0])), span)


def _float(builder: Builder, parts: list[Item], span: Span) -> Item:
    return ast.FloatLit(builder.float(cast(Word, parts[0])), span)


def _scaled(builder: Builder, parts: list[Item], span: Span) -> Item:
    factor, name = cast(Word, parts[0]), cast(Word, parts[1])
    index = ast.IndexName(_word(name), builder.place(name))
    return ast.Chain(ast.IntLit(builder.integer(factor), builder.place(factor)), (("*", index),), span)


def _chain(_: Builder, parts: list[Item], span: Span) -> Item:
    head, *rest = parts
    first = cast(ast.Expr, head)
    pairs = tuple(
        (str(op), cast(ast.Expr, operand)) for op, operand in zip(rest[::2], rest[1::2], strict=True)
    )
    level = ast.LEVELS[pairs[0][0]]
    if isinstance(first, ast.Chain) and ast.level(first) == level and pairs[0][0] not in ast.NON_ASSOCIATIVE:
        return ast.Chain(first.first, first.rest + pairs, span)  # (a + b) + c is a + b + c, and 3i/2 is 3*i/2
    return ast.Chain(first, pairs, span)


def _unary(_: Builder, parts: list[Item], span: Span) -> Item:
    operator, operand = cast(Word, parts[0])[0], parts[1]
    if operator == "-" and isinstance(operand, ast.IntLit):
        return ast.IntLit(-operand.value, span)
    if operator == "-" and isinstance(operand, ast.FloatLit):
        text = operand.text
        return ast.FloatLit(text[1:] if text.startswith("-") else f"-{text}", span)
    return ast.Unary(operator, cast(ast.Expr, operand), span)


def _cond(_: Builder, parts: list[Item], span: Span) -> Item:
    condition, then, other = (cast(ast.Expr, part) for part in parts)
    return ast.Cond(condition, then, other, span)


def _call(_: Builder, parts: list[Item], span: Span) -> Item:
    return ast.Call(_word(parts[0]), _exprs(parts[1]), span)


_NESTING = frozenset({"chain", "unary", "cond", "call", "group"})

_RULES: dict[str, _Rule] = {
    "file": _as_tuple, "function": _function, "function_name": _function_name,
    "only": _only, "inputs": _as_tuple, "outputs": _as_tuple, "output": _output,
    "input_any": _input(fixed=False, typed=False), "input_any_typed": _input(fixed=False, typed=True),
    "input_fixed": _input(fixed=True, typed=False), "input_fixed_typed": _input(fixed=True, typed=True),
    "input_dims": _as_tuple, "input_dim": _input_dim, "attribute": _attribute, "words": _words,
    "statement_contraction": _statement_contraction, "statement_assign": _statement_assign,
    "contraction": _contraction, "target_bare": _target_bare, "target_sized": _target_sized, "agg": _text,
    "comb": _text, "unary_con": _combination(""), "binary_con": _combination(None), "ternary_con": _combination("?"),
    "access": _access, "bounds": _as_tuple, "bound": _bound, "no_defract": _no_defract, "default": _name,
    "polys": _as_tuple, "exprs": _as_tuple, "chain": _chain, "unary": _unary, "integer": _integer, "float": _float,
    "name": _name, "index": _index, "scaled": _scaled, "group": _group, "cond": _cond, "call": _call,
    "xor_op": _text, "or_op": _text, "and_op": _text, "equality_op": _text, "comparison_op": _text,
    "shift_op": _text, "sum_op": _text, "product_op": _text,
}  # fmt: skip
