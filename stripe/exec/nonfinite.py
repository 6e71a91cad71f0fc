"""Infinities and NaN of floats: what operations make of them, whatever their other operands are.

NaN stands for an infinity of an unknown sign, too: nothing that is computed with it counts as finite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np

from stripe.exec import arith
from stripe.ir import Agg, DType

NonFinite: TypeAlias = frozenset[str]
"""The subset of "inf", "-inf" and "nan" that elements are for all finite inputs."""
NONE: NonFinite = frozenset()
NAN: NonFinite = frozenset({"nan"})

_FINITE = (1, 2, -1)
"""Numbers that stand for all finite operands."""


def nonfinite_in(values: arith.Array, dtype: DType) -> NonFinite:
    """The infinities and NaN among the elements of an array."""
    if not dtype.is_float:
        return NONE
    found = values[~np.isfinite(values)].astype(np.float64)
    return frozenset(str(value) for value in np.unique(found).tolist())


def nonfinite_after(op: str, given: Sequence[NonFinite], dtypes: Sequence[DType], result: DType) -> NonFinite:
    """The infinities and NaN that an intrinsic gives, whatever its finite operands are; `given` has each operand's."""
    if not result.is_float or not any(given):
        return NONE
    if op == "cond":
        return given[1] | given[2]
    found = (
        _after(op, values, tuple(dtypes), result)
        for values in product(*({None, *values} for values in given))
        if any(values)
    )
    return NONE.union(*found)


def nonfinite_merged(agg: Agg, given: Iterable[NonFinite], dtype: DType) -> NonFinite:
    """The infinities and NaN that a merge by `agg` gives, whatever its finite contributions are."""
    found = NONE.union(*given)
    if agg is Agg.ASSIGN:
        return found
    return nonfinite_after(agg.value, (found, NONE), (dtype, dtype), dtype)


@lru_cache(maxsize=4096)
def _after(op: str, given: tuple[str | None, ...], dtypes: tuple[DType, ...], result: DType) -> NonFinite:
    """The same for one infinity, or NaN, of each operand; None for an operand that is finite."""
    if "nan" in given:
        return NAN
    found = NONE
    with np.errstate(all="ignore"):
        for numbers in product(*(_FINITE if value is None else (float(value),) for value in given)):
            values = [arith.constant(number, dtype) for number, dtype in zip(numbers, dtypes, strict=True)]
            if op == "cast":
                value = arith.cast(values[0], dtypes[0], result)
            else:
                value = arith.apply(op, values, dtypes[-1])
            made = nonfinite_in(np.asarray(value), result)
            if not made:
                return NONE
            found |= made
    return found if len(found) == 1 else NAN
