"""Sums into arrays of a few elements, which gcc 12 joins with the loop that reads them."""

from __future__ import annotations

import numpy as np
import pytest

import stripe


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("columns", [2, 3])
def test_no_term_of_a_short_sum_is_lost(dtype: str, columns: int) -> None:
    text = f"function (A[N=4, M={columns}]: {dtype}) -> (O) {{ T[j : M] = +(A[i, j]); O[] = +(T[j]); }}"
    program = stripe.parse(text)
    values = np.arange(1, 4 * columns + 1).reshape(4, columns).astype(dtype.replace("i", "int"))
    assert stripe.run(program, {"A": values}, engine="c")["O"] == values.sum()
