"""The elementary functions of `stripe.ir.elementary` on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stripe.ir.elementary import ScalarTerm, Terms, traced

_TYPES = {"f32": np.float32, "f64": np.float64, "u32": np.uint32, "bool": np.bool_}


def _fused(
    a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], c: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """a*b + c in one rounding. The product is exact in double precision, and the sum is rounded twice, which differs
    only where the first rounding ends halfway between two results: there it goes to the odd neighbour instead.
    """
    product = a.astype(np.float64) * b
    total = product + c
    found = total.astype(np.float32)
    dropped = total.view(np.int64) & 0x1FFFFFFF
    unsure = (dropped == 0x10000000) | ((np.abs(found) < 2.0**-125) & (dropped != 0))
    if not unsure.any():
        return found
    # the error of the sum, exactly (Knuth)
    other = total - product
    error = (product - (total - other)) + (c - other)
    inexact = ((error < 0) | (error > 0)) & (total.view(np.int64) & 1 == 0)
    away = np.where((error > 0) == (total > 0), 1, -1)
    return (total.view(np.int64) + np.where(inexact, away, 0)).view(np.float64).astype(np.float32)


_OPERATIONS: dict[str, Callable[..., npt.NDArray[Any]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "lt": np.less, "eq": np.equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.logical_not, "select": np.where,
    "shl": np.left_shift, "shr": np.right_shift, "fma": _fused,
}  # fmt: skip


def evaluate(function: Terms, *args: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values of a function on fp32 arrays that broadcast."""
    inputs, terms = traced(function, len(args))
    wide = np.broadcast_arrays(*(np.ascontiguousarray(arg, np.float32) for arg in args))
    values = {term: np.atleast_1d(array) for term, array in zip(inputs, wide, strict=True)}
    # Results of no later operation are dropped as soon as the last one that reads them is done.
    last = {arg: term for term in terms for arg in term.args}
    with np.errstate(all="ignore"):
        for term in terms:
            values[term] = _value(term, [values[arg] for arg in term.args])
            for arg in {arg for arg in term.args if last[arg] is term}:
                del values[arg]
    return values[terms[-1]].reshape(np.broadcast_shapes(*(arg.shape for arg in args)))


def _value(term: ScalarTerm, args: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    kind = _TYPES[term.kind]
    if term.op == "constant":
        return np.full(1, term.value, kind)
    match term.op:
        case "at":
            return np.asarray(term.value, kind)[args[0]]
        case "bits" | "float":
            return args[0].view(kind)
        case "widen" | "narrow":
            return args[0].astype(kind)
        case "count":
            return args[0].view(np.int32).astype(kind)
        case _:
            return _OPERATIONS[term.op](*args)
