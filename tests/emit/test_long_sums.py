"""The emission and the interpretation of a sum of many terms take work in proportion to the terms."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from stripe.emit.c import emit_module
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.ir import Program
from stripe.tile import compile_tile


def calls(action: Callable[[], object]) -> int:
    """How many functions of Python and C an action calls."""
    found = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


def summed(terms: int) -> Program:
    return compile_tile(f"function (A[N=4]: fp32) -> (O) {{ O = {' + '.join(['A'] * terms)}; }}", "sum", {})


ACTIONS: dict[str, Callable[[Program], object]] = {
    "emit": emit_module,
    "interpret": lambda program: interpret(program, random_inputs(program, 0)),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_work_is_linear_in_the_terms(name: str) -> None:
    action = ACTIONS[name]
    action(summed(2))
    few, many = summed(100), summed(400)
    assert calls(lambda: action(many)) < 5 * calls(lambda: action(few))
