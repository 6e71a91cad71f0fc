"""The element-wise operations and specials of Tile as numpy functions, for `stripe.tile.reference`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.ir.dtypes import DType

Array: TypeAlias = npt.NDArray[Any]


def cast(array: Array, dtype: DType) -> Array:
    """Floats to integers truncate, saturate and turn NaN into 0; integers wrap; to bool is `!= 0`."""
    target = np.dtype(dtype.numpy())
    if array.dtype == target:
        return array
    if dtype.kind == "bool":
        return array != 0
    if not dtype.is_float and array.dtype.kind not in "iub":
        low, high = int(dtype.min_value), int(dtype.max_value)
        whole = np.trunc(np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        above, below = whole >= float(high), whole <= float(low)
        inside = np.where(above | below, 0.0, whole).astype(target)
        big = np.where(above, np.asarray(high, target), inside)
        return np.where(below, np.asarray(low, target), big)
    if dtype.is_float and dtype.bits < 32:
        return array.astype(np.float32).astype(target)
    return array.astype(target)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return a / b
    divisor = np.where(b == 0, np.ones((), b.dtype), b)
    quotient = a // divisor
    return np.where(
        b == 0, np.zeros((), a.dtype), quotient + ((a % divisor != 0) & ((a < 0) != (divisor < 0)))
    )


def _remainder(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.fmod(a, b)
    divisor = np.where(b == 0, np.ones((), b.dtype), b)
    return np.where(b == 0, np.zeros((), a.dtype), np.fmod(a, divisor))


def _shift(a: Array, b: Array, *, left: bool) -> Array:
    width = a.dtype.itemsize * 8
    out = (b < 0) | (b >= width)
    amount = np.where(out, np.zeros((), b.dtype), b).astype(a.dtype)
    if left:
        return np.where(out, np.zeros((), a.dtype), a << amount)
    sign = (a >> np.asarray(width - 1, a.dtype)) if a.dtype.kind == "i" else np.zeros((), a.dtype)
    return np.where(out, sign, a >> amount)


def _round(x: Array) -> Array:
    """Half away from zero; `x + 0.5` may round."""
    if x.dtype.kind in "iub":
        return x
    whole = np.floor(np.abs(x))
    return np.copysign(whole + (np.abs(x) - whole >= 0.5), x).astype(x.dtype)


def _whole(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A rounding: integers stay as they are."""
    return lambda x: x if x.dtype.kind in "iub" else function(x)


def _logical(number: Callable[..., Array], boolean: Callable[..., Array]) -> Callable[..., Array]:
    """An operation that means something else for bools."""
    return lambda *arrays: (boolean if arrays[0].dtype == np.bool_ else number)(*arrays)


def _rectify(x: Array) -> Array:
    return np.where(x < 0, np.zeros((), x.dtype), x)


def _sigmoid(x: Array) -> Array:
    one = np.ones((), x.dtype)
    return one / (one + np.exp(-x))


def _round_even(x: Array) -> Array:
    if x.dtype.kind in "iub":
        return x
    low = np.floor(x)
    over = x - low
    odd = np.mod(low, 2.0) == 1.0
    return np.copysign(np.where((over > 0.5) | ((over == 0.5) & odd), low + 1.0, low), x).astype(x.dtype)


def _error_function(x: Array) -> Array:
    """The integral of the normal distribution, number by number."""
    return np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)).astype(x.dtype)


ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "add": _logical(np.add, np.logical_or),
    "sub": _logical(np.subtract, np.logical_xor),
    "mul": _logical(np.multiply, np.logical_and),
    "div": _divide,
    "mod": _remainder,
    "neg": np.negative,
    "ident": np.asarray,
    "cmp_eq": np.equal,
    "cmp_ne": np.not_equal,
    "cmp_lt": np.less,
    "cmp_le": np.less_equal,
    "cmp_gt": np.greater,
    "cmp_ge": np.greater_equal,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "bit_not": np.bitwise_not,
    "bit_left": partial(_shift, left=True),
    "bit_right": partial(_shift, left=False),
    "abs": np.abs,
    "ceil": _whole(np.ceil),
    "floor": _whole(np.floor),
    "round": _round,
    "round_even": _round_even,
    "erf": _error_function,
    "exp": np.exp,
    "log": np.log,
    "pow": np.power,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "max": _logical(np.maximum, np.logical_or),
    "min": _logical(np.minimum, np.logical_and),
    "relu": _rectify,
    "zelu": _rectify,
    "sigmoid": _sigmoid,
}
"""By the name of the operation, on arrays of one dtype."""


def gather(data: Array, index: Array) -> Array:
    """`O[i…, j…] = D[clamp(I[i…]), j…]`."""
    return data[np.clip(index.astype(np.int64), 0, data.shape[0] - 1)]


def scatter(updates: Array, index: Array, shape: tuple[int, ...]) -> Array:
    """`O[I[i…], j…] += E[i…, j…]` from zero; indices outside are dropped."""
    out = np.zeros(shape, updates.dtype)
    inside = (index >= 0) & (index < shape[0])
    np.add.at(out, index[inside].astype(np.int64), updates[inside])
    return out


def prng_step(state: Array, count: int) -> tuple[Array, Array]:
    """The next state and `count` uniform numbers: one combined Tausworthe generator (L'Ecuyer 1996) for each column."""
    columns = [[int(value) for value in column] for column in state.T]
    values = np.zeros(count, np.float32)
    for number in range(count):
        column = columns[number % len(columns)]
        for row, (mask, up, back, down) in enumerate(
            ((4294967294, 12, 13, 19), (4294967288, 4, 2, 25), (4294967280, 17, 3, 11))
        ):
            old = column[row]
            column[row] = (((old & mask) << up) ^ ((((old << back) & 0xFFFFFFFF) ^ old) >> down)) & 0xFFFFFFFF
        values[number] = np.float32(column[0] ^ column[1] ^ column[2]) * np.float32(2.0**-32)
    return np.array(columns, np.uint32).T, values
