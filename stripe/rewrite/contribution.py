"""Contributions of a kernel at points where some of its inputs read a known value: exact, or unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import isfinite, isinf, prod

from stripe.ir import (
    INTRINSICS,
    Agg,
    Block,
    Constant,
    DType,
    Intrinsic,
    Load,
    Refinement,
    Store,
    result_dtype,
    value_key,
)
from stripe.ir.constants import convert_constant
from stripe.rewrite.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Abstract:
    """The abstract value of a scalar: a number, or None for an unknown one; `finite` when it can be neither infinite
    nor NaN. A float that is the integer 0 is a zero of either sign."""

    dtype: DType
    number: bool | int | float | None
    finite: bool

    @staticmethod
    def known(dtype: DType, number: bool | int | float) -> Abstract:
        """The value of `dtype` for a number, rounded by the rules of `cast`."""
        exact = convert_constant(number, dtype)
        return Abstract(dtype, exact, isfinite(exact))

    @property
    def numbers(self) -> tuple[bool | int | float, ...]:
        """The number in all its signs; nothing for an unknown one."""
        if self.number is None:
            return ()
        return (0.0, -0.0) if self.dtype.is_float and isinstance(self.number, int) else (self.number,)

    @staticmethod
    def unknown(dtype: DType, *, finite: bool = False) -> Abstract:
        """Any value of the dtype; of integers all are finite."""
        return Abstract(dtype, None, finite or not dtype.is_float)


def output_of(block: Block) -> Refinement | Refusal:
    """The refinement that a kernel of scalar statements stores into."""
    stores = [statement for statement in block.statements if isinstance(statement, Store)]
    if any(not isinstance(s, Load | Store | Constant | Intrinsic) for s in block.statements):
        return Refusal("it holds more than loads, constants, intrinsics and a store")
    if len(stores) != 1:
        return Refusal(f"it has {len(stores)} stores")
    return block.ref(stores[0].ref)


def neutral_sets(block: Block, finite: frozenset[str]) -> Iterator[frozenset[str]]:
    """The smallest sets of inputs such that the kernel contributes the identity of its aggregation wherever all of a
    set read `fill_of` it, for any contents of the other inputs.

    `finite` names the inputs that hold neither infinities nor NaN. Nothing for an assignment.
    """
    output = output_of(block)
    if isinstance(output, Refusal) or output.agg is Agg.ASSIGN:
        return
    inputs = sorted({s.ref for s in block.statements if isinstance(s, Load)})
    identity = output.agg.identity(output.dtype)
    found: list[frozenset[str]] = []
    for count in range(1, len(inputs) + 1):
        for chosen in map(frozenset, combinations(inputs, count)):
            if any(known <= chosen for known in found):
                continue
            filled = {name: fill_of(output.agg, block.ref(name).dtype) for name in chosen}
            if stored_number(block, filled, finite) == identity:
                found.append(chosen)
                yield chosen


def fill_of(agg: Agg, dtype: DType) -> bool | int | float:
    """The contents of padding of this dtype for a kernel that aggregates by `agg`; 0 for an assignment."""
    return (Agg.ADD if agg is Agg.ASSIGN else agg).identity(dtype)


def stored_number(
    block: Block, known: Mapping[str, bool | int | float], finite: frozenset[str]
) -> bool | int | float | None:
    """The number that a kernel stores where the inputs in `known` read these numbers, for any contents of the other
    inputs; None where it depends on them. `finite` names inputs that hold neither infinities nor NaN."""
    values: dict[str, Abstract] = {}
    for statement in block.statements:
        match statement:
            case Load(into, name):
                dtype = block.ref(name).dtype
                values[into] = (
                    Abstract.known(dtype, known[name])
                    if name in known
                    else Abstract.unknown(dtype, finite=name in finite)
                )
            case Constant(into, number, dtype):
                values[into] = Abstract.known(dtype, number)
            case Intrinsic(into, op, inputs, dtype):
                values[into] = _applied(op, [values[name] for name in inputs], dtype)
            case Store(_, value):
                return values[value].number
            case _:
                break
    return None


def _applied(op: str, inputs: list[Abstract], target: DType | None) -> Abstract:
    dtype = result_dtype(op, [value.dtype for value in inputs], target)
    first = inputs[0]
    if op == "ident":
        return first
    if op == "mul" and any(value.number == 0 for value in inputs) and all(value.finite for value in inputs):
        factors = [value.numbers or (1, -1) for value in inputs]
        return _number(dtype, [prod(chosen) for chosen in product(*factors)])
    if op == "cond" and inputs[1].number is not None and inputs[1].number == inputs[2].number:
        return _number(dtype, [*inputs[1].numbers, *inputs[2].numbers])
    if op != "cast":
        return _folded(op, inputs, dtype)
    # 0 and 1 survive any cast, infinities those to floats that have them; of other values only finiteness is known
    number = first.number
    keeps = dtype.is_float and dtype.has_infinity
    if number in (0, 1) or (number is not None and isinf(number) and keeps):
        return _number(dtype, list(first.numbers))
    wide = dtype.largest >= 2.0**64  # every integer lies within its range
    return Abstract.unknown(dtype, finite=wide and first.finite and not first.dtype.is_float)


def _folded(op: str, inputs: list[Abstract], dtype: DType) -> Abstract:
    """The operation on numbers, where it is exact: on whole numbers with a whole result that the dtype holds."""
    numbers = [value.number for value in inputs]
    if not INTRINSICS[op].exact or any(n is None or not isfinite(n) or n != int(n) for n in numbers):
        return Abstract.unknown(dtype)
    try:
        results = [INTRINSICS[op].fold(*chosen) for chosen in product(*(value.numbers for value in inputs))]
    except (ZeroDivisionError, ValueError, OverflowError):
        return Abstract.unknown(dtype)
    high = 2**dtype.mantissa if dtype.is_float else dtype.max_value
    low = -high if dtype.is_float else dtype.min_value
    whole = all(isfinite(n) and n == int(n) and low <= n <= high for n in results)
    return _number(dtype, results) if whole else Abstract.unknown(dtype)


def _number(dtype: DType, found: list[bool | int | float]) -> Abstract:
    """The value that is one of these numbers."""
    numbers = list(map(float, found)) if dtype.is_float else list(map(int, found))
    if any(number != numbers[0] for number in numbers):
        return Abstract.unknown(dtype, finite=all(map(isfinite, numbers)))
    if len({*map(value_key, numbers)}) > 1:
        return Abstract(dtype, 0, finite=True)
    return Abstract.known(dtype, numbers[0])
