"""The arguments of a call in Tile: how many, tensors, integers, and the text of the call."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.tile import ast
from stripe.tile.elaborate import Scope, operand_text
from stripe.tile.typed import Const, Operand, Tensor


def check_count(scope: Scope, node: ast.Call, least: int, most: int | None) -> None:
    """Raises StripeError unless the number of arguments lies between `least` and `most` (None: no end)."""
    given = len(node.arguments)
    if given < least or (most is not None and given > most):
        wanted = (
            str(least) if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        )
        plural = "" if wanted == "1" else "s"
        raise scope.error(
            f"'{node.function}' takes {wanted} argument{plural}, not {given}",
            node.span,
            "check the arguments",
        )


def tensor_argument(scope: Scope, node: ast.Call, place: int) -> Tensor:
    """The argument number `place`, which must be a tensor."""
    operand = scope.operand(node.arguments[place])
    if isinstance(operand, Const):
        reason = f"argument {place + 1} of '{node.function}' must be a tensor, not the constant {operand_text(operand)}"
        raise scope.error(reason, node.arguments[place].span, "pass a tensor")
    return operand


def integer_arguments(scope: Scope, node: ast.Call, first: int) -> tuple[int, ...]:
    """The arguments from number `first` on, which must be constant integers."""
    what = f"this argument of '{node.function}'"
    return tuple(scope.state.integer(argument, what) for argument in node.arguments[first:])


def call_text(node: ast.Call, operands: Sequence[Operand], numbers: Sequence[int] = ()) -> str:
    """The call as a line of Tile shows it."""
    return f"{node.function}({', '.join([*map(operand_text, operands), *map(str, numbers)])})"
