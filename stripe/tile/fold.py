"""Constant folding: exact for integers (never through a float), Python's doubles for floats."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from stripe.ir.dtypes import BOOL, FP32, I32, I64, DType
from stripe.tile.operations import OperandError, result_dtype
from stripe.tile.typed import Const

Number = bool | int | float

_COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "cmp_eq": operator.eq, "cmp_ne": operator.ne, "cmp_lt": operator.lt, "cmp_le": operator.le, "cmp_gt": operator.gt,
    "cmp_ge": operator.ge,
}  # fmt: skip

_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan,
    "asin": math.asin, "acos": math.acos, "atan": math.atan, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh,
    "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh, "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)),
}  # fmt: skip

_MAX_BITS = 256
"""Integers of more bits than this are refused: no size needs them, and a chain of shifts could make them huge."""


def integer(value: int) -> Const:
    """The constant of an integer literal or a size: i32, or i64 where it does not fit."""
    return Const(value, I32 if -(2**31) <= value < 2**31 else I64)


def float_(value: float) -> Const:
    """The constant of a float literal."""
    return Const(value, FP32)


def fold(op: str, operands: Sequence[Const]) -> Const | None:
    """The value of an operation on constants; None for one that only tensors have.

    Integers divide towards zero. Raises OperandError for a division by zero and for values that leave the range.
    """
    values = [operand.value for operand in operands]
    dtype = result_dtype(op, [operand.dtype for operand in operands])
    if op in _COMPARE:
        return Const(_COMPARE[op](values[0], values[1]), BOOL)
    if op == "cond":
        return convert(values[1] if values[0] else values[2], dtype)
    if dtype.is_float:
        return _fold_float(op, [float(value) for value in values], dtype)
    if any(isinstance(value, float) for value in values):
        return None
    folded = _fold_integer(op, [int(value) for value in values])
    if folded is None:
        return None
    if folded.bit_length() > _MAX_BITS:
        raise OperandError("the constant is too large", f"integers have at most {_MAX_BITS} bits")
    if dtype == BOOL:
        return Const(bool(folded), BOOL)
    return Const(folded, dtype) if _fits(folded, dtype) else integer(folded)


def convert(value: Number, dtype: DType) -> Const:
    """A constant cast to `dtype`: floats truncate and saturate, integers wrap, as in the programs."""
    if dtype == BOOL:
        return Const(bool(value), BOOL)
    if dtype.is_float:
        return Const(float(value), dtype)
    if isinstance(value, float):
        if math.isnan(value):
            return Const(0, dtype)
        low, high = int(dtype.min_value), int(dtype.max_value)
        return Const(low if value <= low else high if value >= high else int(value), dtype)
    wrapped = int(value) % (1 << dtype.bits)
    signed = dtype.kind == "int" and wrapped >= 1 << (dtype.bits - 1)
    return Const(wrapped - (1 << dtype.bits) if signed else wrapped, dtype)


def _fits(value: int, dtype: DType) -> bool:
    return int(dtype.min_value) <= value <= int(dtype.max_value)


def _truncate(left: int, right: int) -> int:
    if right == 0:
        raise OperandError("division by zero", "sizes and constants are computed when the shapes are known")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _shift(value: int, amount: int) -> int:
    if not 0 <= amount < _MAX_BITS:
        raise OperandError(f"cannot shift a constant by {amount}", "shift by 0 to 63 bits")
    return value << amount


def _fold_integer(op: str, values: Sequence[int]) -> int | None:
    first, second = values[0], values[-1]
    table: dict[str, Callable[[], int]] = {
        "add": lambda: first + second, "sub": lambda: first - second, "mul": lambda: first * second,
        "div": lambda: _truncate(first, second), "mod": lambda: first - second * _truncate(first, second),
        "min": lambda: min(first, second), "max": lambda: max(first, second), "neg": lambda: -first,
        "ident": lambda: first, "floor": lambda: first, "ceil": lambda: first, "round": lambda: first,
        "abs": lambda: abs(first), "relu": lambda: max(first, 0), "zelu": lambda: max(first, 0),
        "bit_and": lambda: first & second, "bit_or": lambda: first | second, "bit_xor": lambda: first ^ second,
        "bit_not": lambda: ~first, "bit_left": lambda: _shift(first, second),
        "bit_right": lambda: first >> min(second, _MAX_BITS) if second >= 0 else 0,
    }  # fmt: skip
    return table[op]() if op in table else None


def _fold_float(op: str, values: Sequence[float], dtype: DType) -> Const | None:
    first, second = values[0], values[-1]
    table: dict[str, Callable[[], float]] = {
        "add": lambda: first + second, "sub": lambda: first - second, "mul": lambda: first * second,
        "div": lambda: first / second, "mod": lambda: math.fmod(first, second), "min": lambda: min(first, second),
        "max": lambda: max(first, second), "neg": lambda: -first, "ident": lambda: first,
        "floor": lambda: math.floor(first), "ceil": lambda: math.ceil(first),
        "round": lambda: math.copysign(math.floor(abs(first) + 0.5), first), "abs": lambda: abs(first),
        "relu": lambda: max(first, 0.0), "zelu": lambda: max(first, 0.0), "pow": lambda: math.pow(first, second),
    }  # fmt: skip
    try:
        if op in table:
            return Const(float(table[op]()), dtype)
        return Const(_FUNCTIONS[op](first), dtype) if op in _FUNCTIONS else None
    except (ZeroDivisionError, ValueError, OverflowError):
        raise OperandError(
            f"'{op}' of these constants is not a finite number", "check the constants"
        ) from None
