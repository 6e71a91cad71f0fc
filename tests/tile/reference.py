"""What a Tile contraction means, by brute force: every integer point of a box is tried.

It shares no code with lowering and reads the syntax tree alone: polynomials become fractions of integer arrays,
validity is exact divisibility and range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stripe.tile import ast

Array = npt.NDArray[Any]
Ratio = tuple[Array, Array]

_IDENTITY = {"+": 0, "*": 1}


class MultipleAssignment(Exception):
    """An element of an assignment receives two contributions."""


def index_names(node: ast.Contraction) -> list[str]:
    """All indices of a contraction, sorted."""
    names: set[str] = set()
    stack: list[ast.Expr] = [e for access in (node.output, *node.inputs) for e in access.indices]
    stack += [bound.polynomial for bound in node.bounds]
    while stack:
        match stack.pop():
            case ast.IndexName(name):
                names.add(name)
            case ast.Unary(_, operand):
                stack.append(operand)
            case ast.Chain(first, rest):
                stack += [first, *(operand for _, operand in rest)]
            case _:
                pass
    return sorted(names)


def ratio(expr: ast.Expr, grid: Mapping[str, Array], dims: Mapping[str, int]) -> Ratio:
    """The value of a polynomial at all points, as numerator and denominator."""
    one = np.array(1)
    match expr:
        case ast.IntLit(value):
            return np.array(value), one
        case ast.Name(name):
            return np.array(dims[name]), one
        case ast.IndexName(name):
            return grid[name], one
        case ast.Unary("-", operand):
            top, bottom = ratio(operand, grid, dims)
            return -top, bottom
        case ast.Chain(first, rest):
            top, bottom = ratio(first, grid, dims)
            for op, operand in rest:
                other, under = ratio(operand, grid, dims)
                if op == "+":
                    top, bottom = top * under + other * bottom, bottom * under
                elif op == "-":
                    top, bottom = top * under - other * bottom, bottom * under
                elif op == "*":
                    top, bottom = top * other, bottom * under
                else:
                    top, bottom = top * under, bottom * other
            return top, bottom
        case _:
            raise AssertionError(expr)


def contraction(
    node: ast.Contraction,
    tensors: Mapping[str, Array],
    sizes: tuple[int, ...],
    dtype: np.dtype[Any],
    dims: Mapping[str, int],
    reach: int,
) -> tuple[Array, Array]:
    """The result and the number of contributions of each element; indices run over [-reach, reach]."""
    names = index_names(node)
    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * len(names), indexing="ij")
    grid = {name: axis.ravel() for name, axis in zip(names, axes, strict=True)}
    count = (2 * reach + 1) ** len(names)
    valid = np.ones(count, dtype=bool)

    def coordinates(expr: ast.Expr, size: int) -> Array:
        top, bottom = ratio(expr, grid, dims)
        top, bottom = np.broadcast_to(top, count), np.broadcast_to(bottom, count)
        value = top // bottom
        np.logical_and(valid, (top % bottom == 0) & (value >= 0) & (value < size), out=valid)
        return value

    def place(access: ast.TensorAccess, shape: tuple[int, ...]) -> list[Array]:
        return [coordinates(expr, size) for expr, size in zip(access.indices, shape, strict=True)]

    output = place(node.output, sizes)
    inputs = [place(access, tensors[access.tensor].shape) for access in node.inputs]
    for bound in node.bounds:
        top, _ = ratio(bound.limit, grid, dims)
        coordinates(bound.polynomial, int(top))
    values = [
        tensors[access.tensor][tuple(c[valid] for c in where)]
        for access, where in zip(node.inputs, inputs, strict=True)
    ]
    points = int(valid.sum())
    values = [np.broadcast_to(value, points) for value in values]
    target = np.zeros(points, dtype=np.int64)  # the number of the output element in row-major order
    for coordinate, size in zip(output, sizes, strict=True):
        target = target * size + coordinate[valid]
    hits = np.bincount(target, minlength=int(np.prod(sizes, dtype=np.int64)))
    combined = combine(node.comb, values, dtype)
    return aggregate(node.agg, combined, target, hits, dtype).reshape(sizes), hits.reshape(sizes)


def combine(comb: str, values: list[Array], dtype: np.dtype[Any]) -> Array:
    """The contribution of each point in the dtype of the result."""
    if comb == "?":
        return np.where(values[0] == values[1], values[2].astype(dtype), dtype.type(0))
    if comb == "==":
        return (values[0] == values[1]).astype(dtype)
    cast = [value.astype(dtype) for value in values]
    if comb == "+":
        return cast[0] + cast[1]
    return cast[0] * cast[1] if comb == "*" else cast[0]


def aggregate(agg: str, combined: Array, target: Array, hits: Array, dtype: np.dtype[Any]) -> Array:
    """Merges contributions; untouched elements are 0."""
    if agg == "=":
        if hits.max(initial=0) > 1:
            raise MultipleAssignment
        result = np.zeros(hits.shape, dtype)
        result[target] = combined
        return result
    if agg in "<>":
        start: Any = 0 if not combined.size else combined.min() if agg == ">" else combined.max()
        result = np.full(hits.shape, start, dtype)
        (np.maximum if agg == ">" else np.minimum).at(result, target, combined)
    else:
        result = np.full(hits.shape, _IDENTITY[agg], dtype)
        (np.add if agg == "+" else np.multiply).at(result, target, combined)
    return np.where(hits > 0, result, np.zeros((), dtype)).astype(dtype)
