"""Literals of C, and the values of constants rounded to their dtype."""

from __future__ import annotations

import math
import struct
import sys
from typing import TYPE_CHECKING

from stripe.ir import DType

if TYPE_CHECKING:
    import numpy as np


def convert_constant(value: bool | int | float, dtype: DType) -> bool | int | float:
    """`value` as an exact value of `dtype`, by the rules of `cast`."""
    if dtype.kind == "bool":
        return value != 0
    if dtype.is_integer:
        if not isinstance(value, float):  # wraps
            low = int(value) & ((1 << dtype.bits) - 1)
            return low - (1 << dtype.bits) if dtype.kind == "int" and low >> (dtype.bits - 1) else low
        if math.isnan(value):
            return 0
        low, high = int(dtype.min_value), int(dtype.max_value)
        if math.isinf(value):
            return high if value > 0 else low
        return min(max(int(value), low), high)
    if dtype.bits == 64:
        return _to_double(value)
    return float(_narrowed(value, dtype)) if dtype.is_narrow else _single(value)


def _to_double(value: bool | int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # an int beyond the largest double
        return math.inf if value > 0 else -math.inf


def _single(value: bool | int | float) -> float:
    wide = _to_double(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, wide)


def _narrowed(value: bool | int | float, dtype: DType) -> np.generic:
    """`value` in a narrow float, rounded to single first."""
    import numpy as np

    with np.errstate(all="ignore"):
        narrow: np.generic = np.float32(_single(value)).astype(dtype.numpy())
    return narrow


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
    shortest = next((text for text in texts if _single(float(text)) == value), repr(value))
    return f"{shortest}f" if any(char in shortest for char in ".en") else f"{shortest}.0f"


def memory_literal(value: bool | int | float, dtype: DType) -> str:
    """A C constant expression for the memory form of `value`."""
    if not dtype.is_narrow:
        return str(int(value != 0)) if dtype.kind == "bool" else literal(value, dtype)
    return f"0x{int.from_bytes(_narrowed(value, dtype).tobytes(), sys.byteorder):0{2 * dtype.bytes}x}"


def is_zero_bits(value: bool | int | float) -> bool:
    """Whether the memory form of `value` is all zero bits."""
    return value == 0 and not (isinstance(value, float) and math.copysign(1.0, value) < 0)
