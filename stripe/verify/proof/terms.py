"""Terms: the tree of operations that computes a value, with elements of arrays as leaves.

A term is the shape alone. A relation beside it tells which elements its leaves are: it leads to the coordinates of all
leaves one after the other, from left to right. Terms are canonical: `ident` and casts to the same dtype vanish,
operations on constants are computed, operands of exactly commutative operations stand in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from stripe.exec import arith
from stripe.ir import INTRINSICS, Affine, Agg, Buffer, DType, Path, result_dtype
from stripe.poly import Points, Relation


@dataclass(frozen=True, slots=True)
class Read:
    """A read of a buffer: its contents after the writes before a load, at one point of the blocks that hold both.
    `writers` are their paths; `prefix` names the indices of these blocks, which lie at `block`."""

    buffer: Buffer
    writers: tuple[Path, ...]
    block: Path
    prefix: tuple[str, ...]
    rank: int

    @property
    def width(self) -> int:
        return len(self.prefix) + self.rank


@dataclass(frozen=True, slots=True)
class Leaf:
    """An element of an array that both programs know under one name; of a constant the `content` decides, which is its
    sizes and bytes."""

    array: str
    width: int
    dtype: DType
    content: tuple[tuple[int, ...], bytes] | None = None


@dataclass(frozen=True, slots=True)
class Reduced:
    """An element of `read` that several writes make up, merged by their aggregation."""

    read: Read
    dtype: DType

    @property
    def width(self) -> int:
        return self.read.width


@dataclass(frozen=True, slots=True)
class Called:
    """An element of output number `output` of the special at `path`: coordinates are the indices of its blocks, then
    the place in that output.
    """

    path: Path
    op: str
    output: int
    dtype: DType
    width: int


@dataclass(frozen=True, slots=True)
class IndexValue:
    """The value of an affine, which is its only coordinate."""

    dtype: DType
    width: int = 1


@dataclass(frozen=True, slots=True)
class Number:
    """A constant; `text` is different for different bits (0 and -0)."""

    text: str
    dtype: DType
    width: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Undefined:
    """An element without a write, which equals no other."""

    what: str
    dtype: DType
    width: int = 0


@dataclass(frozen=True, slots=True)
class Operation:
    """An intrinsic on terms."""

    op: str
    dtype: DType
    args: tuple[Term, ...]

    @property
    def width(self) -> int:
        return sum(arg.width for arg in self.args)


Atom: TypeAlias = Leaf | Reduced | Called | IndexValue | Number | Undefined
Term: TypeAlias = Atom | Operation


def leaves(term: Term) -> Iterator[Atom]:
    """All leaves from left to right, in the order of their coordinates."""
    if isinstance(term, Operation):
        for arg in term.args:
            yield from leaves(arg)
    else:
        yield term


def number(value: bool | int | float, dtype: DType) -> Number:
    """A constant as the dtype holds it."""
    return Number(repr(arith.constant(value, dtype).item()), dtype)


def number_value(term: Number) -> bool | int | float:
    """The constant as Python's number."""
    if term.dtype.kind == "bool":
        return term.text == "True"
    return float(term.text) if term.dtype.is_float else int(term.text)


def chain_agg(op: str, dtype: DType) -> Agg | None:
    """The aggregation that a chain of an operation on one dtype is; None when it is none."""
    if dtype.kind == "bool":
        return {"bit_or": Agg.ADD, "bit_and": Agg.MUL}.get(op)
    return {"add": Agg.ADD, "min": Agg.MIN, "max": Agg.MAX}.get(op)


def operand_order(op: str, args: Sequence[Term]) -> tuple[int, ...]:
    """The order of the operands in the canonical term."""
    order = tuple(range(len(args)))
    return (
        tuple(sorted(order, key=lambda k: sort_key(args[k])))
        if INTRINSICS[op].commutes_on(args[0].dtype)
        else order
    )


def ties(term: Term, offset: int = 0) -> Iterator[tuple[int, int]]:
    """The pairs of operands that differ in their coordinates alone, inner ones first: where the coordinates of the
    first one begin, and how many either has.
    """
    if not isinstance(term, Operation):
        return
    inside = offset
    for arg in term.args:
        yield from ties(arg, inside)
        inside += arg.width
    symmetric = INTRINSICS[term.op].commutes_on(term.args[0].dtype)
    if symmetric and term.args[0] == term.args[1] and term.args[0].width:
        yield offset, term.args[0].width


def ordered(term: Term, at: Relation) -> Relation:
    """The coordinates of the term's leaves with those of each tie in order. `operand_order` sorts operands by their
    terms; `A[i] * A[j]` and `A[j] * A[i]` differ in the elements alone: the lexicographically smaller coordinates go
    first."""
    names = tuple(f"{number}" for number in range(len(at.outs)))
    for offset, width in ties(term):
        first, second = names[offset : offset + width], names[offset + width : offset + 2 * width]
        wrong = at.named(at.ins, names).into(Points.descending(names, first, second))
        if wrong.is_empty:
            continue
        other = dict(zip((*first, *second), (*second, *first), strict=True))
        swap = Relation.function(
            Points.universe(names), {f"{name}'": Affine.var(other.get(name, name)) for name in names}
        )
        at = (at - wrong) | wrong.then(swap)
    return at


def sort_key(term: Term) -> str:
    """A text that orders terms. Names of buffers have no part in it."""
    match term:
        case Leaf(array):
            return f"0 {array}"
        case Reduced(read):
            return f"1 {len(read.writers)}"
        case Called(_, op, output):
            return f"1 {op} {output}"
        case IndexValue():
            return "2"
        case Number(text, dtype):
            return f"3 {dtype} {text}"
        case Undefined():
            return "4"
        case Operation(op, dtype, args):
            return f"5 {op} {dtype} ({', '.join(map(sort_key, args))})"


def operation(op: str, args: Sequence[Term], target: DType | None, *, finite: bool = False) -> Term:
    """The term of an intrinsic on operands in canonical order. `finite`: no operand is infinite or NaN, and no zero
    has a sign, so that a product with 0 is 0 (for integers it always is).
    """
    dtypes = [arg.dtype for arg in args]
    dtype = result_dtype(op, dtypes, target)
    if op == "ident" or (op == "cast" and dtype == dtypes[0]):
        return args[0]
    numbers = [arg for arg in args if isinstance(arg, Number)]
    if len(numbers) == len(args) and INTRINSICS[op].exact:
        values = [arith.constant(number_value(n), n.dtype) for n in numbers]
        with np.errstate(all="ignore"):
            if op == "cast":
                value = arith.cast(values[0], dtypes[0], dtype)
            else:
                value = arith.apply(op, values, dtypes[-1])
        return Number(repr(value.item()), dtype)
    if op == "mul" and (finite or not dtype.is_float):
        zero = number(0, dtype)
        if any(n.text.lstrip("-") == zero.text for n in numbers):
            return zero
    if op == "cond" and args[1] == args[2] and isinstance(args[1], Number) and args[1].dtype == dtype:
        return args[1]
    return Operation(op, dtype, tuple(args))


_KEEPS_ZERO = frozenset({"mul", "cast", "cond", "add", "sub", "neg", "abs", "relu", "min", "max"})


def vanishes(term: Term) -> bool:
    """Whether the term is a zero of some sign, when no operand is infinite or NaN: a sum may go without it."""
    value = _with_zeros(term)
    return isinstance(value, Number) and value.text.lstrip("-") == number(0, value.dtype).text


def _with_zeros(term: Term) -> Term:
    if not isinstance(term, Operation) or term.op not in _KEEPS_ZERO:
        return term
    return operation(term.op, [_with_zeros(arg) for arg in term.args], term.dtype, finite=True)


def show(term: Term, coordinates: Sequence[int]) -> str:
    """The term with its elements."""
    text, _ = _show(term, list(coordinates))
    return text


def _show(term: Term, rest: list[int]) -> tuple[str, list[int]]:
    match term:
        case Leaf(array, width):
            return f"{array.partition(':')[2]}[{', '.join(map(str, rest[:width]))}]", rest[width:]
        case Reduced(read):
            element = rest[len(read.prefix) : read.width]
            return f"{read.buffer}[{', '.join(map(str, element))}]", rest[read.width :]
        case Called(_, op, _, _, width):
            return f"{op}[{', '.join(map(str, rest[:width]))}]", rest[width:]
        case IndexValue():
            return str(rest[0]), rest[1:]
        case Number(text, dtype):
            return f"({dtype}){text}", rest
        case Undefined(what):
            return f"undefined {what}", rest
        case Operation(op, dtype, args):
            texts: list[str] = []
            for arg in args:
                text, rest = _show(arg, rest)
                texts.append(text)
            if op == "cast":
                texts.append(str(dtype))
            return f"{op}({', '.join(texts)})", rest
