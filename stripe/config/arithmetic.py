"""Arithmetic of templates, whose results stay small."""

from __future__ import annotations

from collections.abc import Callable

from jinja2 import Undefined

MAX_BITS = 256
"""Widest integer."""


class LimitError(Exception):
    """A template takes more work or makes bigger things than it may."""


def kind(value: object) -> str:
    """The kind of a value, as messages call it."""
    return "a list" if isinstance(value, (list, tuple, range)) else f"a {type(value).__name__}"


def number(operator: str, operand: object) -> int | float:
    """The operand of an arithmetic operation; raises TypeError for any but a number."""
    if isinstance(operand, (int, float)):
        return operand
    if isinstance(operand, Undefined):
        str(operand)  # raises its own error
    raise TypeError(
        f"'{operator}' takes numbers, not " + (f"'{operand}'" if isinstance(operand, str) else kind(operand))
    )


def arithmetic(operator: str, left: int | float, right: int | float) -> int | float:
    """The result; `/` of whole numbers that divide is whole. Raises LimitError for an integer of too many bits."""
    if operator == "**":
        result = _power(left, right)
    elif operator == "/":
        whole = isinstance(left, int) and isinstance(right, int) and right != 0 and left % right == 0
        result = left // right if whole else left / right
    else:
        result = _OPERATIONS[operator](left, right)
    if isinstance(result, int) and result.bit_length() > MAX_BITS:
        raise LimitError(f"the result of '{operator}' has more than {MAX_BITS} bits")
    return result


_OPERATIONS: dict[str, Callable[[int | float, int | float], int | float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "//": lambda left, right: left // right,
    "%": lambda left, right: left % right,
}


def _power(left: int | float, right: int | float) -> int | float:
    if isinstance(left, int) and isinstance(right, int) and right * max(1, left.bit_length()) > 2 * MAX_BITS:
        raise LimitError(f"the result of '**' has more than {MAX_BITS} bits")
    result: object = left**right
    if not isinstance(result, (int, float)):
        raise ValueError("the result of '**' is no real number")
    return result
