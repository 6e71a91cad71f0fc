"""The functions of Tile that an expression can call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from stripe.ir.dtypes import DTYPES, FP32, I8, I32, U32, DType
from stripe.ir.errors import StripeError
from stripe.poly.lattice import Polynomial
from stripe.tile import ast, fold
from stripe.tile.diagnostics import did_you_mean
from stripe.tile.elaborate import Scope, access_polynomials, operand_text
from stripe.tile.library import LIBRARY_NAMES, expand, library
from stripe.tile.operations import ALIASES, ARITY
from stripe.tile.shapes import sizes_text
from stripe.tile.typed import (
    Const,
    ContractionOp,
    ElementwiseOp,
    IndexOp,
    Operand,
    RandomValue,
    ReshapeOp,
    ShapeOp,
    SpecialOp,
    Tensor,
    TupleValue,
    TypedAccess,
    Value,
)

PRNG_SIZES = (3, 2048)
"""Sizes of the state of the random generator, u32."""

_Builtin: TypeAlias = Callable[[Scope, ast.Call, "str | None"], Value]


def call(scope: Scope, node: ast.Call, target: str | None) -> Value:
    """The value of a call; a new tensor is called `target`, or by a fresh name where that is None."""
    name = ALIASES.get(node.function, node.function)
    if name == "log" and len(node.arguments) == 1:
        return _log(scope, node, target)
    if name in ARITY:
        _count(scope, node, ARITY[name], ARITY[name])
        return scope.operation(name, [scope.operand(part) for part in node.arguments], node.span, target)
    if name in LIBRARY_NAMES:
        return _library_call(scope, node, name, [scope.operand(part) for part in node.arguments], target)
    if name.startswith("assert_"):
        return _assertion(scope, node)
    if name not in _BUILTINS:
        known = [*_BUILTINS, *ARITY, *ALIASES, *LIBRARY_NAMES]
        hint = did_you_mean(node.function, known, "the manual lists the functions of Tile")
        raise scope.error(f"unknown function '{node.function}'", node.span, hint)
    builtin, least, most = _BUILTINS[name]
    _count(scope, node, least, most)
    return builtin(scope, node, target)


def _count(scope: Scope, node: ast.Call, least: int, most: int | None) -> None:
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


def _tensor(scope: Scope, node: ast.Call, place: int) -> Tensor:
    operand = scope.operand(node.arguments[place])
    if isinstance(operand, Const):
        reason = f"argument {place + 1} of '{node.function}' must be a tensor, not the constant {operand_text(operand)}"
        raise scope.error(reason, node.arguments[place].span, "pass a tensor")
    return operand


def _integers(scope: Scope, node: ast.Call, first: int) -> tuple[int, ...]:
    what = f"this argument of '{node.function}'"
    return tuple(scope.state.integer(argument, what) for argument in node.arguments[first:])


def _sizes(scope: Scope, node: ast.Call, first: int) -> tuple[int, ...]:
    return _integers(scope, node, first)


def _text(node: ast.Call, operands: Sequence[Operand], numbers: Sequence[int] = ()) -> str:
    return f"{node.function}({', '.join([*map(operand_text, operands), *map(str, numbers)])})"


def _log(scope: Scope, node: ast.Call, target: str | None) -> Value:
    """log(softmax(…)) becomes the log-softmax, which cannot overflow."""
    operand = scope.operand(node.arguments[0])
    if isinstance(operand, Tensor) and operand.name in scope.state.softmaxes:
        arguments = scope.state.softmaxes[operand.name]
        return _library_call(scope, node, "builtin_logsoftmax", arguments, target)
    return scope.operation("log", [operand], node.span, target)


def _library_call(
    scope: Scope, node: ast.Call, name: str, arguments: Sequence[Operand], target: str | None
) -> Value:
    function = library()[name]
    if len(arguments) != len(function.inputs):
        _count(scope, node, len(function.inputs), len(function.inputs))
    if "softmax" in name:
        _check_softmax(scope, node, name, arguments)
    state = scope.state
    result = scope.name(target)
    formals = dict(zip((item.name for item in function.inputs), arguments, strict=True))
    actual = {formal: _literal(operand, node) for formal, operand in formals.items()}
    for statement in expand(function, actual, result, state.fresh, node.span):
        origin = scope.statement.attributes
        try:
            if isinstance(statement, ast.Contraction):
                state.env[statement.target] = state.contraction(statement, statement.target)
            else:
                inner = Scope(state, ast.Assignment(statement.target, statement.value, origin, node.span))
                state.env[statement.target] = inner.value(statement.value, statement.target)
        except StripeError as error:
            raise scope.error(
                f"in '{name}': {error.reason}", node.span, error.hint or "check the arguments"
            ) from None
    value = state.env[result]
    assert value is not None
    if name == "builtin_softmax":
        state.softmaxes[result] = tuple(arguments)
    return value


def _literal(operand: Operand, node: ast.Call) -> ast.Expr:
    if isinstance(operand, Tensor):
        return ast.Name(operand.name, node.span)
    if isinstance(operand.value, float):
        return ast.FloatLit(repr(operand.value), node.span)
    return ast.IntLit(int(operand.value), node.span)


def _check_softmax(scope: Scope, node: ast.Call, name: str, arguments: Sequence[Operand]) -> None:
    data, *sizes = arguments
    numbers = [size.value if isinstance(size, Const) else None for size in sizes]
    if data.sizes != tuple(numbers):
        given = " by ".join("a tensor" if number is None else str(number) for number in numbers)
        found = f"the argument is {sizes_text(data.sizes)}, the sizes {given}"
        reason = f"'{name}' takes a matrix and its two sizes; {found}"
        raise scope.error(reason, node.span, "reshape the argument to two dimensions first")


def _assertion(scope: Scope, node: ast.Call) -> Value:
    _count(scope, node, 1, None)
    value = scope.operand(node.arguments[0])
    if not isinstance(value, Const):
        raise scope.error(f"'{node.function}' checks constants, not tensors", node.span, "compare sizes")
    if not value.value:
        raise scope.error(
            f"the assertion '{node.function}' fails", node.span, "check the shapes that are passed in"
        )
    return value


def _cast(scope: Scope, node: ast.Call, target: str | None, dtype: DType) -> Value:
    operand = scope.operand(node.arguments[0])
    if isinstance(operand, Const):
        return fold.convert(operand.value, dtype)
    return _elementwise(
        scope, node, "cast", [operand], dtype, target, f"{node.function}({operand.name}, {dtype.bits})"
    )


def _elementwise(
    scope: Scope,
    node: ast.Call,
    op: str,
    operands: Sequence[Operand],
    dtype: DType,
    target: str | None,
    text: str,
) -> Tensor:
    sizes = operands[0].sizes
    out = scope.state.checked(Tensor(scope.name(target), sizes, dtype), node.span)
    scope.emit(ElementwiseOp(out, op, tuple(operands), scope.origin(out.name, text, node.span)))
    return out


def _as(kind: str, widths: tuple[int, ...]) -> _Builtin:
    def builtin(scope: Scope, node: ast.Call, target: str | None) -> Value:
        bits = 32
        for argument in node.arguments[1:]:
            bits = scope.state.integer(argument, "the width")
            if bits not in widths:
                hint = f"the widths are {', '.join(map(str, widths))}"
                raise scope.error(f"'{node.function}' has no width {bits}", argument.span, hint)
        return _cast(scope, node, target, DTYPES[f"{kind}{bits}"])

    return builtin


def _as_bool(scope: Scope, node: ast.Call, target: str | None) -> Value:
    return _cast(scope, node, target, DTYPES["bool"])


def _quantize(scope: Scope, node: ast.Call, target: str | None) -> Value:
    """Rounds to the nearest integer and saturates at the ends of i8."""
    operand = _tensor(scope, node, 0)
    if not operand.dtype.is_float:
        limited = scope.operation("min", [operand, Const(127, operand.dtype)], node.span, None)
        if operand.dtype.kind == "int":
            limited = scope.operation("max", [limited, Const(-128, operand.dtype)], node.span, None)
    else:
        limited = scope.operation("round", [operand], node.span, None)
    return _elementwise(scope, node, "cast", [limited], I8, target, f"as_int({operand_text(limited)}, 8)")


def _identity(scope: Scope, node: ast.Call, _: str | None) -> Value:
    """reverse_grad: nothing forward; the gradient is scaled."""
    scope.operand(node.arguments[1])
    return scope.operand(node.arguments[0])


def _recip(scope: Scope, node: ast.Call, target: str | None) -> Value:
    return scope.operation("div", [fold.float_(1.0), scope.operand(node.arguments[0])], node.span, target)


def _shape(scope: Scope, node: ast.Call, target: str | None) -> Value:
    operand = _tensor(scope, node, 0)
    if not operand.sizes:
        raise scope.error("a scalar has no shape to take", node.span, "pass a tensor of rank 1 or more")
    out = Tensor(scope.name(target), (len(operand.sizes),), I32)
    scope.emit(ShapeOp(out, operand.sizes, scope.origin(out.name, _text(node, [operand]), node.span)))
    return out


def _reshape(scope: Scope, node: ast.Call, target: str | None) -> Value:
    source = _tensor(scope, node, 0)
    sizes = _sizes(scope, node, 1)
    if source.sizes == sizes:
        return source
    out = scope.state.checked(Tensor(scope.name(target), sizes, source.dtype), node.span)
    if _product(sizes) != _product(source.sizes):
        reason = f"cannot reshape {sizes_text(source.sizes)} ({_product(source.sizes)} elements) to {sizes_text(sizes)}"
        raise scope.error(
            f"{reason} ({_product(sizes)} elements)", node.span, "the number of elements must stay"
        )
    scope.emit(ReshapeOp(out, source, scope.origin(out.name, _text(node, [source], sizes), node.span)))
    return out


def _product(sizes: Sequence[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _index(scope: Scope, node: ast.Call, target: str | None) -> Value:
    operand = _tensor(scope, node, 0)
    (axis,) = _integers(scope, node, 1)
    if not 0 <= axis < len(operand.sizes):
        reason = f"'{operand.name}' has {len(operand.sizes)} dimensions and none numbered {axis}"
        raise scope.error(reason, node.arguments[1].span, "dimensions count from 0")
    out = Tensor(scope.name(target), operand.sizes, I32)
    scope.emit(IndexOp(out, axis, scope.origin(out.name, _text(node, [operand], [axis]), node.span)))
    return out


def _index_tensor(scope: Scope, node: ast.Call, place: int) -> Tensor:
    index = _tensor(scope, node, place)
    if index.dtype != I32:
        reason = f"the index of '{node.function}' is {index.dtype}; it must be i32"
        raise scope.error(reason, node.arguments[place].span, "cast with as_int(x, 32)")
    return index


def _gather(scope: Scope, node: ast.Call, target: str | None) -> Value:
    data, index = _tensor(scope, node, 0), _index_tensor(scope, node, 1)
    if not data.sizes:
        raise scope.error(
            "cannot gather from a scalar", node.arguments[0].span, "pass a tensor of rank 1 or more"
        )
    out = scope.state.checked(Tensor(scope.name(target), index.sizes + data.sizes[1:], data.dtype), node.span)
    origin = scope.origin(out.name, _text(node, [data, index]), node.span)
    scope.emit(SpecialOp("gather", (out,), (data, index), origin))
    return out


def _scatter(scope: Scope, node: ast.Call, target: str | None) -> Value:
    updates, index, shape = _tensor(scope, node, 0), _index_tensor(scope, node, 1), _tensor(scope, node, 2)
    if not shape.sizes:
        raise scope.error(
            "the third argument of 'scatter' gives the size and has none", node.arguments[2].span, ""
        )
    if updates.sizes[: len(index.sizes)] != index.sizes:
        reason = f"the updates are {sizes_text(updates.sizes)}, the index is {sizes_text(index.sizes)}"
        raise scope.error(reason, node.span, "the updates begin with the sizes of the index")
    sizes = (shape.sizes[0], *updates.sizes[len(index.sizes) :])
    out = scope.state.checked(Tensor(scope.name(target), sizes, updates.dtype), node.span)
    origin = scope.origin(out.name, _text(node, [updates, index, shape]), node.span)
    scope.emit(SpecialOp("scatter", (out,), (updates, index, shape), origin))
    return out


def _prng_step(scope: Scope, node: ast.Call, target: str | None) -> Value:
    state = _tensor(scope, node, 0)
    if state.sizes != PRNG_SIZES or state.dtype != U32:
        found = f"{sizes_text(state.sizes)}:{state.dtype}"
        raise scope.error(
            f"the state of the generator is {found}", node.arguments[0].span, "it must be 3x2048:u32"
        )
    base = scope.name(target)
    value = scope.state.checked(
        Tensor(scope.state.fresh(f"{base}_value"), _sizes(scope, node, 1), FP32), node.span
    )
    following = Tensor(scope.state.fresh(f"{base}_state"), PRNG_SIZES, U32)
    origin = scope.origin(base, _text(node, [state], value.sizes), node.span)
    scope.emit(SpecialOp("prng_step", (following, value), (state,), origin))
    return RandomValue(following, value)


def _random_part(part: str) -> _Builtin:
    def builtin(scope: Scope, node: ast.Call, _: str | None) -> Value:
        value = scope.value(node.arguments[0], None)
        if not isinstance(value, RandomValue):
            raise scope.error(
                f"'{node.function}' takes what prng_step gives", node.span, "R = prng_step(S, N, M)"
            )
        return value.state if part == "state" else value.value

    return builtin


def _tuple(scope: Scope, node: ast.Call, _: str | None) -> Value:
    return TupleValue(tuple(scope.value(argument, None) for argument in node.arguments))


def _element(scope: Scope, node: ast.Call, _: str | None) -> Value:
    value = scope.value(node.arguments[0], None)
    if not isinstance(value, TupleValue):
        raise scope.error(
            "'element' takes a tuple", node.arguments[0].span, "T = tuple(A, B); X = element(T, 0)"
        )
    (place,) = _integers(scope, node, 1)
    if not 0 <= place < len(value.elements):
        reason = f"the tuple has {len(value.elements)} elements and none numbered {place}"
        raise scope.error(reason, node.arguments[1].span, "elements count from 0")
    return value.elements[place]


def _simple_reduce(scope: Scope, node: ast.Call, target: str | None) -> Value:
    """Sums to the given sizes: over leading dimensions that are gone and over those that become 1."""
    source = _tensor(scope, node, 0)
    sizes = _sizes(scope, node, 1)
    if sizes == source.sizes:
        return source
    kept = source.sizes[len(source.sizes) - len(sizes) :] if len(sizes) <= len(source.sizes) else None
    if kept is None or any(new not in (1, old) for new, old in zip(sizes, kept, strict=True)):
        reason = f"cannot reduce {sizes_text(source.sizes)} to {sizes_text(sizes)}"
        raise scope.error(reason, node.span, "sizes stay, become 1, or go at the front")
    indices = tuple(f"i{place + 1}" for place in range(len(source.sizes)))
    last = indices[len(indices) - len(sizes) :]
    output = tuple(
        Polynomial() if new == 1 and old != 1 else Polynomial.var(name)
        for new, old, name in zip(sizes, kept, last, strict=True)
    )
    out = Tensor(scope.name(target), sizes, source.dtype)
    access = TypedAccess(source, access_polynomials(indices))
    origin = scope.origin(out.name, _text(node, [source], sizes), node.span)
    scope.emit(ContractionOp(out, output, "+", "", (access,), (), indices, None, origin))
    return out


def _broadcast_size(scope: Scope, node: ast.Call, _: str | None) -> Value:
    left, right = _integers(scope, node, 0)
    if left != right and 1 not in (left, right):
        raise scope.error(
            f"the sizes {left} and {right} do not broadcast", node.span, "they must be equal, or one 1"
        )
    return fold.integer(right if left == 1 else left)


def _match(scope: Scope, node: ast.Call, _: str | None) -> Value:
    sizes = _integers(scope, node, 0)
    if len(set(sizes)) > 1:
        raise scope.error(
            f"the sizes {' and '.join(map(str, sizes))} differ", node.span, "they must be equal"
        )
    return fold.integer(sizes[0])


_BUILTINS: dict[str, tuple[_Builtin, int, int | None]] = {
    "as_float": (_as("fp", (16, 32, 64)), 1, 2),
    "as_int": (_as("i", (8, 16, 32, 64)), 1, 2),
    "as_uint": (_as("u", (8, 16, 32, 64)), 1, 2),
    "as_bool": (_as_bool, 1, 1),
    "quantize": (_quantize, 1, 1),
    "reverse_grad": (_identity, 2, 2),
    "recip": (_recip, 1, 1),
    "shape": (_shape, 1, 1),
    "reshape": (_reshape, 1, None),
    "index": (_index, 2, 2),
    "gather": (_gather, 2, 2),
    "scatter": (_scatter, 3, 3),
    "prng_step": (_prng_step, 1, None),
    "prng_state": (_random_part("state"), 1, 1),
    "prng_value": (_random_part("value"), 1, 1),
    "tuple": (_tuple, 1, None),
    "element": (_element, 2, 2),
    "simple_reduce": (_simple_reduce, 1, None),
    "broadcast": (_broadcast_size, 2, 2),
    "match": (_match, 1, None),
}
"""Each function that is no plain element-wise operation, with its least and greatest number of arguments."""

FUNCTION_NAMES: tuple[str, ...] = tuple(sorted({*_BUILTINS, *ARITY, *ALIASES, *LIBRARY_NAMES}))
"""All functions but the assertions."""
