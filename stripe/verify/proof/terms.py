"""Terms: the tree of operations that computes a value, with elements of arrays as leaves.

A term is the shape alone. A relation beside it tells which elements its leaves are: it leads to the coordinates of all
leaves one after the other, from left to right. Terms are canonical: `ident` and casts to the same dtype vanish,
operations on constants are computed, operands of exactly commutative operations stand in a fixed order.

Terms may be deeper than Python's stack, and a part may stand in several places: nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import TypeAlias, TypeVar

import numpy as np
from typing_extensions import override

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

    @property
    def key(self) -> Read:
        """The reduction."""
        return self.read


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

    @property
    def key(self) -> Path:
        """The special."""
        return self.path


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


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An intrinsic on terms. `size` is the number of operations and leaves."""

    op: str
    dtype: DType
    args: tuple[Term, ...]
    width: int = field(init=False)
    size: int = field(init=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", sum(arg.width for arg in self.args))
        object.__setattr__(self, "size", 1 + sum(map(size, self.args)))
        object.__setattr__(self, "_hash", hash((self.op, self.dtype, self.args)))

    @override
    def __hash__(self) -> int:
        return self._hash

    @override
    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[object, object]] = [(self, other)]
        while pairs:
            mine, theirs = pairs.pop()
            if mine is theirs:
                continue
            if not (isinstance(mine, Operation) and isinstance(theirs, Operation)):
                if isinstance(mine, Operation) or isinstance(theirs, Operation) or mine != theirs:
                    return False
            elif (mine._hash, mine.op, mine.dtype, len(mine.args)) == (
                theirs._hash, theirs.op, theirs.dtype, len(theirs.args),
            ):  # fmt: skip
                pairs += zip(mine.args, theirs.args, strict=True)
            else:
                return False
        return True


Made: TypeAlias = Reduced | Called
"""Elements that statements before make."""
Atom: TypeAlias = Leaf | Reduced | Called | IndexValue | Number | Undefined
Term: TypeAlias = Atom | Operation
Result = TypeVar("Result")


def size(term: Term) -> int:
    """The number of operations and leaves."""
    return term.size if isinstance(term, Operation) else 1


def preorder(term: Term) -> Iterator[Term]:
    """A term and its parts from left to right, each operation before its operands."""
    waiting = [term]
    while waiting:
        current = waiting.pop()
        yield current
        if isinstance(current, Operation):
            waiting += reversed(current.args)


def leaves(term: Term) -> Iterator[Atom]:
    """All leaves from left to right, in the order of their coordinates."""
    return (part for part in preorder(term) if not isinstance(part, Operation))


def fold(
    term: Term, atom: Callable[[Atom], Result], operation: Callable[[Operation, list[Result]], Result]
) -> Result:
    """The result of a term from those of its leaves, which are taken from left to right."""
    results: list[Result] = []
    waiting: list[tuple[Term, bool]] = [(term, False)]
    while waiting:
        current, has_operands = waiting.pop()
        if not isinstance(current, Operation):
            results.append(atom(current))
        elif has_operands:
            first = len(results) - len(current.args)
            results[first:] = [operation(current, results[first:])]
        else:
            waiting.append((current, True))
            waiting += ((arg, False) for arg in reversed(current.args))
    return results.pop()


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
    if not INTRINSICS[op].commutes_on(args[0].dtype):
        return order
    return tuple(sorted(order, key=cmp_to_key(lambda a, b: _comparison(args[a], args[b]))))


def _comparison(first: Term, second: Term) -> int:
    """Negative where the first term goes first, 0 where the terms differ in nothing but buffers."""
    if first is second:
        return 0
    pairs = zip(map(_sort_key, preorder(first)), map(_sort_key, preorder(second)), strict=False)
    return next((1 if one > two else -1 for one, two in pairs if one != two), 0)


def ties(term: Term) -> list[tuple[int, int]]:
    """The pairs of operands that differ in their coordinates alone, inner ones first: where the coordinates of the
    first one begin, and how many either has.
    """
    found: list[tuple[int, int]] = []
    waiting = [(term, 0)]
    while waiting:
        current, offset = waiting.pop()
        if not isinstance(current, Operation):
            continue
        first = current.args[0]
        symmetric = INTRINSICS[current.op].commutes_on(first.dtype)
        if symmetric and first == current.args[1] and first.width:
            found.append((offset, first.width))
        for arg in current.args:
            waiting.append((arg, offset))
            offset += arg.width
    return found[::-1]


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


def _sort_key(term: Term) -> str:
    """A text that orders terms but for operands. Names of buffers have no part in it."""
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
        case Operation(op, dtype):
            return f"5 {op} {dtype}"


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
        return computed(op, numbers, dtype)
    if op == "mul" and (finite or not dtype.is_float):
        zero = number(0, dtype)
        if any(n.text.lstrip("-") == zero.text for n in numbers):
            return zero
    if op == "cond" and args[1] == args[2] and isinstance(args[1], Number) and args[1].dtype == dtype:
        return args[1]
    return Operation(op, dtype, tuple(args))


def computed(op: str, numbers: Sequence[Number], dtype: DType) -> Number:
    """The result of an intrinsic on numbers."""
    values = [arith.constant(number_value(n), n.dtype) for n in numbers]
    with np.errstate(all="ignore"):
        if op == "cast":
            value = arith.cast(values[0], numbers[0].dtype, dtype)
        else:
            value = arith.apply(op, values, numbers[-1].dtype)
    return Number(repr(value.item()), dtype)


_MOST_TEXT = 2_000


def show(term: Term, coordinates: Sequence[int]) -> str:
    """The term with its elements; parts of long texts are left out."""
    rest = list(coordinates)

    def atom(leaf: Atom) -> str:
        own, rest[:] = rest[: leaf.width], rest[leaf.width :]
        return _show(leaf, own)

    def applied(term: Operation, args: list[str]) -> str:
        texts = [text if len(text) <= _MOST_TEXT else "…" for text in args]
        return f"{term.op}({', '.join([*texts, str(term.dtype)] if term.op == 'cast' else texts)})"

    return fold(term, atom, applied)


def _show(leaf: Atom, coordinates: Sequence[int]) -> str:
    match leaf:
        case Leaf(array):
            return f"{array.partition(':')[2]}[{', '.join(map(str, coordinates))}]"
        case Reduced(read):
            return f"{read.buffer}[{', '.join(map(str, coordinates[len(read.prefix) :]))}]"
        case Called(_, op):
            return f"{op}[{', '.join(map(str, coordinates))}]"
        case IndexValue():
            return str(coordinates[0])
        case Number(text, dtype):
            return f"({dtype}){text}"
        case Undefined(what):
            return f"undefined {what}"
