"""Tile evaluated with numpy straight from its meaning: no index sets, no Stripe, no intrinsics of the interpreter.

It judges lowering, passes and engines (`stripe-run --compare numpy`). A contraction is summed over every integer point
of a box that contains the valid ones, so it is for small programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.ir.dtypes import DType
from stripe.poly.index_sets import Range
from stripe.poly.lattice import Polynomial
from stripe.tile.operations import operand_dtype
from stripe.tile.reference_ops import ELEMENTWISE, cast, gather, prng_step, scatter
from stripe.tile.typed import (
    Const,
    ContractionOp,
    ElementwiseOp,
    IndexOp,
    Op,
    Operand,
    ReshapeOp,
    ShapeOp,
    SpecialOp,
    TypedFunction,
    results,
)

Array: TypeAlias = npt.NDArray[Any]
Bounds: TypeAlias = dict[str, tuple[int, int]]

MAX_POINTS = 1 << 31
_CHUNK = 1 << 20
_ROUNDS = 64


def evaluate(function: TypedFunction, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs by name. Raises StripeError for a contraction that is too large, or whose indices it cannot bound."""
    values = dict(inputs)
    with np.errstate(all="ignore"):
        for op in function.ops:
            for tensor, array in zip(results(op), _evaluate(op, values, function), strict=True):
                held = np.ascontiguousarray(array, dtype=tensor.dtype.numpy())
                values[tensor.name] = held.reshape(tensor.sizes)
    return {tensor.name: values[tensor.name] for tensor in function.outputs}


def _evaluate(op: Op, values: Mapping[str, Array], function: TypedFunction) -> tuple[Array, ...]:
    match op:
        case ContractionOp():
            return (_contraction(op, values, function),)
        case ElementwiseOp():
            return (_elementwise(op, values),)
        case IndexOp(out, axis):
            shape = tuple(-1 if place == axis else 1 for place in range(len(out.sizes)))
            return (np.broadcast_to(np.arange(out.sizes[axis]).reshape(shape), out.sizes),)
        case ShapeOp(_, sizes):
            return (np.array(sizes),)
        case ReshapeOp(_, source):
            return (values[source.name],)
        case SpecialOp(name, outputs, operands):
            arrays = [values[tensor.name] for tensor in operands]
            if name == "gather":
                return (gather(arrays[0], arrays[1]),)
            if name == "scatter":
                return (scatter(arrays[0], arrays[1], outputs[0].sizes),)
            return prng_step(arrays[0], math.prod(outputs[1].sizes))


def _read(operand: Operand, values: Mapping[str, Array]) -> Array:
    """The elements of an operand; a number with all its digits, which the type of its use rounds."""
    if isinstance(operand, Const):
        wide = np.float64 if operand.dtype.is_float else operand.dtype.numpy()
        return np.asarray(operand.value).astype(wide)
    return values[operand.name]


def _elementwise(op: ElementwiseOp, values: Mapping[str, Array]) -> Array:
    arrays = [_read(operand, values) for operand in op.operands]
    if op.op == "cast":
        return np.broadcast_to(cast(arrays[0], op.out.dtype), op.out.sizes)
    dtype = operand_dtype(op.op, [operand.dtype for operand in op.operands], op.out.dtype)
    if op.op == "cond":
        chosen = np.where(arrays[0] != 0, cast(arrays[1], dtype), cast(arrays[2], dtype))
    else:
        chosen = _widened(op.op, [cast(array, dtype) for array in arrays], dtype)
    return np.broadcast_to(chosen, op.out.sizes)


def _widened(op: str, arrays: list[Array], dtype: DType) -> Array:
    """The operation in `dtype`; half precisions compute in fp32 and round."""
    narrow = dtype.is_float and dtype.bits < 32
    result = ELEMENTWISE[op](*(array.astype(np.float32) if narrow else array for array in arrays))
    return result.astype(dtype.numpy()) if narrow and result.dtype == np.float32 else result


def _contraction(op: ContractionOp, values: Mapping[str, Array], function: TypedFunction) -> Array:
    dtype = op.out.dtype
    identities = {"+": 0, "*": 1, ">": dtype.min_value, "<": dtype.max_value, "=": 0}
    out = np.full(op.out.sizes, identities[op.agg], dtype.numpy())
    touched = np.zeros(op.out.sizes, np.bool_)
    arrays = [_read(access.operand, values) for access in op.inputs]
    demands = [Range(p, size) for p, size in zip(op.output, op.out.sizes, strict=True)] + list(op.bounds)
    for access in op.inputs:
        demands += [Range(p, size) for p, size in zip(access.polynomials, access.operand.sizes, strict=True)]
    box = _bounds(demands, op, function)
    _require_64_bits(demands, box, op, function)
    for grid in _grids(box, op, function):
        valid = np.array(True)
        for demand in demands:
            scale, value = demand.polynomial.denominator(), _numerator(demand.polynomial, grid)
            valid = valid & (value % scale == 0) & (value >= 0)
            if demand.size is not None:
                valid = valid & (value < demand.size * scale)
        # the coordinates of the valid points, one flat array for each index
        shape = np.broadcast_shapes(*(array.shape for array in grid.values())) if grid else ()
        where = np.nonzero(np.broadcast_to(valid, shape)) if shape else ()
        points = {name: array.reshape(-1)[where[axis]] for axis, (name, array) in enumerate(grid.items())}
        place = tuple(_values(p, points) for p in op.output)
        taken = [
            array[tuple(_values(p, points) for p in access.polynomials)]
            for array, access in zip(arrays, op.inputs, strict=True)
        ]
        count = next(iter(points.values())).size if points else int(valid.sum())
        combined = np.broadcast_to(_combine(op, taken, dtype), (count,))
        _merge(op.agg, out, place, combined, dtype)
        touched[place] = touched[place] | (count > 0)
    rest = np.zeros((), dtype.numpy()) if op.default is None else cast(_read(op.default, values), dtype)
    return np.where(touched, out, np.broadcast_to(rest, op.out.sizes))


def _bounds(demands: list[Range], op: ContractionOp, function: TypedFunction) -> Bounds:
    """A box that contains all valid points: each demand bounds each of its indices by the bounds of the others."""
    known: dict[str, tuple[Fraction | None, Fraction | None]] = dict.fromkeys(op.indices, (None, None))
    for _ in range(_ROUNDS):
        before = dict(known)
        for demand in demands:
            for name, coefficient in demand.polynomial.terms:
                ends = [None if end is None else end / coefficient for end in _others(demand, name, known)]
                low, high = ends if coefficient > 0 else reversed(ends)
                lows = [end for end in (known[name][0], low) if end is not None]
                highs = [end for end in (known[name][1], high) if end is not None]
                known[name] = max(lows, default=None), min(highs, default=None)
        if known == before:
            break
    box: Bounds = {}
    for name, (low, high) in known.items():
        if low is None or high is None:
            raise function.source.error(
                f"the numpy reference cannot bound the index '{name}'",
                op.origin.span,
                "compare with the interpreter",
            )
        box[name] = (math.ceil(low), math.floor(high))
    return box


def _others(
    demand: Range, name: str, known: Mapping[str, tuple[Fraction | None, Fraction | None]]
) -> tuple[Fraction | None, Fraction | None]:
    """The interval of the term of `name`, given the intervals of the other indices."""
    low: Fraction | None = -demand.polynomial.offset
    high = None if demand.size is None else demand.size - 1 - demand.polynomial.offset
    for other, coefficient in demand.polynomial.terms:
        if other != name:
            least, most = known[other] if coefficient > 0 else known[other][::-1]
            low = None if low is None or most is None else low - coefficient * most
            high = None if high is None or least is None else high - coefficient * least
    return low, high


def _require_64_bits(
    demands: Sequence[Range], box: Bounds, op: ContractionOp, function: TypedFunction
) -> None:
    """StripeError when an index polynomial, times its denominator, leaves 64 bits somewhere in the box."""
    for demand in demands:
        polynomial, scale = demand.polynomial, demand.polynomial.denominator()
        terms = [abs(value) * max(map(abs, box[name])) for name, value in polynomial.terms]
        reached = scale * (sum(terms, abs(polynomial.offset)) + (demand.size or 0))
        if reached >= 1 << 63:
            raise function.source.error(
                f"the numpy reference would compute an access with numbers up to {int(reached)}, beyond 64 bits",
                op.origin.span,
                "compare with the interpreter",
            )


def _grids(box: Bounds, op: ContractionOp, function: TypedFunction) -> Iterator[dict[str, Array]]:
    """The points of the box in pieces: each index as an array along an axis of its own."""
    sizes = {name: max(0, high - low + 1) for name, (low, high) in box.items()}
    if math.prod(sizes.values()) > MAX_POINTS:
        raise function.source.error(
            f"the numpy reference would walk {math.prod(sizes.values())} points", op.origin.span,
            "compare with the interpreter",
        )  # fmt: skip
    names = sorted(sizes, key=lambda name: -sizes[name])
    inner = 1
    pieces: list[list[range]] = []
    for name in names:
        low, high = box[name]
        step = max(1, min(sizes[name], _CHUNK // inner))
        inner *= step
        pieces.append([range(start, min(start + step, high + 1)) for start in range(low, high + 1, step)])
    for choice in product(*pieces):
        yield {
            name: np.array(values, np.int64).reshape(
                [-1 if place == axis else 1 for place in range(len(names))]
            )
            for axis, (name, values) in enumerate(zip(names, choice, strict=True))
        }


def _numerator(polynomial: Polynomial, grid: Mapping[str, Array]) -> Array:
    """The polynomial times its denominator."""
    scale = polynomial.denominator()
    total = np.array(int(polynomial.offset * scale), np.int64)
    for name, coefficient in polynomial.terms:
        total = total + grid[name] * int(coefficient * scale)
    return total


def _values(polynomial: Polynomial, points: Mapping[str, Array]) -> Array:
    return _numerator(polynomial, points) // polynomial.denominator()


def _combine(op: ContractionOp, taken: list[Array], dtype: DType) -> Array:
    if op.comb == "==" or op.comb == "?":
        common = operand_dtype("cmp_eq", [access.operand.dtype for access in op.inputs[:2]], dtype)
        equal = cast(taken[0], common) == cast(taken[1], common)
        return (
            equal if op.comb == "==" else np.where(equal, cast(taken[2], dtype), np.zeros((), dtype.numpy()))
        )
    first, *others = (cast(array, dtype) for array in taken)
    for other in others:
        first = _widened("add" if op.comb == "+" else "mul", [first, other], dtype)
    return first


def _merge(agg: str, out: Array, place: tuple[Array, ...], values: Array, dtype: DType) -> None:
    place = tuple(np.broadcast_to(part, values.shape) for part in place)
    if agg == "=":
        if place:
            out[place] = values
        elif values.size:
            out[()] = values[0]
        return
    boolean = {"+": np.logical_or, "*": np.logical_and, ">": np.logical_or, "<": np.logical_and}
    numbers = {"+": np.add, "*": np.multiply, ">": np.maximum, "<": np.minimum}
    merge = (boolean if dtype.kind == "bool" else numbers)[agg]
    if not place:
        for value in values:
            out[()] = merge(out[()], value)
    else:
        merge.at(out, place, values.astype(out.dtype))
