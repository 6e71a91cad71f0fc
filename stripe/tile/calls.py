"""Calls in Tile: the interface through which a function sees the statement that calls it, and its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stripe.ir.errors import StripeError
from stripe.ir.span import Span
from stripe.tile import ast
from stripe.tile.typed import Const, Op, Operand, Origin, Tensor, Value


class Calls(Protocol):
    """The statement around a call: it evaluates arguments and takes the operations that the call makes."""

    @property
    def softmaxes(self) -> dict[str, tuple[Operand, ...]]:
        """The arguments of each tensor that a softmax made, for log(softmax(…))."""
        ...

    def value(self, expr: ast.Expr, target: str | None) -> Value:
        """The value of `expr`; a new tensor is called `target`, or by a fresh name where that is None."""
        ...

    def operand(self, expr: ast.Expr) -> Operand:
        """The value of an expression that must be a tensor or a number."""
        ...

    def integer(self, expr: ast.Expr, what: str) -> int:
        """The value of an expression that must be a constant integer."""
        ...

    def operation(self, op: str, operands: Sequence[Operand], span: Span, target: str | None) -> Operand:
        """One element-wise operation: folded when all operands are constants."""
        ...

    def function(self, name: str) -> ast.Function | None:
        """The function of the file, or of the library, that is called so."""
        ...

    def expansion(
        self, function: ast.Function, node: ast.Call, values: Sequence[Value], target: str | None
    ) -> Value:
        """The value of a function, whose statements take the place of the call."""
        ...

    def name(self, target: str | None) -> str:
        """The name of a new tensor: the target, or one derived from the target of the statement."""
        ...

    def fresh(self, base: str) -> str:
        """A name that nothing else in the function has."""
        ...

    def checked(self, tensor: Tensor, span: Span) -> Tensor:
        """The tensor, when its sizes are at least 1 and it has fewer than 2^63 bytes."""
        ...

    def origin(self, name: str, text: str, span: Span) -> Origin:
        """The origin of an operation of this statement."""
        ...

    def emit(self, op: Op) -> None:
        """Adds an operation to the function."""
        ...

    def error(self, reason: str, span: Span, hint: str) -> StripeError:
        """An error at a place of the text."""
        ...


def operand_text(operand: Operand) -> str:
    """An operand as Tile shows it."""
    return operand.name if isinstance(operand, Tensor) else str(operand.value).lower()


def require_count(scope: Calls, node: ast.Call, least: int, most: int | None) -> None:
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


def tensor_argument(scope: Calls, node: ast.Call, place: int) -> Tensor:
    """The argument number `place`, which must be a tensor."""
    operand = scope.operand(node.arguments[place])
    if isinstance(operand, Const):
        reason = f"argument {place + 1} of '{node.function}' must be a tensor, not the constant {operand_text(operand)}"
        raise scope.error(reason, node.arguments[place].span, "pass a tensor")
    return operand


def integer_arguments(scope: Calls, node: ast.Call, first: int) -> tuple[int, ...]:
    """The arguments from number `first` on, which must be constant integers."""
    what = f"this argument of '{node.function}'"
    return tuple(scope.integer(argument, what) for argument in node.arguments[first:])


def call_text(node: ast.Call, operands: Sequence[Operand], numbers: Sequence[int] = ()) -> str:
    """The call as a line of Tile shows it."""
    return f"{node.function}({', '.join([*map(operand_text, operands), *map(str, numbers)])})"
