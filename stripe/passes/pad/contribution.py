"""What a kernel contributes at points where some of its inputs read a known value: exact, or unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import isfinite

from stripe.ir import Agg, Block, Constant, DType, Intrinsic, Load, Refinement, Statement, Store, result_dtype

_ODD = frozenset({"ident", "neg", "abs", "relu", "zelu"})
"""Intrinsics that leave 0 at 0 (its sign aside, which no sum and no comparison sees)."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A number, or None for an unknown one; `finite` when it can be neither infinite nor NaN."""

    dtype: DType
    number: bool | int | float | None
    finite: bool

    @staticmethod
    def known(dtype: DType, number: bool | int | float) -> _Value:
        return _Value(dtype, number, isfinite(number))

    @staticmethod
    def unknown(dtype: DType, *, finite: bool = False) -> _Value:
        """Any value of the dtype; of integers all are finite."""
        return _Value(dtype, None, finite or not dtype.is_float)


def output_of(block: Block) -> Refinement | str:
    """The refinement that a kernel of scalar statements stores into; else what is different about the block."""
    stores = [statement for statement in block.statements if isinstance(statement, Store)]
    if any(not isinstance(s, Load | Store | Constant | Intrinsic) for s in block.statements):
        return "it holds more than loads, constants, intrinsics and a store"
    if len(stores) != 1:
        return f"it has {len(stores)} stores"
    return block.ref(stores[0].ref)


def neutral_sets(block: Block, finite: frozenset[str]) -> Iterator[frozenset[str]]:
    """The smallest sets of inputs such that the kernel contributes the identity of its aggregation wherever these all
    read `fill_of` their aggregation, whatever the others read.

    `finite` names the inputs that hold neither infinities nor NaN. Nothing for an assignment.
    """
    output = output_of(block)
    if isinstance(output, str) or output.agg is Agg.ASSIGN:
        return
    inputs = sorted({s.ref for s in block.statements if isinstance(s, Load)})
    found: list[frozenset[str]] = []
    for count in range(1, len(inputs) + 1):
        for chosen in map(frozenset, combinations(inputs, count)):
            if not any(known <= chosen for known in found) and _is_neutral(block, output, chosen, finite):
                found.append(chosen)
                yield chosen


def fill_of(agg: Agg, dtype: DType) -> bool | int | float:
    """What padding of this dtype holds for a kernel that aggregates by `agg`; 0 for an assignment."""
    return (Agg.ADD if agg is Agg.ASSIGN else agg).identity(dtype)


def _is_neutral(block: Block, output: Refinement, filled: frozenset[str], finite: frozenset[str]) -> bool:
    values: dict[str, _Value] = {}
    for statement in block.statements:
        if isinstance(statement, Store):
            number = values[statement.value].number
            return number is not None and number == output.agg.identity(output.dtype)
        into, value = _defined(block, statement, values, output.agg, filled, finite)
        values[into] = value
    return False


def _defined(
    block: Block,
    statement: Statement,
    values: Mapping[str, _Value],
    agg: Agg,
    filled: frozenset[str],
    finite: frozenset[str],
) -> tuple[str, _Value]:
    match statement:
        case Load(into, name):
            dtype = block.ref(name).dtype
            if name in filled:
                return into, _Value.known(dtype, fill_of(agg, dtype))
            return into, _Value.unknown(dtype, finite=name in finite)
        case Constant(into, number, dtype):
            return into, _Value.known(dtype, number)
        case Intrinsic(into, op, inputs, dtype):
            return into, _applied(op, [values[name] for name in inputs], dtype)
        case _:
            raise AssertionError("output_of accepts no other statement")


def _applied(op: str, inputs: list[_Value], target: DType | None) -> _Value:
    dtype = result_dtype(op, [value.dtype for value in inputs], target)
    first = inputs[0]
    if op == "ident" or (op in _ODD and first.number == 0):
        return first
    if op == "mul" and any(value.number == 0 for value in inputs) and all(value.finite for value in inputs):
        return _Value.known(dtype, 0)
    if op == "cond" and inputs[1].number is not None and inputs[1].number == inputs[2].number:
        return inputs[1]
    if op == "cast":
        return _cast(first, dtype)
    return _Value.unknown(dtype)


def _cast(value: _Value, dtype: DType) -> _Value:
    """0, 1 and infinities among floats survive any cast; of others nothing is claimed but what is finite."""
    number = value.number
    if number is not None and (number in (0, 1) or (dtype.is_float and not isfinite(number))):
        return _Value.known(dtype, number)
    wide = dtype.name != "fp16"  # every integer lies within the range of the other floats
    return _Value.unknown(dtype, finite=wide and value.finite and not value.dtype.is_float)
