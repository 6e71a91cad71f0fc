"""Literals of C."""

from __future__ import annotations

import math
import sys

from stripe.ir import DType
from stripe.ir.constants import convert_constant, narrowed, nearest_single


def literal(value: bool | int | float, dtype: DType) -> str:
    """A C expression for the value of `dtype` nearest to `value`."""
    exact = convert_constant(value, dtype)
    if dtype.kind == "bool":
        return "true" if exact else "false"
    if dtype.is_float:
        return _float_literal(float(exact), dtype)
    return _integer_literal(int(exact), dtype)


def _integer_literal(value: int, dtype: DType) -> str:
    if dtype.bits < 32:
        return str(value)
    macro = f"{'U' if dtype.kind == 'uint' else ''}INT{dtype.bits}"
    if value == dtype.min_value and dtype.kind == "int":
        return f"{macro}_MIN"
    if value == dtype.max_value:
        return f"{macro}_MAX"
    suffix = "u" if dtype.kind == "uint" else ""
    return f"{macro}_C({value})" if dtype.bits == 64 and abs(value) >= 1 << 31 else f"{value}{suffix}"


def _float_literal(value: float, dtype: DType) -> str:
    double = dtype.bits == 64
    if not math.isfinite(value):
        text = "NAN" if math.isnan(value) else "INFINITY"
        return f"{'-' if value < 0 else ''}{'(double)' if double else ''}{text}"
    if double:
        return repr(value)
    # The shortest decimal that reads back as the single.
    texts = [f"{value:.{digits}g}" for digits in range(6, 10)]
    shortest = next((text for text in texts if nearest_single(float(text)) == value), repr(value))
    return f"{shortest}f" if any(char in shortest for char in ".en") else f"{shortest}.0f"


def memory_literal(value: bool | int | float, dtype: DType) -> str:
    """A C constant expression for the memory form of `value`."""
    if not dtype.is_narrow:
        return str(int(value != 0)) if dtype.kind == "bool" else literal(value, dtype)
    return f"0x{int.from_bytes(narrowed(value, dtype).tobytes(), sys.byteorder):0{2 * dtype.bytes}x}"


def is_zero_bits(value: bool | int | float) -> bool:
    """Whether the memory form of `value` is all zero bits."""
    return value == 0 and not (isinstance(value, float) and math.copysign(1.0, value) < 0)
