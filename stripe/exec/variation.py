"""Variations of a run: other values that results of merges and products may have as well."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from stripe.exec.arith import Array
from stripe.ir import Agg, DType


class Variation:
    """Changes of numbers in a run, all of them floats. This one changes none."""

    def merged(self, value: Array, dtype: DType, aggs: Collection[Agg], *, finite: Array) -> Array:
        """In place of `value`, which was merged by `aggs`, or is the result of one operation of that name. `finite` has
        the elements that are merged of finite numbers alone: infinities and NaN there come from an overflow.
        """
        del dtype, aggs, finite
        return value

    def product(self, value: Array, factors: Sequence[Array]) -> Array:
        """In place of the product of two factors."""
        del factors
        return value
