"""Constants by the rules of `cast`."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from stripe.ir.dtypes import DType

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
    return float(narrowed(value, dtype)) if dtype.is_narrow else nearest_single(value)


def _to_double(value: bool | int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # an int beyond the largest double
        return math.inf if value > 0 else -math.inf


def nearest_single(value: bool | int | float) -> float:
    """The fp32 that is nearest to `value`."""
    wide = _to_double(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, wide)


def narrowed(value: bool | int | float, dtype: DType) -> np.generic:
    """`value` in a narrow float, rounded to single first."""
    import numpy as np

    with np.errstate(all="ignore"):
        narrow: np.generic = np.float32(nearest_single(value)).astype(dtype.numpy())
    return narrow
