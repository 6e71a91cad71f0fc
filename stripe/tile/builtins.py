"""The functions of Tile that an expression can call."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stripe.ir.dtypes import DTYPES, FP32, I8, DType
from stripe.ir.errors import did_you_mean
from stripe.tile import ast, fold
from stripe.tile.builtins_tensor import TENSOR_BUILTINS, Builtin
from stripe.tile.calls import Calls, integer_arguments, operand_text, require_count, tensor_argument
from stripe.tile.diagnostics import FailedAssertion
from stripe.tile.library import LIBRARY_NAMES, library
from stripe.tile.operations import called, operation_names
from stripe.tile.shapes import sizes_text
from stripe.tile.typed import (
    Const,
    ElementwiseOp,
    Operand,
    Tensor,
    TupleValue,
    Value,
)


def call(scope: Calls, node: ast.Call, target: str | None) -> Value:
    """The value of a call; a new tensor is called `target`, or by a fresh name where that is None."""
    name = node.function
    if name == "log" and len(node.arguments) == 1:
        return _log(scope, node, target)
    operation = called(name)
    if operation is not None:
        require_count(scope, node, operation.arity, operation.arity)
        return scope.operation(
            operation.name, [scope.operand(part) for part in node.arguments], node.span, target
        )
    if (function := scope.function(name)) is not None:
        return _call(scope, node, function, [scope.value(part, None) for part in node.arguments], target)
    if name.startswith("assert_"):
        require_count(scope, node, 1, None)
        value = scope.operand(node.arguments[0])
        if not isinstance(value, Const):
            raise scope.error(f"'{node.function}' checks constants, not tensors", node.span, "compare sizes")
        if not value.value:
            reason = f"the assertion '{node.function}' fails"
            raise FailedAssertion(scope.error(reason, node.span, "check the shapes that are passed in"))
        return value
    if name not in BUILTINS:
        hint = did_you_mean(node.function, FUNCTION_NAMES, f"the functions are {' '.join(FUNCTION_NAMES)}")
        raise scope.error(f"unknown function '{node.function}'", node.span, hint)
    builtin, least, most = BUILTINS[name]
    require_count(scope, node, least, most)
    return builtin(scope, node, target)


def _log(scope: Calls, node: ast.Call, target: str | None) -> Value:
    """log(softmax(…)) becomes the log-softmax, which cannot overflow."""
    operand = scope.operand(node.arguments[0])
    if isinstance(operand, Tensor) and operand.name in scope.softmaxes:
        arguments = scope.softmaxes[operand.name]
        function = library()["builtin_logsoftmax"]
        return _call(scope, node, function, arguments, target)
    return scope.operation("log", [operand], node.span, target)


def _call(
    scope: Calls, node: ast.Call, function: ast.Function, values: Sequence[Value], target: str | None
) -> Value:
    """The value of a function that is written in Tile."""
    if len(values) != len(function.inputs):
        require_count(scope, node, len(function.inputs), len(function.inputs))
    operands = [value for value in values if isinstance(value, (Tensor, Const))]
    own = function.name if function is library().get(function.name) else ""
    if own in ("builtin_softmax", "builtin_logsoftmax"):
        data, *sizes = operands
        numbers = [size.value if isinstance(size, Const) else None for size in sizes]
        if data.sizes != tuple(numbers):
            given = " by ".join("a tensor" if number is None else str(number) for number in numbers)
            found = f"the argument is {sizes_text(data.sizes)}, the sizes {given}"
            reason = f"'{function.name}' takes a matrix and its two sizes; {found}"
            raise scope.error(reason, node.span, "reshape the argument to two dimensions first")
    value = scope.expansion(function, node, values, target)
    if own == "builtin_softmax" and isinstance(value, Tensor):
        scope.softmaxes[value.name] = tuple(operands)
    return value


def _cast(scope: Calls, node: ast.Call, target: str | None, dtype: DType) -> Value:
    operand = scope.operand(node.arguments[0])
    if isinstance(operand, Const):
        return fold.cast(operand.value, dtype)
    if operand.dtype == dtype and node.function == f"as_{dtype}":
        return operand
    return _elementwise(
        scope, node, "cast", [operand], dtype, target, f"{node.function}({operand.name}, {dtype.bits})"
    )


def _elementwise(
    scope: Calls,
    node: ast.Call,
    op: str,
    operands: Sequence[Operand],
    dtype: DType,
    target: str | None,
    text: str,
) -> Tensor:
    sizes = operands[0].sizes
    out = scope.checked(Tensor(scope.name(target), sizes, dtype), node.span)
    scope.emit(ElementwiseOp(out, op, tuple(operands), scope.origin(out.name, text, node.span)))
    return out


def _as(kind: str, widths: tuple[int, ...]) -> Builtin:
    def builtin(scope: Calls, node: ast.Call, target: str | None) -> Value:
        bits = 32
        for argument in node.arguments[1:]:
            bits = scope.integer(argument, "the width")
            if bits not in widths:
                hint = f"the widths are {', '.join(map(str, widths))}"
                raise scope.error(f"'{node.function}' has no width {bits}", argument.span, hint)
        return _cast(scope, node, target, DTYPES[f"{kind}{bits}"])

    return builtin


def _as_dtype(dtype: DType) -> Builtin:
    return lambda scope, node, target: _cast(scope, node, target, dtype)


def _quantize(scope: Calls, node: ast.Call, target: str | None) -> Value:
    """Rounds to the nearest integer and saturates at the ends of i8."""
    operand = tensor_argument(scope, node, 0)
    if not operand.dtype.is_float:
        limited = scope.operation("min", [operand, Const(127, operand.dtype)], node.span, None)
        if operand.dtype.kind == "int":
            limited = scope.operation("max", [limited, Const(-128, operand.dtype)], node.span, None)
    else:
        limited = scope.operation("round", [operand], node.span, None)
    return _elementwise(scope, node, "cast", [limited], I8, target, f"as_int({operand_text(limited)}, 8)")


def _identity(scope: Calls, node: ast.Call, _: str | None) -> Value:
    """reverse_grad: nothing forward; the gradient is scaled."""
    scope.operand(node.arguments[1])
    return scope.operand(node.arguments[0])


def _recip(scope: Calls, node: ast.Call, target: str | None) -> Value:
    return scope.operation("div", [fold.float_(1.0), scope.operand(node.arguments[0])], node.span, target)


def _tuple(scope: Calls, node: ast.Call, _: str | None) -> Value:
    return TupleValue(tuple(scope.value(argument, None) for argument in node.arguments))


def _element(scope: Calls, node: ast.Call, _: str | None) -> Value:
    value = scope.value(node.arguments[0], None)
    if not isinstance(value, TupleValue):
        raise scope.error(
            "'element' takes a tuple", node.arguments[0].span, "T = tuple(A, B); X = element(T, 0)"
        )
    (place,) = integer_arguments(scope, node, 1)
    if not 0 <= place < len(value.elements):
        reason = f"the tuple has {len(value.elements)} elements and none numbered {place}"
        raise scope.error(reason, node.arguments[1].span, "elements count from 0")
    return value.elements[place]


def _broadcast_size(scope: Calls, node: ast.Call, _: str | None) -> Value:
    left, right = integer_arguments(scope, node, 0)
    if left != right and 1 not in (left, right):
        raise scope.error(
            f"the sizes {left} and {right} do not broadcast", node.span, "they must be equal, or one 1"
        )
    return fold.integer(right if left == 1 else left)


def _match(scope: Calls, node: ast.Call, _: str | None) -> Value:
    sizes = integer_arguments(scope, node, 0)
    if len(set(sizes)) > 1:
        raise scope.error(
            f"the sizes {' and '.join(map(str, sizes))} differ", node.span, "they must be equal"
        )
    return fold.integer(sizes[0])


BUILTINS: dict[str, tuple[Builtin, int, int | None]] = {
    "as_float": (_as("fp", (16, 32, 64)), 1, 2),
    "as_int": (_as("i", (8, 16, 32, 64)), 1, 2),
    "as_uint": (_as("u", (8, 16, 32, 64)), 1, 2),
    **{f"as_{name}": (_as_dtype(dtype), 1, 1) for name, dtype in DTYPES.items()},
    "infinity": (lambda _scope, _node, _target: Const(math.inf, FP32), 0, 0),
    "quantize": (_quantize, 1, 1),
    "reverse_grad": (_identity, 2, 2),
    "recip": (_recip, 1, 1),
    **TENSOR_BUILTINS,
    "tuple": (_tuple, 1, None),
    "element": (_element, 2, 2),
    "broadcast": (_broadcast_size, 2, 2),
    "match": (_match, 1, None),
}
"""Each function that is no plain element-wise operation, with its least and greatest number of arguments."""

FUNCTION_NAMES: tuple[str, ...] = tuple(sorted({*BUILTINS, *operation_names(), *LIBRARY_NAMES}))
"""All functions but the assertions."""
