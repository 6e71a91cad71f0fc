"""The functions of Tile that make tensors of another shape, from `shape` and `reshape` to the random generator."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeAlias

from stripe.ir.dtypes import FP32, I32, U32
from stripe.poly.lattice import Polynomial
from stripe.tile import ast
from stripe.tile.calls import Calls, call_text, integer_arguments, tensor_argument
from stripe.tile.shapes import sizes_text
from stripe.tile.typed import (
    ContractionOp,
    IndexOp,
    RandomValue,
    ReshapeOp,
    ShapeOp,
    SpecialOp,
    Tensor,
    TypedAccess,
    Value,
)

PRNG_SIZES = (3, 2048)
"""Sizes of the state of the random generator, u32."""

Builtin: TypeAlias = Callable[[Calls, ast.Call, "str | None"], Value]
"""A function on a call and the name for the tensor that it makes (None: a fresh one)."""


def _shape(scope: Calls, node: ast.Call, target: str | None) -> Value:
    operand = tensor_argument(scope, node, 0)
    if not operand.sizes:
        raise scope.error("a scalar has no shape to take", node.span, "pass a tensor of rank 1 or more")
    out = Tensor(scope.name(target), (len(operand.sizes),), I32)
    scope.emit(ShapeOp(out, operand.sizes, scope.origin(out.name, call_text(node, [operand]), node.span)))
    return out


def _reshape(scope: Calls, node: ast.Call, target: str | None) -> Value:
    source = tensor_argument(scope, node, 0)
    sizes = integer_arguments(scope, node, 1)
    if source.sizes == sizes:
        return source
    out = scope.checked(Tensor(scope.name(target), sizes, source.dtype), node.span)
    if prod(sizes) != prod(source.sizes):
        old, new = (f"{sizes_text(each)} ({prod(each)} elements)" for each in (source.sizes, sizes))
        raise scope.error(f"cannot reshape {old} to {new}", node.span, "the number of elements must stay")
    scope.emit(ReshapeOp(out, source, scope.origin(out.name, call_text(node, [source], sizes), node.span)))
    return out


def _index(scope: Calls, node: ast.Call, target: str | None) -> Value:
    operand = tensor_argument(scope, node, 0)
    (axis,) = integer_arguments(scope, node, 1)
    if not 0 <= axis < len(operand.sizes):
        reason = f"'{operand.name}' has {len(operand.sizes)} dimensions and none numbered {axis}"
        raise scope.error(reason, node.arguments[1].span, "dimensions count from 0")
    out = Tensor(scope.name(target), operand.sizes, I32)
    scope.emit(IndexOp(out, axis, scope.origin(out.name, call_text(node, [operand], [axis]), node.span)))
    return out


def _index_tensor(scope: Calls, node: ast.Call, place: int) -> Tensor:
    index = tensor_argument(scope, node, place)
    if index.dtype != I32:
        reason = f"the index of '{node.function}' is {index.dtype}; it must be i32"
        raise scope.error(reason, node.arguments[place].span, "cast with as_int(x, 32)")
    return index


def _gather(scope: Calls, node: ast.Call, target: str | None) -> Value:
    data, index = tensor_argument(scope, node, 0), _index_tensor(scope, node, 1)
    if not data.sizes:
        raise scope.error(
            "cannot gather from a scalar", node.arguments[0].span, "pass a tensor of rank 1 or more"
        )
    out = scope.checked(Tensor(scope.name(target), index.sizes + data.sizes[1:], data.dtype), node.span)
    origin = scope.origin(out.name, call_text(node, [data, index]), node.span)
    scope.emit(SpecialOp("gather", (out,), (data, index), origin))
    return out


def _scatter(scope: Calls, node: ast.Call, target: str | None) -> Value:
    updates, index, shape = (
        tensor_argument(scope, node, 0),
        _index_tensor(scope, node, 1),
        tensor_argument(scope, node, 2),
    )
    if not shape.sizes:
        raise scope.error(
            "the third argument of 'scatter' gives the size and has none", node.arguments[2].span, ""
        )
    if updates.sizes[: len(index.sizes)] != index.sizes:
        reason = f"the updates are {sizes_text(updates.sizes)}, the index is {sizes_text(index.sizes)}"
        raise scope.error(reason, node.span, "the updates begin with the sizes of the index")
    sizes = (shape.sizes[0], *updates.sizes[len(index.sizes) :])
    out = scope.checked(Tensor(scope.name(target), sizes, updates.dtype), node.span)
    origin = scope.origin(out.name, call_text(node, [updates, index, shape]), node.span)
    scope.emit(SpecialOp("scatter", (out,), (updates, index, shape), origin))
    return out


def _prng_step(scope: Calls, node: ast.Call, target: str | None) -> Value:
    state = tensor_argument(scope, node, 0)
    if state.sizes != PRNG_SIZES or state.dtype != U32:
        found = f"{sizes_text(state.sizes)}:{state.dtype}"
        raise scope.error(
            f"the state of the generator is {found}", node.arguments[0].span, "it must be 3x2048:u32"
        )
    base = scope.name(target)
    value = scope.checked(
        Tensor(scope.fresh(f"{base}_value"), integer_arguments(scope, node, 1), FP32), node.span
    )
    following = Tensor(scope.fresh(f"{base}_state"), PRNG_SIZES, U32)
    origin = scope.origin(base, call_text(node, [state], value.sizes), node.span)
    scope.emit(SpecialOp("prng_step", (following, value), (state,), origin))
    return RandomValue(following, value)


def _random_part(part: str) -> Builtin:
    def builtin(scope: Calls, node: ast.Call, _: str | None) -> Value:
        value = scope.value(node.arguments[0], None)
        if not isinstance(value, RandomValue):
            raise scope.error(
                f"'{node.function}' takes the result of prng_step", node.span, "R = prng_step(S, N, M)"
            )
        return value.state if part == "state" else value.value

    return builtin


def _simple_reduce(scope: Calls, node: ast.Call, target: str | None) -> Value:
    """Sums to the given sizes: over leading dimensions that are gone and over those that become 1."""
    source = tensor_argument(scope, node, 0)
    sizes = integer_arguments(scope, node, 1)
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
    access = TypedAccess(source, tuple(map(Polynomial.var, indices)))
    origin = scope.origin(out.name, call_text(node, [source], sizes), node.span)
    scope.emit(ContractionOp(out, output, "+", "", (access,), (), indices, None, origin))
    return out


TENSOR_BUILTINS: dict[str, tuple[Builtin, int, int | None]] = {
    "shape": (_shape, 1, 1),
    "reshape": (_reshape, 1, None),
    "index": (_index, 2, 2),
    "gather": (_gather, 2, 2),
    "scatter": (_scatter, 3, 3),
    "prng_step": (_prng_step, 1, None),
    "prng_state": (_random_part("state"), 1, 1),
    "prng_value": (_random_part("value"), 1, 1),
    "simple_reduce": (_simple_reduce, 1, None),
}
"""Each with its least and greatest number of arguments."""
