"""Builds the syntax tree of Tile, each node as soon as its rule of `grammar/tile.lark` is complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, TypeVar, cast

from stripe.ir.dtypes import DTYPES
from stripe.ir.errors import did_you_mean
from stripe.ir.span import LineTable, Span
from stripe.ir.text.brackets import MAX_NESTING
from stripe.ir.text.lalr import Action, Word
from stripe.tile import ast
from stripe.tile.diagnostics import SourceText

MAX_INTEGER = 2**63 - 1
_NESTING = frozenset({"chain", "unary", "cond", "call", "group"})

Item: TypeAlias = object
"""A finished part: a node of the syntax tree, a tuple of them, a word, or None for an option that is left out."""

_Typed = TypeVar("_Typed", ast.Input, ast.Contraction)

_Rule: TypeAlias = Callable[[list[Item], Span], Item]


def _word(token: Item) -> str:
    """The name without its escape."""
    return cast(Word, token)[0].lstrip("#$")


def _accesses(parts: list[Item]) -> tuple[ast.TensorAccess, ...]:
    return tuple(part for part in parts if isinstance(part, ast.TensorAccess))


def _exprs(item: Item) -> tuple[ast.Expr, ...]:
    return cast("tuple[ast.Expr, ...]", item or ())


class SyntaxBuilder:
    """Builds one syntax tree."""

    def __init__(self, source: SourceText, filename: str) -> None:
        self._source = source
        self._filename = filename
        self._lines = LineTable(source.text)
        self._depths: dict[int, tuple[int, Item]] = {}
        """The depth of a node by its id; the node is kept, so that no other gets it."""

    @property
    def actions(self) -> dict[str, Action]:
        """The method for each rule of the grammar, which has its name; they raise StripeError for an unknown dtype and
        the like."""
        names = (name for name in vars(SyntaxBuilder) if not name.startswith("_") and name != "actions")
        return {name: self._action(getattr(self, name), nests=name in _NESTING) for name in names}

    def _action(self, rule: _Rule, *, nests: bool) -> Action:
        """A rule on spans. A rule that puts expressions into another raises StripeError past `MAX_NESTING` levels."""

        def action(parts: list[Item], begin: int, end: int) -> Item:
            node = rule(parts, self._span(begin, end))
            if nests:
                inner: list[Item] = []
                for item in parts:
                    inner += cast("tuple[Item, ...]", item) if isinstance(item, tuple) else (item,)
                depth = 1 + max(
                    self._depths[id(part)][0] if id(part) in self._depths else 0 for part in inner
                )
                if depth > MAX_NESTING:
                    hint = (
                        f"expressions may nest {MAX_NESTING} deep; give parts of this one names of their own"
                    )
                    raise self._source.error(
                        "nested too deeply", self._lines.span(self._filename, begin), hint
                    )
                self._depths[id(node)] = depth, node
            return node

        return action

    def _span(self, begin: int, end: int) -> Span:
        """The span of a rule, in its first line."""
        newline = self._source.text.find("\n", begin, end)
        if newline >= 0:
            end = begin + len(self._source.text[begin:newline].rstrip())
        return self._lines.span(self._filename, begin, max(1, end - begin))

    def _place(self, token: Word) -> Span:
        """The span of a token."""
        return self._lines.span(self._filename, token[1], len(token[0]))

    def _integer_of(self, token: Word) -> int:
        """The value of an INT token, at most 2^63 - 1."""
        if len(token[0]) > 30 or int(token[0]) > MAX_INTEGER:
            raise self._source.error(
                "the integer is too large", self._place(token), f"the largest is {MAX_INTEGER}"
            )
        return int(token[0])

    def _float_of(self, token: Word) -> str:
        """The text of a FLOAT token that an fp64 can hold."""
        if float(token[0]) == float("inf"):
            raise self._source.error(
                "the number is too large", self._place(token), "the largest is about 1.79e308"
            )
        return token[0]

    def function(self, parts: list[Item], span: Span) -> Item:
        name, inputs, outputs, *statements = parts
        return ast.Function(
            cast("tuple[ast.Input, ...]", inputs or ()), cast("tuple[ast.Output, ...]", outputs),
            cast("tuple[ast.Stmt, ...]", tuple(statements)), cast("str", name or ""), (), span, self._source.text,
        )  # fmt: skip

    def function_name(self, parts: list[Item], __: Span) -> Item:
        return _word(parts[0])

    def inputs(self, parts: list[Item], __: Span) -> Item:
        return tuple(part for part in parts if part is not None)

    file = outputs = input_dims = bounds = polys = exprs = inputs

    def output(self, parts: list[Item], span: Span) -> Item:
        return ast.Output(_word(parts[0]), span)

    def input_any(self, parts: list[Item], span: Span) -> Item:
        return ast.Input(_word(parts[0]), None, None, span, span)

    def input_fixed(self, parts: list[Item], span: Span) -> Item:
        return ast.Input(_word(parts[0]), cast("tuple[ast.InputDim, ...]", parts[1] or ()), None, span, span)

    def input_any_typed(self, parts: list[Item], span: Span) -> Item:
        return self._typed(ast.Input(_word(parts[0]), None, None, span), cast(Word, parts[-1]))

    def input_fixed_typed(self, parts: list[Item], span: Span) -> Item:
        dims = cast("tuple[ast.InputDim, ...]", parts[1] or ())
        return self._typed(ast.Input(_word(parts[0]), dims, None, span), cast(Word, parts[-1]))

    def _typed(self, plain: _Typed, dtype: Word) -> _Typed:
        # the name of a dtype; raises StripeError for an unknown one
        name = dtype[0]
        if name not in DTYPES:
            hint = did_you_mean(name, DTYPES, f"the dtypes are {' '.join(DTYPES)}")
            raise self._source.error(f"unknown dtype '{name}'", self._place(dtype), hint)
        return replace(plain, dtype=name, dtype_span=self._place(dtype))

    def input_dim(self, parts: list[Item], span: Span) -> Item:
        size = self._integer_of(cast(Word, parts[1])) if parts[1] is not None else None
        return ast.InputDim(_word(parts[0]), size, span)

    def attribute(self, parts: list[Item], span: Span) -> Item:
        return ast.Attribute(_word(parts[0]), cast("tuple[str, ...]", parts[1] or ()), span)

    def words(self, parts: list[Item], __: Span) -> Item:
        return tuple(map(_word, parts))

    def statement_contraction(self, parts: list[Item], __: Span) -> Item:
        *attributes, contraction = parts
        found = cast("tuple[ast.Attribute, ...]", tuple(attributes))
        return replace(cast(ast.Contraction, contraction), attributes=found)

    def statement_assign(self, parts: list[Item], _: Span) -> Item:
        *attributes, target, last = parts
        found = cast("tuple[ast.Attribute, ...]", tuple(attributes))
        value, start = cast(ast.Expr, last), self._place(cast(Word, target))
        span = start
        if value.span.line == start.line:
            length = value.span.column + value.span.length - start.column
            span = Span(start.filename, start.line, start.column, length)
        return ast.Assignment(_word(target), value, found, span, start)

    def contraction(self, parts: list[Item], span: Span) -> Item:
        target, dtype, agg, combination, bounds, *suffixes = parts
        output, sizes = cast("tuple[ast.TensorAccess, tuple[ast.Expr, ...] | None]", target)
        comb, inputs = cast("tuple[ast.CombOp, tuple[ast.TensorAccess, ...]]", combination)
        default = next((name for name in reversed(suffixes) if isinstance(name, ast.Name)), None)
        node = ast.Contraction(
            output, sizes, cast(ast.AggOp, agg), comb, inputs, cast("tuple[ast.Bound, ...]", bounds),
            no_defract=None in suffixes, default=default, span=span,
        )  # fmt: skip
        return node if dtype is None else self._typed(node, cast(Word, dtype))

    def target_bare(self, parts: list[Item], _: Span) -> Item:
        token = cast(Word, parts[0])
        return ast.TensorAccess(
            _word(token), _exprs(parts[1] if len(parts) > 1 else None), self._place(token)
        ), None

    def target_sized(self, parts: list[Item], _: Span) -> Item:
        token = cast(Word, parts[0])
        return ast.TensorAccess(_word(token), _exprs(parts[1]), self._place(token)), _exprs(parts[2])

    def agg(self, parts: list[Item], __: Span) -> Item:
        return cast(Word, parts[0])[0]

    comb = xor_op = or_op = and_op = equality_op = comparison_op = shift_op = sum_op = product_op = agg

    def unary_con(self, parts: list[Item], __: Span) -> Item:
        return "", _accesses(parts)

    def binary_con(self, parts: list[Item], __: Span) -> Item:
        return parts[1], _accesses(parts)

    def ternary_con(self, parts: list[Item], __: Span) -> Item:
        return "?", _accesses(parts)

    def access(self, parts: list[Item], span: Span) -> Item:
        return ast.TensorAccess(_word(parts[0]), _exprs(parts[1]), span)

    def bound(self, parts: list[Item], span: Span) -> Item:
        return ast.Bound(cast(ast.Expr, parts[0]), cast(ast.Expr, parts[1]), span)

    def no_defract(self, __: list[Item], ___: Span) -> Item:
        return None

    def default(self, parts: list[Item], span: Span) -> Item:
        return ast.Name(_word(parts[0]), span)

    name = default

    def chain(self, parts: list[Item], span: Span) -> Item:
        head, *rest = parts
        first = cast(ast.Expr, head)
        pairs = tuple(
            (str(op), cast(ast.Expr, operand)) for op, operand in zip(rest[::2], rest[1::2], strict=True)
        )
        level = ast.LEVELS[pairs[0][0]]
        if (
            isinstance(first, ast.Chain)
            and ast.level(first) == level
            and pairs[0][0] not in ast.NON_ASSOCIATIVE
        ):
            return ast.Chain(
                first.first, first.rest + pairs, span
            )  # (a + b) + c is a + b + c, and 3i/2 is 3*i/2
        return ast.Chain(first, pairs, span)

    def unary(self, parts: list[Item], span: Span) -> Item:
        operator, operand = cast(Word, parts[0])[0], parts[1]
        if operator == "-" and isinstance(operand, ast.IntLit):
            return ast.IntLit(-operand.value, span)
        if operator == "-" and isinstance(operand, ast.FloatLit):
            text = operand.text
            return ast.FloatLit(text[1:] if text.startswith("-") else f"-{text}", span)
        return ast.Unary(operator, cast(ast.Expr, operand), span)

    def integer(self, parts: list[Item], span: Span) -> Item:
        return ast.IntLit(self._integer_of(cast(Word, parts[0])), span)

    def float(self, parts: list[Item], span: Span) -> Item:
        return ast.FloatLit(self._float_of(cast(Word, parts[0])), span)

    def index(self, parts: list[Item], span: Span) -> Item:
        return ast.IndexName(_word(parts[0]), span)

    def scaled(self, parts: list[Item], span: Span) -> Item:
        factor, name = cast(Word, parts[0]), cast(Word, parts[1])
        index = ast.IndexName(_word(name), self._place(name))
        return ast.Chain(ast.IntLit(self._integer_of(factor), self._place(factor)), (("*", index),), span)

    def group(self, parts: list[Item], __: Span) -> Item:
        inner = parts[0]
        return replace(inner, is_bracketed=True) if isinstance(inner, ast.Cond) else inner

    def cond(self, parts: list[Item], span: Span) -> Item:
        condition, then, other = (cast(ast.Expr, part) for part in parts)
        return ast.Cond(condition, then, other, span)

    def call(self, parts: list[Item], span: Span) -> Item:
        return ast.Call(_word(parts[0]), _exprs(parts[1]), span)
