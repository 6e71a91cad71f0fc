"""Bounds on rounding errors of each element of a result, from the number of its terms and the sum of their magnitudes.

A term of a sum or product passes at most as many roundings as the sum has terms, in any order, with products fused or
not. With `n` roundings on the longest way from an input to a result, each of them by at most `u` of its value, a result
lies within `n*u / (1 - n*u)` of the sum of the magnitudes of its terms (Higham, Accuracy and Stability of Numerical
Algorithms, 2002, section 3.1). The magnitudes are those of the same program on absolute values, in which differences
are sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from stripe.exec.arith import Array
from stripe.exec.interp import interpret
from stripe.exec.layout import constant_array
from stripe.ir import (
    INTRINSICS,
    Agg,
    Block,
    Constant,
    Intrinsic,
    Load,
    Nest,
    Program,
    Statement,
    Store,
    map_statements,
    separating,
    shared_names,
    walk,
    with_entry,
)

MOST_POINTS = 100_000_000
"""Index points of programs whose magnitudes are computed: a few seconds."""
TELLING = 1 / 32
"""Bounds that are a larger share of the largest element tell nothing: magnitudes grow from layer to layer."""


def rounding_bounds(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array] | None:
    """For each output of `program`, the largest difference of two computations of each element. None for programs with
    other operations than sums, products, minima and maxima of floats, whose errors grow otherwise, and for large ones:
    the bounds come from the interpreter.
    """
    blocks = [block for _, block in walk(program.entry)]
    tensors = [ref for block in blocks for ref in block.refinements]
    if any(not ref.dtype.is_float for ref in tensors) or sum(block.points for block in blocks) > MOST_POINTS:
        return None
    statements = [s for _, block in walk(program.entry) for s in block.statements if not isinstance(s, Block)]
    if not all(map(_is_bounded, statements)):
        return None
    step = max(2.0**-ref.dtype.mantissa for ref in tensors)
    count = roundings(program) * step
    if count >= 0.5:
        return None
    constants = (
        replace(constant, data=np.abs(constant_array(constant)).tobytes()) for constant in program.constants
    )
    magnitudes = interpret(
        replace(with_entry(program, _on_magnitudes(program.entry)), constants=tuple(constants)),
        {name: np.abs(array) for name, array in inputs.items()},
    )
    # Twice, for two computations; the magnitudes are rounded themselves.
    factor = 2.0 * count / (1.0 - count) * (1.0 + count)
    return {name: np.asarray(m.astype(np.float64) * factor) for name, m in magnitudes.items()}


def telling(bounds: Mapping[str, Array] | None, expected: Mapping[str, Array]) -> dict[str, Array]:
    """The bounds of those outputs for which they tell right results from wrong ones."""
    return {
        name: bound
        for name, bound in (bounds or {}).items()
        if bound.max(initial=0.0) <= TELLING * np.abs(expected[name]).max(initial=0.0)
    }


def _is_bounded(statement: Statement) -> bool:
    if isinstance(statement, Intrinsic):
        return bool(INTRINSICS[statement.op].magnitude)
    return isinstance(statement, Load | Store | Constant)


def roundings(program: Program) -> int:
    """The most roundings between an input and a result: a value passes each block with statements once."""
    count, shared = 0, shared_names(program.entry)
    apart = {block: separating(block, shared) for _, block in walk(program.entry)}

    def terms(nest: Nest | None, name: str) -> int:
        """The terms that a store merges into one element, in all blocks around it up to that of its buffer; 0 where it
        assigns."""
        merges, found = False, 1
        while nest is not None:
            ref = nest.block.ref(name)
            summed = ref.agg in (Agg.ADD, Agg.MUL)
            merges |= summed
            if summed:
                found *= prod(i.range for i in nest.block.iterated if i.name not in apart[nest.block])
            if ref.is_alloc:
                break
            nest, name = nest.outer, ref.source
        return found if merges else 0

    for nest in Nest.root(program.entry).walk():
        statements = nest.block.statements
        count += sum(isinstance(s, Intrinsic) and INTRINSICS[s.op].rounds for s in statements)
        count += max((terms(nest, s.ref) for s in statements if isinstance(s, Store)), default=0)
    return count


def _on_magnitudes(block: Block) -> Block:
    """The program on absolute values."""

    def visit(statement: Statement) -> Statement:
        match statement:
            case Block():
                return _on_magnitudes(statement)
            case Intrinsic():
                return replace(statement, op=INTRINSICS[statement.op].magnitude)
            case Constant():
                return replace(statement, value=abs(statement.value))
            case _:
                return statement

    refs = tuple(replace(ref, agg=Agg.MAX) if ref.agg is Agg.MIN else ref for ref in block.refinements)
    return replace(map_statements(block, visit), refinements=refs)
