"""The intrinsics on numpy arrays, exactly as `stripe.ir.intrinsics` defines them.

Arrays are never written in place here, and the result may be an argument itself (`ident`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.exec.elementary import evaluate
from stripe.ir import INTRINSICS, Agg, DType
from stripe.ir.dtypes import BOOL, FP32, FP64, Kind
from stripe.ir.intrinsics import IntrinsicSpec

Array: TypeAlias = npt.NDArray[Any]
"""An array of a dtype that the IR knows and the type checker does not."""

Operation: TypeAlias = Callable[..., Array]


def apply(op: str, args: Sequence[Array], dtype: DType) -> Array:
    """The intrinsic `op` (all but `cast`) on arrays that broadcast.

    `dtype` is that of the operands (of `cond`: the last two); the result has it, or is bool for comparisons.
    """
    spec = INTRINSICS[op]
    function = _operation(spec, dtype)
    if not dtype.is_narrow or spec.operands == "any":
        return function(*args)
    wide = [arg.astype(np.float32) for arg in args]
    return function(*wide).astype(dtype.numpy())


def _operation(spec: IntrinsicSpec, dtype: DType) -> Operation:
    """The function of an intrinsic on arrays: of this module, of numpy, or its `fold` on each element."""
    if spec.steps is not None and dtype.compute == FP32:
        return partial(evaluate, spec.steps)
    own = _OWN.get((spec.name, dtype.kind)) or _OWN.get((spec.name, "any"))
    if own is not None:
        return own
    if spec.numpy:
        named: Operation = getattr(np, spec.numpy)
        return named
    each = np.vectorize(spec.fold, otypes=[(BOOL if spec.result == "bool" else dtype.compute).numpy()])
    return lambda *args: np.asarray(each(*args))


def cast(value: Array, source: DType, target: DType) -> Array:
    """`value` of dtype `source` in dtype `target`."""
    if source == target:
        return value
    if target.kind == "bool":
        return value != 0
    if not target.is_float:
        return _float_to_int(value, target) if source.is_float else value.astype(target.numpy())
    if target.is_narrow and source != FP32:
        value = value.astype(np.float32)
    return value.astype(target.numpy())


def constant(value: bool | int | float, dtype: DType) -> Array:
    """A 0-d array: the number as the text holds it (an int, or an fp64) cast to `dtype`."""
    if isinstance(value, float):
        return cast(np.asarray(value, np.float64), FP64, dtype)
    if dtype.is_float:
        return cast(np.asarray(float(value), np.float64), FP64, dtype)
    if dtype.kind == "bool":
        return np.asarray(value != 0)
    wrapped = int(value) & ((1 << dtype.bits) - 1)
    if dtype.kind == "int" and wrapped >> (dtype.bits - 1):
        wrapped -= 1 << dtype.bits
    return np.asarray(wrapped, dtype.numpy())


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
    ufunc = getattr(np, INTRINSICS[agg.intrinsic(dtype)].numpy)
    assert isinstance(ufunc, np.ufunc)
    return ufunc


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


def _erf(x: Array) -> Array:
    """numpy has no error function; that of C's library is in `math`, on doubles."""
    values = [math.erf(value) for value in x.astype(np.float64).reshape(-1).tolist()]
    return np.asarray(values, x.dtype).reshape(x.shape)


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


_OWN: Mapping[tuple[str, Kind | Literal["any"]], Operation] = {
    ("bit_left", "any"): _shift_left, ("bit_left", "bool"): _bool_left, ("bit_right", "any"): _shift_right,
    ("bit_right", "bool"): _bool_right, ("div", "int"): _trunc_div, ("div", "uint"): _trunc_div,
    ("mod", "int"): _trunc_mod, ("mod", "uint"): _trunc_mod, ("min", "float"): _float_min,
    ("max", "float"): _float_max, ("relu", "any"): _rectify, ("zelu", "any"): _rectify, ("round", "any"): _round,
    ("sigmoid", "any"): _sigmoid, ("erf", "any"): _erf,
}  # fmt: skip
"""Operations of which numpy has none, or with another meaning at the edges, on a kind of dtype."""
