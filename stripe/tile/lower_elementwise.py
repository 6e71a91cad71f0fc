"""Lowering of all operations but contractions: element-wise ones, index, shape, reshape, and whole-tensor specials."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from stripe.ir import INTRINSICS, Affine, Block, row_major
from stripe.ir.dtypes import BOOL
from stripe.tile.kernel import Kernel
from stripe.tile.operations import operand_dtype
from stripe.tile.typed import Const, ElementwiseOp, IndexOp, ReshapeOp, ShapeOp, SpecialOp, Tensor

Indices = list[tuple[str, int]]


def lower_elementwise(op: ElementwiseOp, name: str, tensor_names: dict[str, str]) -> Block:
    """One kernel over the elements of the result."""
    indices, access = _element(op.out)
    kernel = Kernel(tensor_names)
    base = tensor_names[op.out.name]
    if op.op == "cast":
        source = op.operands[0]
        value = kernel.load(source, _aligned(access, source.sizes), source.dtype)
        value = kernel.cast(value, op.out.dtype)
    else:
        dtypes = [operand.dtype for operand in op.operands]
        wanted = operand_dtype(op.op, dtypes, op.out.dtype)
        inputs = [
            kernel.cast(kernel.load(operand, _aligned(access, operand.sizes), operand.dtype), BOOL)
            if op.op == "cond" and place == 0
            else kernel.load(operand, _aligned(access, operand.sizes), wanted)
            for place, operand in enumerate(op.operands)
        ]
        dtype = BOOL if INTRINSICS[op.op].result == "bool" else op.out.dtype
        value = kernel.intrinsic(base, INTRINSICS[op.op].on(wanted), inputs, dtype)
    kernel.store(op.out, access, value)
    return kernel.block(name, indices, (), ("eltwise", f"eltwise_{op.op}"), op.origin)


def lower_index(op: IndexOp, name: str, tensor_names: dict[str, str]) -> Block:
    """Each element gets its coordinate."""
    indices, access = _element(op.out)
    kernel = Kernel(tensor_names)
    value = kernel.load_index(tensor_names[op.out.name], access[op.axis], op.out.dtype)
    kernel.store(op.out, access, value)
    return kernel.block(name, indices, (), ("eltwise", "eltwise_index"), op.origin)


def lower_shape(op: ShapeOp, name: str, tensor_names: dict[str, str]) -> Block:
    """One store for each size."""
    kernel = Kernel(tensor_names)
    for place, size in enumerate(op.sizes):
        kernel.store(op.out, (Affine.constant(place),), kernel.constant(Const(size, op.out.dtype)))
    return kernel.block(name, (), (), ("shape",), op.origin)


def lower_special(op: SpecialOp, name: str, tensor_names: dict[str, str]) -> Block:
    """A kernel without indices around one special."""
    kernel = Kernel(tensor_names)
    kernel.special(op.op, op.outputs, op.inputs)
    return kernel.block(name, (), (), ("special", op.op), op.origin)


def lower_reshape(op: ReshapeOp, name: str, tensor_names: dict[str, str]) -> Block:
    """A copy whose indices are common parts of the dimensions on both sides; where there are none, floor and mod."""
    indices, source, target = reshape_accesses(op.source.sizes, op.out.sizes)
    kernel = Kernel(tensor_names)
    kernel.store(op.out, target, kernel.load(op.source, source, op.out.dtype))
    return kernel.block(name, indices, (), ("reshape",), op.origin)


def _element(out: Tensor) -> tuple[Indices, tuple[Affine, ...]]:
    """Indices i1, i2, … over the dimensions that have more than one element, and the access of an element."""
    indices = [(f"i{place + 1}", size) for place, size in enumerate(out.sizes) if size > 1]
    access = tuple(
        Affine.var(f"i{place + 1}") if size > 1 else Affine() for place, size in enumerate(out.sizes)
    )
    return indices, access


def _aligned(access: Sequence[Affine], sizes: Sequence[int]) -> tuple[Affine, ...]:
    """The access of an operand that is broadcast: aligned at the last dimension, 0 where its size is 1."""
    last = access[len(access) - len(sizes) :]
    return tuple(affine if size > 1 else Affine() for affine, size in zip(last, sizes, strict=True))


def reshape_accesses(
    source: Sequence[int], target: Sequence[int]
) -> tuple[Indices, tuple[Affine, ...], tuple[Affine, ...]]:
    """Indices, and the accesses on both sides, of a copy in row-major order between equally many elements."""
    steps = sorted({*_strides(source), *_strides(target), 1, prod(source)})
    chain = all(high % low == 0 for low, high in pairwise(steps))
    if not chain:
        # no common parts: the number of the element in row-major order, divided into coordinates of the source
        indices, access = _element(Tensor("", tuple(target), BOOL))
        flat = Affine.sum([affine * stride for affine, stride in zip(access, _strides(target), strict=True)])
        first, *rest = (flat.floordiv(stride) for stride in _strides(source))
        return indices, (first, *(a.mod(size) for a, size in zip(rest, source[1:], strict=True))), access
    parts = list(pairwise(steps))[::-1]
    indices = [(f"i{place + 1}", high // low) for place, (low, high) in enumerate(parts)]
    sides: list[tuple[Affine, ...]] = []
    for sizes in (source, target):
        side: list[Affine] = []
        for size, stride in zip(sizes, _strides(sizes), strict=True):
            total = Affine()
            for (name, _), (low, _) in zip(indices, parts, strict=True):
                if stride <= low < stride * size:
                    total = total + Affine.var(name) * (low // stride)
            side.append(total)
        sides.append(tuple(side))
    return indices, sides[0], sides[1]


def _strides(sizes: Sequence[int]) -> list[int]:
    return [dim.stride for dim in row_major(tuple(sizes))]
