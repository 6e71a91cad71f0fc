"""The node cases of onnx's own suite."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase
from onnx.reference.ops import op_pool_common

from stripe.exec.arith import Array

LARGE = 10_000
"""Elements of the pools of three dimensions, whose values onnx computes in Python for ten seconds."""


@cache
def cases(*, large: bool = False) -> dict[str, TestCase]:
    """The node cases of onnx by name; without `large`, large pools expect zeros. Their generators run all at once, and
    print warnings of numpy."""
    exact = op_pool_common.pool

    def pool(
        padded: Array, x_shape: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
        out_shape: Sequence[int], *rest: Any, **options: Any,
    ) -> Array:  # fmt: skip
        if padded.size > LARGE and not large:
            return np.zeros((*x_shape[:2], *out_shape), padded.dtype)
        return exact(padded, x_shape, kernel, strides, out_shape, *rest, **options)

    with warnings.catch_warnings(), patch.object(op_pool_common, "pool", pool):
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None)}
