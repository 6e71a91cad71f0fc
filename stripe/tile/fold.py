"""Constant folding: exact for integers (never through a float), Python's doubles for floats."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.ir.constants import convert_constant
from stripe.ir.dtypes import BOOL, FP32, I32, I64, DType
from stripe.ir.intrinsics import INTRINSICS, Number
from stripe.tile.operations import OperandError, result_dtype
from stripe.tile.typed import Const

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
    dtype = result_dtype(op, [operand.dtype for operand in operands])
    values = [operand.value for operand in operands]
    spec = INTRINSICS[INTRINSICS[op].on(dtype)]
    if spec.result == "bool":
        return Const(spec.fold(*values), BOOL)
    if spec.result == "cond":
        return convert(spec.fold(*values), dtype)
    if dtype.is_float:
        values = [float(value) for value in values]
    elif any(isinstance(value, float) for value in values):
        return None
    else:
        values = [int(value) for value in values]
    try:
        folded = spec.fold(*values)
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        reason, hint = str(error), "shift by 0 to 63 bits"
        if dtype.is_float:
            reason, hint = f"'{op}' of these constants is not a finite number", "check the constants"
        elif isinstance(error, ZeroDivisionError):
            reason, hint = "division by zero", "sizes and constants are computed when the shapes are known"
        raise OperandError(reason, hint) from None
    if dtype.is_float:
        return Const(float(folded), dtype)
    folded = int(folded)
    if folded.bit_length() > _MAX_BITS:
        raise OperandError("the constant is too large", f"integers have at most {_MAX_BITS} bits")
    if dtype == BOOL:
        return Const(bool(folded & 1), BOOL)
    fits = int(dtype.min_value) <= folded <= int(dtype.max_value)
    return Const(folded, dtype) if fits else integer(folded)


def cast(value: Number, dtype: DType) -> Const:
    """A constant that the program casts to `dtype`."""
    return Const(convert_constant(value, dtype), dtype)


def convert(value: Number, dtype: DType) -> Const:
    """A constant as an operand of `dtype`. A float keeps its digits; the operation rounds it."""
    return Const(float(value), dtype) if dtype.is_float else cast(value, dtype)
