"""A Tile function with all shapes and dtypes known: single operations in order, each on named tensors and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TypeAlias

from stripe.ir.dtypes import DType
from stripe.ir.errors import StripeError
from stripe.ir.frozen import frozen
from stripe.ir.span import Span
from stripe.poly.index_sets import Range
from stripe.poly.lattice import Polynomial
from stripe.tile import ast
from stripe.tile.diagnostics import SourceText


@frozen
class Tensor:
    """A tensor value; equal names within a function are one tensor."""

    name: str
    sizes: tuple[int, ...]
    dtype: DType


@frozen
class Const:
    """A number that is known when the shapes are."""

    value: bool | int | float
    dtype: DType

    @property
    def sizes(self) -> tuple[int, ...]:
        return ()


Operand: TypeAlias = Tensor | Const


@frozen
class TupleValue:
    """The value of `tuple(…)`, whose parts `element` gives."""

    elements: tuple[Value, ...]


@frozen
class RandomValue:
    """The value of `prng_step`, whose parts `prng_state` and `prng_value` give."""

    state: Tensor
    value: Tensor


Value: TypeAlias = Tensor | Const | TupleValue | RandomValue


@frozen
class Origin:
    """Where an operation comes from: its line of Tile, the user's attributes, and its place."""

    text: str
    attributes: tuple[ast.Attribute, ...]
    span: Span


@frozen
class TypedAccess:
    """An operand at index polynomials."""

    operand: Operand
    polynomials: tuple[Polynomial, ...]
    span: Span | None = field(default=None, compare=False)


@frozen
class ContractionOp:
    """A contraction; `bounds` are the user's constraints, `indices` all its indices in order."""

    out: Tensor
    output: tuple[Polynomial, ...]
    agg: ast.AggOp
    comb: ast.CombOp
    inputs: tuple[TypedAccess, ...]
    bounds: tuple[Range, ...]
    indices: tuple[str, ...]
    default: Operand | None
    origin: Origin


@frozen
class ElementwiseOp:
    """An operation on elements, its operands broadcast to `out`; `op` is the Tile name (`add`, `cast`, …)."""

    out: Tensor
    op: str
    operands: tuple[Operand, ...]
    origin: Origin


@frozen
class IndexOp:
    """out[x…] = the coordinate of dimension `axis`."""

    out: Tensor
    axis: int
    origin: Origin


@frozen
class ShapeOp:
    """out[d] = sizes[d]."""

    out: Tensor
    sizes: tuple[int, ...]
    origin: Origin


@frozen
class ReshapeOp:
    """The elements of `source` in row-major order under the sizes of `out`."""

    out: Tensor
    source: Tensor
    origin: Origin


@frozen
class SpecialOp:
    """A special of `stripe.ir.SPECIALS`."""

    op: str
    outputs: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    origin: Origin


Op: TypeAlias = ContractionOp | ElementwiseOp | IndexOp | ShapeOp | ReshapeOp | SpecialOp


@frozen
class TypedFunction:
    """Inputs and outputs in the order of the source; each of `ops` comes after the operations that it reads. `ignored`
    are the failures of assertions that no output needs, `syntax` the function as it was written.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    source: SourceText
    syntax: ast.Function
    ignored: tuple[StripeError, ...] = ()


def results(op: Op) -> tuple[Tensor, ...]:
    """The tensors that an operation writes."""
    return op.outputs if isinstance(op, SpecialOp) else (op.out,)


def reads(op: Op) -> tuple[Tensor, ...]:
    """The tensors that an operation reads, each once."""
    match op:
        case ContractionOp():
            found = [access.operand for access in op.inputs] + (
                [op.default] if op.default is not None else []
            )
        case ElementwiseOp():
            found = list(op.operands)
        case ReshapeOp():
            found = [op.source]
        case SpecialOp():
            found = list(op.inputs)
        case IndexOp() | ShapeOp():
            found = []
    return tuple(dict.fromkeys(operand for operand in found if isinstance(operand, Tensor)))


def rename_tensors(op: Op, renames: Mapping[str, str]) -> Op:
    """The operation with tensors renamed; names that are not in `renames` stay."""

    if not any(tensor.name in renames for tensor in (*reads(op), *results(op))):
        return op

    def tensor(value: Tensor) -> Tensor:
        return replace(value, name=renames[value.name]) if value.name in renames else value

    def operand(value: Operand) -> Operand:
        return tensor(value) if isinstance(value, Tensor) else value

    match op:
        case ContractionOp():
            inputs = tuple(replace(access, operand=operand(access.operand)) for access in op.inputs)
            default = None if op.default is None else operand(op.default)
            return replace(op, out=tensor(op.out), inputs=inputs, default=default)
        case ElementwiseOp():
            return replace(op, out=tensor(op.out), operands=tuple(map(operand, op.operands)))
        case ReshapeOp():
            return replace(op, out=tensor(op.out), source=tensor(op.source))
        case SpecialOp():
            outputs, inputs = tuple(map(tensor, op.outputs)), tuple(map(tensor, op.inputs))
            return replace(op, outputs=outputs, inputs=inputs)
        case _:
            return replace(op, out=tensor(op.out))
