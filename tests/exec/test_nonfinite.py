"""What operations make of infinities and NaN, whatever their other operands are."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from stripe.exec import arith
from stripe.exec.nonfinite import NAN, NONE, NonFinite, nonfinite_after, nonfinite_in, nonfinite_merged
from stripe.ir import DTYPES, Agg, DType
from stripe.ir.dtypes import BOOL, FP32, I32

PLUS, MINUS = frozenset({"inf"}), frozenset({"-inf"})


@pytest.mark.parametrize(
    ("op", "given", "expected"),
    [
        ("exp", [MINUS], NONE),
        ("exp", [PLUS], PLUS),
        ("log", [PLUS], PLUS),
        ("tanh", [PLUS | MINUS], NONE),
        ("tanh", [NAN], NAN),
        ("neg", [PLUS], MINUS),
        ("max", [MINUS, NONE], NONE),
        ("max", [NONE, PLUS], PLUS),
        ("min", [MINUS, NONE], MINUS),
        ("max", [NAN, NONE], NAN),
        ("sub", [NONE, PLUS], MINUS),
        ("mul", [PLUS, NONE], NAN),
        ("div", [NONE, PLUS], NONE),
        ("div", [MINUS, NONE], NAN),
        ("sqrt", [MINUS], NAN),
        ("add", [PLUS, MINUS], PLUS | MINUS | NAN),
        ("add", [MINUS, MINUS], MINUS),
        ("max", [MINUS, MINUS], MINUS),
        ("div", [PLUS, PLUS], NAN),
    ],
)
def test_what_an_operation_makes_of_them(op: str, given: list[NonFinite], expected: NonFinite) -> None:
    assert nonfinite_after(op, given, [FP32] * len(given), FP32) == expected


def test_choices_casts_and_merges() -> None:
    assert nonfinite_after("cond", [NONE, PLUS, MINUS], [BOOL, FP32, FP32], FP32) == PLUS | MINUS
    assert nonfinite_after("cast", [PLUS], [FP32], I32) == NONE
    assert nonfinite_merged(Agg.MAX, [MINUS, NONE], FP32) == NONE
    assert nonfinite_merged(Agg.ADD, [MINUS, NONE], FP32) == MINUS
    assert nonfinite_merged(Agg.ASSIGN, [MINUS, PLUS], FP32) == PLUS | MINUS
    assert nonfinite_in(np.array([1, np.nan, -np.inf, np.inf], np.float32), FP32) == PLUS | MINUS | NAN
    assert nonfinite_in(np.array([1]), I32) == NONE


@pytest.mark.parametrize("dtype", [each for each in DTYPES.values() if each.is_float], ids=str)
def test_elements_of_all_floats(dtype: DType) -> None:
    elements = np.stack([arith.constant(value, dtype) for value in (1.0, inf, -inf, nan)])
    held = {str(value) for value in elements.astype(np.float64).tolist()} & {"inf", "-inf", "nan"}
    assert nonfinite_in(elements, dtype) == held
