"""The intrinsics on numpy arrays, exactly as `stripe.ir.intrinsics` defines them.

Arrays are never written in place here, and the result may be an argument itself (`ident`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.ir import Agg, DType
from stripe.ir.dtypes import FP32

Array: TypeAlias = npt.NDArray[Any]
"""An array of any dtype: what dtype it has is known from the IR, not to the type checker."""

Unary: TypeAlias = Callable[[Array], Array]
Operation: TypeAlias = Callable[..., Array]


def apply(op: str, args: Sequence[Array], dtype: DType) -> Array:
    """The intrinsic `op` (all but `cast`) on arrays that broadcast.

    `dtype` is that of the operands (of `cond`: the last two); the result has it, or is bool for comparisons.
    """
    if op in _ANY:
        return _ANY[op](*args)
    if op in _COMPARE:
        return _COMPARE[op](*args)
    if not dtype.is_float:
        table = _BOOL if dtype.kind == "bool" else _INTEGER
        return table[op](*args)
    if dtype.bits > 16:
        return _FLOAT[op](*args)
    wide = [arg.astype(np.float32) for arg in args]
    return _FLOAT[op](*wide).astype(dtype.numpy())


def cast(value: Array, source: DType, target: DType) -> Array:
    """`value` of dtype `source` in dtype `target`."""
    if source == target:
        return value
    if target.kind == "bool":
        return value != 0
    if not target.is_float:
        return _float_to_int(value, target) if source.is_float else value.astype(target.numpy())
    if target.bits == 16 and source != FP32:
        value = value.astype(np.float32)
    return value.astype(target.numpy())


def constant(value: bool | int | float, dtype: DType) -> Array:
    """A 0-d array: the number as the text holds it (an int, or an fp64) cast to `dtype`."""
    if isinstance(value, float):
        return cast(np.asarray(value, np.float64), _FP64, dtype)
    if dtype.is_float:
        return cast(np.asarray(float(value), np.float64), _FP64, dtype)
    if dtype.kind == "bool":
        return np.asarray(value != 0)
    wrapped = int(value) & ((1 << dtype.bits) - 1)
    if dtype.kind == "int" and wrapped >> (dtype.bits - 1):
        wrapped -= 1 << dtype.bits
    return np.asarray(wrapped, dtype.numpy())


_FP64 = DType("fp64", "float", 64)


def _float_to_int(value: Array, target: DType) -> Array:
    exact = value.astype(np.float64)  # holds every narrower float
    low, high = float(target.min_value), float(target.max_value + 1)  # both powers of two, or 0
    whole = np.trunc(exact)
    fits = (whole >= low) & (whole < high)
    result = np.where(fits, whole, 0.0).astype(target.numpy())
    result = np.where(whole >= high, np.asarray(target.max_value, target.numpy()), result)
    return np.where(whole < low, np.asarray(target.min_value, target.numpy()), result)


def aggregation(agg: Agg, dtype: DType) -> np.ufunc:
    """The ufunc that merges a contribution into an element; ValueError for assign."""
    if agg is Agg.ASSIGN:
        raise ValueError("assign does not merge")
    if dtype.kind == "bool":
        return np.logical_or if agg in (Agg.ADD, Agg.MAX) else np.logical_and
    return _AGGREGATIONS[agg]


_AGGREGATIONS: Mapping[Agg, np.ufunc] = {
    Agg.ADD: np.add, Agg.MUL: np.multiply, Agg.MIN: np.minimum, Agg.MAX: np.maximum,
}  # fmt: skip


def _trunc_div(a: Array, b: Array) -> Array:
    """C's quotient; 0 for a zero divisor; the lowest number by -1 wraps to itself."""
    unsafe = b == 0
    if np.issubdtype(b.dtype, np.signedinteger):
        unsafe = unsafe | (b == -1)
        at_unsafe = np.where(b == 0, np.zeros((), a.dtype), np.negative(a))
    else:
        at_unsafe = np.zeros((), a.dtype)
    divisor = np.where(unsafe, np.ones((), b.dtype), b)
    quotient = (a - np.fmod(a, divisor)) // divisor
    return np.where(unsafe, at_unsafe, quotient)


def _trunc_mod(a: Array, b: Array) -> Array:
    """C's remainder, which has the sign of the dividend; 0 for a zero divisor."""
    zero = b == 0
    if np.issubdtype(b.dtype, np.signedinteger):
        zero = zero | (b == -1)  # always 0, and numpy would trap on the lowest number
    return np.where(zero, np.zeros((), a.dtype), np.fmod(a, np.where(zero, np.ones((), b.dtype), b)))


def _round(x: Array) -> Array:
    """Half away from zero. `x - trunc(x)` is exact, which `x + 0.5` is not."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones((), x.dtype), x), whole)


def _rectify(x: Array) -> Array:
    return np.where(x < 0, np.zeros((), x.dtype), x)


def _float_min(a: Array, b: Array) -> Array:
    return np.where((a < b) | np.isnan(a), a, b)


def _float_max(a: Array, b: Array) -> Array:
    return np.where((a > b) | np.isnan(a), a, b)


def _sigmoid(x: Array) -> Array:
    one = np.ones((), x.dtype)
    return one / (one + np.exp(-x))


def _bits(x: Array) -> int:
    return x.dtype.itemsize * 8


def _shift_left(a: Array, b: Array) -> Array:
    fits = (b >= 0) & (b < _bits(a))
    return np.where(fits, np.left_shift(a, np.where(fits, b, np.zeros((), b.dtype))), np.zeros((), a.dtype))


def _shift_right(a: Array, b: Array) -> Array:
    fits = (b >= 0) & (b < _bits(a))
    shifted = np.right_shift(a, np.where(fits, b, np.zeros((), b.dtype)))
    sign = (
        np.where(a < 0, -1, 0).astype(a.dtype)
        if np.issubdtype(a.dtype, np.signedinteger)
        else np.zeros((), a.dtype)
    )
    return np.where(fits, shifted, sign)


def _bool_left(a: Array, b: Array) -> Array:
    return a | (b & np.False_)  # 1 << 1 is 2, which is true


def _bool_right(a: Array, b: Array) -> Array:
    return a & ~b


def _identity(x: Array) -> Array:
    return x


def _select(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


_ANY: Mapping[str, Operation] = {"ident": _identity, "cond": _select}
_COMPARE: Mapping[str, Operation] = {
    "cmp_eq": np.equal, "cmp_ne": np.not_equal, "cmp_lt": np.less, "cmp_le": np.less_equal,
    "cmp_gt": np.greater, "cmp_ge": np.greater_equal,
}  # fmt: skip
_BOOL: Mapping[str, Operation] = {
    "bit_and": np.logical_and, "bit_or": np.logical_or, "bit_xor": np.logical_xor, "bit_not": np.logical_not,
    "bit_left": _bool_left, "bit_right": _bool_right,
}  # fmt: skip
_NUMBER: Mapping[str, Operation] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs, "relu": _rectify,
    "zelu": _rectify,
}  # fmt: skip
_INTEGER: Mapping[str, Operation] = {
    **_NUMBER,
    "div": _trunc_div, "mod": _trunc_mod, "min": np.minimum, "max": np.maximum,
    "bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor, "bit_not": np.invert,
    "bit_left": _shift_left, "bit_right": _shift_right,
}  # fmt: skip
_FLOAT: Mapping[str, Operation] = {
    **_NUMBER,
    "div": np.divide, "mod": np.fmod, "min": _float_min, "max": _float_max, "pow": np.power, "ceil": np.ceil,
    "floor": np.floor, "round": _round, "sqrt": np.sqrt, "sigmoid": _sigmoid, "exp": np.exp, "log": np.log,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip
