"""The syntax tree of Tile. Every node carries the span of its text, which equality ignores.

Runs of binary operators of one precedence are one `Chain`, not a spine of pairs, so that a tree is as deep as its
brackets are and a sum of ten thousand terms is no deeper than a sum of two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Literal, TypeAlias

from stripe.ir.frozen import frozen
from stripe.ir.span import Span

NOWHERE = Span("<built-in>", 1, 1)


@frozen
class IntLit:
    """An integer. The parser folds a minus sign before a literal into it."""

    value: int
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class FloatLit:
    """A float as it was written, a minus sign before it included, so that printing loses nothing."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def value(self) -> float:
        return float(self.text)


@frozen
class Name:
    """A tensor, a dimension, or a constant."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class IndexName:
    """An index of a contraction; occurs in polynomials only."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class Unary:
    """`-x` or `~x`."""

    op: str
    operand: Expr
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class Chain:
    """`first op operand op operand …`, associated to the left; the operators have one precedence."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class Cond:
    """`condition ? then : other`; `is_bracketed` when brackets stand around it in the text."""

    condition: Expr
    then: Expr
    other: Expr
    span: Span = field(default=NOWHERE, compare=False)
    is_bracketed: bool = field(default=False, compare=False)


@frozen
class Call:
    """`function(arguments)`."""

    function: str
    arguments: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


Expr: TypeAlias = IntLit | FloatLit | Name | IndexName | Unary | Chain | Cond | Call
"""An element-wise expression, or (without floats, calls and conditions) an index polynomial."""


@frozen
class Attribute:
    """`[[name(parameters)]]` before a statement."""

    name: str
    parameters: tuple[str, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class TensorAccess:
    """A tensor at index polynomials: `A[i + 1, 2*k]`."""

    tensor: str
    indices: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class Bound:
    """The constraint `polynomial < limit`, which means 0 <= polynomial < limit and polynomial an integer."""

    polynomial: Expr
    limit: Expr
    span: Span = field(default=NOWHERE, compare=False)


AggOp: TypeAlias = str
"""The operator of an aggregation: `Agg.symbol`."""

CombOp = Literal["", "+", "*", "==", "?"]


@frozen
class Contraction:
    """`output: dtype = agg(input comb input), bounds no_defract default name`.

    `comb` is empty for one input and `?` for the ternary `A == B ? C`. `sizes` and `dtype` are None where they were not
    written.
    """

    output: TensorAccess
    sizes: tuple[Expr, ...] | None
    agg: AggOp
    comb: CombOp
    inputs: tuple[TensorAccess, ...]
    bounds: tuple[Bound, ...] = ()
    no_defract: bool = False
    default: Name | None = None
    attributes: tuple[Attribute, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    dtype: str | None = None
    dtype_span: Span = field(default=NOWHERE, compare=False)

    @property
    def target(self) -> str:
        return self.output.tensor

    @property
    def target_span(self) -> Span:
        return self.output.span


@frozen
class Assignment:
    """`target = value`, element by element."""

    target: str
    value: Expr
    attributes: tuple[Attribute, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    target_span: Span = field(default=NOWHERE, compare=False)


Stmt: TypeAlias = Contraction | Assignment


@frozen
class InputDim:
    """A dimension of an input: its name, and its size where the file gives it."""

    name: str
    size: int | None = None
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class Input:
    """An input of a function. `dims` None means any rank, or a constant."""

    name: str
    dims: tuple[InputDim, ...] | None = None
    dtype: str | None = None
    span: Span = field(default=NOWHERE, compare=False)
    dtype_span: Span = field(default=NOWHERE, compare=False)


@frozen
class Output:
    """The name of a result of a function."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@frozen
class Function:
    """A Tile function. `source` is the text of its file, for error messages; `callees` are the other functions of the
    file, which it may call. `name` is empty for a function without a name, which no other can call.
    """

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    statements: tuple[Stmt, ...]
    name: str = ""
    callees: tuple[Function, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    source: str = field(default="", compare=False, repr=False)


def walk(*exprs: Expr) -> Iterator[Expr]:
    """The expressions and all that they are made of, in the order of the text."""
    stack = list(reversed(exprs))
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Unary(_, operand):
                stack.append(operand)
            case Chain(first, rest):
                stack += [*(operand for _, operand in reversed(rest)), first]
            case Cond(condition, then, other):
                stack += [other, then, condition]
            case Call(_, arguments):
                stack += reversed(arguments)
            case _:
                pass


def names_read(statement: Stmt) -> set[str]:
    """The tensors and dimensions that a statement names, but for its target."""
    if isinstance(statement, Assignment):
        exprs, tensors = [statement.value], list[str]()
    else:
        exprs = [*statement.output.indices, *(statement.sizes or ())]
        exprs += [index for access in statement.inputs for index in access.indices]
        exprs += [expr for bound in statement.bounds for expr in (bound.polynomial, bound.limit)]
        exprs += [statement.default] if statement.default is not None else []
        tensors = [access.tensor for access in statement.inputs]
    return {node.name for node in walk(*exprs) if isinstance(node, Name)}.union(tensors)


def names_needed(function: Function) -> set[str]:
    """The names from which some output is computed, and the outputs."""
    needed = {output.name for output in function.outputs}
    for statement in reversed(function.statements):
        if statement.target in needed:
            needed |= names_read(statement)
    return needed


LEVELS: dict[str, int] = {
    "?": 0, "^": 1, "|": 2, "&": 3, "==": 4, "!=": 4, "<": 5, ">": 5, "<=": 5, ">=": 5, "<<": 6, ">>": 6,
    "+": 7, "-": 7, "*": 8, "/": 8,
}  # fmt: skip
"""Precedence of the operators, loosest first."""

UNARY_LEVEL = 9
ATOM_LEVEL = 10
NON_ASSOCIATIVE = frozenset({"==", "!=", "<", ">", "<=", ">="})


def level(expr: Expr) -> int:
    """How tightly the outermost operator of `expr` binds."""
    match expr:
        case Chain(_, rest):
            return LEVELS[rest[0][0]]
        case Cond():
            return LEVELS["?"]
        case Unary():
            return UNARY_LEVEL
        case IntLit(value):
            return ATOM_LEVEL if value >= 0 else UNARY_LEVEL
        case FloatLit(text):
            return UNARY_LEVEL if text.startswith("-") else ATOM_LEVEL
        case _:
            return ATOM_LEVEL
