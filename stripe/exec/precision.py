"""Rounding errors as they are: a program beside itself in fp64.

Bounds by `rounding` exist for sums and products alone. Where other operations take part, the allowed share of the
largest element makes a comparison blind beside one large number, such as that of a mask; here an element is compared
with the errors that elements of its size have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt

import numpy as np

from stripe.exec.arith import Array
from stripe.exec.compare import Tolerance, compare
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.exec.layout import constant_array
from stripe.exec.rounding import MOST_POINTS, roundings
from stripe.ir import (
    DTYPES,
    Block,
    Constant,
    DType,
    Intrinsic,
    Program,
    Statement,
    map_statements,
    walk,
    with_entry,
)

_WIDE = DTYPES["fp64"]
_FACTOR = 64.0
"""Errors of other computations by those of ours, times the root of the number of roundings."""
_WINDOW = 64
"""Elements of about one size, at least, whose errors count for one another; in large tensors a sixteenth of all."""


def is_doubtful(expected: Mapping[str, Array], actual: Mapping[str, Array], tolerance: Tolerance) -> bool:
    """Whether results that agree do so by the share of the largest element alone."""
    own = replace(tolerance, absolute=0.0)
    return (
        tolerance != own and bool(compare(expected, actual, own)) and not compare(expected, actual, tolerance)
    )


def measured_bounds(
    program: Program, inputs: Mapping[str, Array], expected: Mapping[str, Array], tolerance: Tolerance
) -> dict[str, Array]:
    """For the outputs of `program` in floats of less than 64 bits, the allowed difference of each element from the
    `expected` one: no more than `tolerance` has, and of the share of the largest element no more than a multiple of
    the errors that elements of about its size have. Empty where the program does not run in fp64, or is too large."""
    if sum(block.points for _, block in walk(program.entry)) > MOST_POINTS:
        return {}
    narrow = {ref.name: ref.dtype for ref in program.outputs if _is_narrow(ref.dtype)}
    given = {ref.name: ref.dtype for ref in program.inputs if _is_narrow(ref.dtype)}
    wide_inputs = {
        name: array.astype(np.float64) if name in given else array for name, array in inputs.items()
    }
    try:
        found = interpret(program, inputs, arenas=False)
        wide = interpret(in_fp64(program), wide_inputs, arenas=False)
    except ExecutionError:
        return {}
    factor = _FACTOR * sqrt(max(1, roundings(program)))
    bounds: dict[str, Array] = {}
    for name, dtype in narrow.items():
        with np.errstate(invalid="ignore"):
            errors = np.abs(found[name].astype(np.float64) - wide[name])
        errors = np.where(np.isfinite(errors), errors, np.inf)
        relative, absolute = tolerance.allowed(expected[name], dtype)
        bounds[name] = relative + np.minimum(absolute, factor * _of_like_size(errors, np.abs(wide[name])))
    return bounds


def in_fp64(program: Program) -> Program:
    """The program with fp64 for all types of floats."""
    constants = tuple(
        replace(buffer, dtype=_WIDE, data=constant_array(buffer).astype(np.float64).tobytes())
        if _is_narrow(buffer.dtype)
        else buffer
        for buffer in program.constants
    )
    return replace(with_entry(program, _in_fp64(program.entry)), constants=constants)


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype != _WIDE


def _in_fp64(block: Block) -> Block:
    def visit(statement: Statement) -> Statement:
        match statement:
            case Block():
                return _in_fp64(statement)
            case Intrinsic(dtype=dtype) | Constant(dtype=dtype) if dtype is not None and _is_narrow(dtype):
                return replace(statement, dtype=_WIDE)
            case _:
                return statement

    refs = (replace(ref, dtype=_WIDE) if _is_narrow(ref.dtype) else ref for ref in block.refinements)
    return replace(map_statements(block, visit), refinements=tuple(refs))


def _of_like_size(errors: Array, sizes: Array) -> Array:
    """For each element the largest error among those next to it in the order of their sizes."""
    order = np.argsort(sizes, axis=None)
    window = max(_WINDOW, -(-errors.size // 16))
    padded = np.zeros(-(-errors.size // window) * window)
    padded[: errors.size] = errors.ravel()[order]
    worst = np.pad(padded.reshape(-1, window).max(axis=1), 1)
    near = np.maximum(np.maximum(worst[:-2], worst[1:-1]), worst[2:])
    found = np.empty(errors.size)
    found[order] = np.repeat(near, window)[: errors.size]
    return found.reshape(errors.shape)
