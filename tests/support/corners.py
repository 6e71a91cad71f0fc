"""Corner values of each dtype, and all combinations of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from stripe.ir import DType

FLOATS = [0.0, -0.0, 0.5, -0.5, 1.0, 1.5, 2.5, -2.5, 3.0, -7.25, 100.0, 6e-8, 65504.0, 65520.0, 3e38]
FLOATS += [2147483648.0, -2147483648.0, 9.3e18, -1e19, 127.5, 255.9, 300.0, math.inf, -math.inf, math.nan]


def corner_values(dtype: DType) -> list[Any]:
    """Corner values of a dtype."""
    if dtype.kind == "bool":
        return [False, True]
    if dtype.is_float:
        return FLOATS
    low, high = int(dtype.min_value), int(dtype.max_value)
    wanted = (low, low + 1, -9, -8, -1, 0, 1, 2, 3, 7, 8, 31, 32, high - 1, high)
    return sorted({v for v in wanted if low <= v <= high})


def corner_arrays(dtypes: Sequence[DType]) -> dict[str, npt.NDArray[Any]]:
    """All combinations of corner values, one vector per operand: A, B, C."""
    table = list(product(*map(corner_values, dtypes)))
    with np.errstate(over="ignore", invalid="ignore"):
        return {
            name: np.array([row[place] for row in table], np.float64 if dtype.is_float else dtype.numpy())
            .astype(dtype.numpy())
            for place, (name, dtype) in enumerate(zip("ABC", dtypes, strict=False))
        }  # fmt: skip
