"""Lowers a typed Tile function to a Stripe program: allocations, `main`, and a kernel for each operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from stripe.ir import (
    Affine,
    Block,
    ConstantBuffer,
    Direction,
    Program,
    Refinement,
    Role,
    Tags,
    check_block_magnitude,
    fresh,
)
from stripe.ir.errors import StripeError
from stripe.tile.diagnostics import raise_collected
from stripe.tile.lower_contraction import lower_contraction
from stripe.tile.lower_elementwise import (
    lower_elementwise,
    lower_index,
    lower_reshape,
    lower_shape,
    lower_special,
)
from stripe.tile.typed import (
    ContractionOp,
    ElementwiseOp,
    IndexOp,
    Op,
    Origin,
    ReshapeOp,
    ShapeOp,
    SpecialOp,
    Tensor,
    TypedFunction,
    reads,
    rename_tensors,
    results,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def lower(
    typed: TypedFunction,
    name: str = "program",
    constants: Mapping[str, npt.NDArray[np.generic]] | None = None,
) -> Program:
    """The program of a typed function; its inputs in `constants` are buffers with these contents.

    Raises StripeError for all contractions without a finite, exact index set.
    """
    typed = _without_read_outputs(typed)
    # the name of each tensor in the program: its own, but for words that the text of Stripe reserves
    names: dict[str, str] = {}
    taken: set[str] = set()
    for tensor in _tensors(typed):
        names[tensor.name] = fresh(tensor.name, taken)
        taken.add(names[tensor.name])
    kernels: list[Block] = []
    errors: list[StripeError] = []
    for number, op in enumerate(typed.ops):
        try:
            made = _lower_op(op, f"kernel_{number}", names, typed)
            # numbers in accesses and constraints that 64 bits do not hold
            for found in (error for kernel in made for error in check_block_magnitude(kernel)):
                raise typed.source.error(found.message, op.origin.span, found.hint)
            kernels.extend(made)
        except StripeError as error:
            errors.append(error)
    raise_collected(errors)
    return _program(typed, name, names, tuple(kernels), constants or {})


def _without_read_outputs(typed: TypedFunction) -> TypedFunction:
    """An output that is also read becomes a copy of a temporary: `main` only writes its outputs."""
    read = {tensor.name for op in typed.ops for tensor in reads(op)}
    maker = {tensor.name: op for op in typed.ops for tensor in results(op)}
    taken = read | maker.keys()
    renames: dict[str, str] = {}
    copies: list[Op] = []
    for output in typed.outputs:
        if output.name in read:
            inner = renames[output.name] = fresh(f"{output.name}_0", taken)
            taken.add(inner)
            origin = Origin(f"{output.name} = {inner}", (), maker[output.name].origin.span)
            copies.append(ElementwiseOp(output, "ident", (replace(output, name=inner),), origin))
    if not renames:
        return typed
    return replace(typed, ops=(*(rename_tensors(op, renames) for op in typed.ops), *copies))


def _tensors(typed: TypedFunction) -> tuple[Tensor, ...]:
    """Inputs, outputs, then temporaries in the order in which they are made."""
    made = [tensor for op in typed.ops for tensor in results(op)]
    return tuple({tensor.name: tensor for tensor in (*typed.inputs, *typed.outputs, *made)}.values())


def _lower_op(op: Op, name: str, names: dict[str, str], typed: TypedFunction) -> tuple[Block, ...]:
    match op:
        case ContractionOp():
            return lower_contraction(op, name, names, typed.source)
        case ElementwiseOp():
            return (lower_elementwise(op, name, names),)
        case IndexOp():
            return (lower_index(op, name, names),)
        case ShapeOp():
            return (lower_shape(op, name, names),)
        case ReshapeOp():
            return (lower_reshape(op, name, names),)
        case SpecialOp():
            return (lower_special(op, name, names),)


def _program(
    typed: TypedFunction,
    name: str,
    names: dict[str, str],
    kernels: tuple[Block, ...],
    constants: Mapping[str, npt.NDArray[np.generic]],
) -> Program:
    read = {tensor.name for op in typed.ops for tensor in reads(op)}
    held: list[ConstantBuffer] = []
    inputs = {tensor.name for tensor in typed.inputs}
    outputs = {tensor.name for tensor in typed.outputs}
    allocations: list[Refinement] = []
    views: list[Refinement] = []
    for tensor in _tensors(typed):
        user = tensor.name in inputs or tensor.name in outputs
        local = names[tensor.name]
        role = Role.USER if user else Role.TEMPORARY
        if tensor.name in constants:
            if tensor.name not in read:
                continue
            data = constants[tensor.name].astype(tensor.dtype.numpy(), order="C", copy=False)
            held.append(ConstantBuffer(local, tensor.dtype, tensor.sizes, data.tobytes()))
            role = Role.CONSTANT
        alloc = Refinement.alloc(local, tensor.dtype, tensor.sizes, role=role)
        allocations.append(alloc)
        direction = Direction.IN if tensor.name in inputs else Direction.OUT if user else Direction.INOUT
        zeros = (Affine(),) * len(tensor.sizes)
        views.append(Refinement(local, direction, local, zeros, tensor.dtype, alloc.dims))
    main = Block("main", refinements=tuple(views), statements=kernels, is_main=True)
    entry = Block(name, refinements=tuple(allocations), statements=(main,), tags=Tags.of("program"))
    return Program(entry, tuple(held))
