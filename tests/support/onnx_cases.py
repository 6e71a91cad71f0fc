"""The node cases of onnx's own suite."""

from __future__ import annotations

import warnings
from functools import cache

from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase


@cache
def cases() -> dict[str, TestCase]:
    """The node cases of onnx by name. Their generators run all at once, and print warnings of numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None)}
